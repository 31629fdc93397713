"""Deterministic top-k: the protected tokens and the best of the rest by score."""

from __future__ import annotations

from torch import Tensor

from kvcert.policies.base import Policy, Selection, certain
from kvcert.survey.inclusion import certainty_set


class TopK(Policy):
    """Sinks, recents and the K - |C0| highest scores: the certainty set with rho = 1."""

    name = "topk"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        if capacity >= z.shape[-1]:
            return certain(z >= 0)
        return certain(certainty_set(z, capacity, int(constants["n_sink"]), int(constants["n_recent"]), 1.0))
