"""Certainty set by score, uniform Poisson tail with 1/pi correction: the estimator of vAttention (arXiv 2510.05688)."""

from __future__ import annotations

from torch import Tensor

from kvcert.policies.base import Policy, Selection
from kvcert.policies.mixture import Mixture


class Uniform(Policy):
    """The mixture with lam = 1: every tail token with the same known probability m / |T|."""

    name = "uniform"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        return Mixture({"lam": 1.0}).select(z, capacity, constants, u32)
