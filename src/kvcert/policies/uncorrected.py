"""The Poisson draw without its correction: what the offset -log pi is worth."""

from __future__ import annotations

from torch import Tensor

from kvcert.policies.base import Policy, Selection, certain
from kvcert.policies.poisson import Poisson


class Uncorrected(Policy):
    """Exactly the tokens that `poisson` keeps, attended to as if nothing had been dropped; hence no certificate."""

    name = "uncorrected"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        return certain(Poisson().select(z, capacity, constants, u32).keep)
