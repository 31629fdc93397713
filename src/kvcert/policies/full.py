"""The whole cache: the reference."""

from __future__ import annotations

import torch
from torch import Tensor

from kvcert.policies.base import Policy, Selection, certain


class Full(Policy):
    """Keep everything."""

    name = "full"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        return certain(torch.ones(z.shape, dtype=torch.bool, device=z.device))
