"""Uniform random tail of fixed size, protected sinks and recents, no correction."""

from __future__ import annotations

import torch
from torch import Tensor

from kvcert.policies.base import Policy, Selection, certain
from kvcert.survey.inclusion import protected_tokens


class Random(Policy):
    """Simple random sampling without replacement of the unprotected tokens: those with the smallest uniforms."""

    name = "random"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        n = z.shape[-1]
        protected = protected_tokens(n, int(constants["n_sink"]), int(constants["n_recent"])).to(z.device)
        order = torch.where(protected, -1, u32).argsort(dim=-1, stable=True)
        return certain(torch.zeros_like(z, dtype=torch.bool).scatter(-1, order[..., :capacity], True))
