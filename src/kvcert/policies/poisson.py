"""The paper's randomised design: a certainty set and a Poisson-sampled tail with known inclusion probabilities."""

from __future__ import annotations

from torch import Tensor

from kvcert.policies.base import Policy, Selection, design_of, sampled


class Poisson(Policy):
    """Keep the certainty set; keep each tail token independently with probability pi proportional to its score."""

    name = "poisson"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        return sampled(design_of(z, capacity, constants), u32)
