"""The paper's randomised design: a certainty set and a Poisson-sampled tail with known inclusion probabilities."""

from __future__ import annotations

from torch import Tensor

from kvcert.policies.base import Policy, Selection
from kvcert.survey.inclusion import poisson_design, poisson_draw


class Poisson(Policy):
    """Keep the certainty set; keep each tail token independently with probability pi proportional to its score."""

    name = "poisson"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        design = poisson_design(
            z,
            capacity,
            n_sink=int(constants["n_sink"]),
            n_recent=int(constants["n_recent"]),
            rho=constants["rho"],
            epsilon=constants["epsilon"],
        )
        return Selection(poisson_draw(design, u32), design.log_pi, design.expected)
