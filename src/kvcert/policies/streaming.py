"""StreamingLLM: attention sinks and the most recent tokens (Xiao et al. 2023, arXiv 2309.17453)."""

from __future__ import annotations

import torch
from torch import Tensor

from kvcert.policies.base import Policy, Selection, certain
from kvcert.survey.inclusion import protected_tokens


class Streaming(Policy):
    """The first `n_sink` tokens and the last K - n_sink."""

    name = "streaming"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        n_sink = int(constants["n_sink"])
        keep = protected_tokens(z.shape[-1], n_sink, capacity - n_sink).to(z.device)
        return certain(keep.expand(z.shape) | torch.zeros_like(z, dtype=torch.bool))
