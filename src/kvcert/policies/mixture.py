"""Poisson sampling with a defensive mixture: no tail token's inclusion probability falls far below the uniform one."""

from __future__ import annotations

from torch import Tensor

from kvcert.policies.base import Policy, Selection
from kvcert.survey.inclusion import poisson_design, poisson_draw


class Mixture(Policy):
    """The design of `poisson` with pi proportional to (1 - lam) z / sum z + lam / |T| on the tail."""

    name = "mixture"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        design = poisson_design(
            z,
            capacity,
            n_sink=int(constants["n_sink"]),
            n_recent=int(constants["n_recent"]),
            rho=constants["rho"],
            epsilon=constants["epsilon"],
            lam=self.params["lam"],
        )
        return Selection(poisson_draw(design, u32), design.log_pi, design.expected)
