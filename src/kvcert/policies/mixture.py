"""Poisson sampling with a defensive mixture: no tail token's inclusion probability falls far below the uniform one."""

from __future__ import annotations

from torch import Tensor

from kvcert.policies.base import Policy, Selection, design_of, sampled


class Mixture(Policy):
    """The design of `poisson` with pi proportional to (1 - lam) z / sum z + lam / |T| on the tail."""

    name = "mixture"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        return sampled(design_of(z, capacity, constants, lam=self.params["lam"]), u32)
