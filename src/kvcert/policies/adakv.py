"""Head budgets as in Ada-KV (Feng et al. 2024, arXiv 2407.11550): the heads of a layer compete for one pool."""

from __future__ import annotations

import torch
from torch import Tensor

from kvcert.policies.base import Policy, Selection, certain
from kvcert.survey.inclusion import certainty_set


class AdaKV(Policy):
    """Every layer keeps KV heads x K tokens, the highest scores over all its heads.

    Safe in every head, whatever the others hold: sinks, recents, and the top floor(safeguard (K - |C0|)) by score. With
    safeguard = 1 this is `topk`. Ties go to the earlier head, then to the earlier token.
    """

    name = "adakv"

    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        heads, n = z.shape[-2:]
        if capacity >= n:
            return certain(torch.ones(z.shape, dtype=torch.bool, device=z.device))
        safe = certainty_set(
            z, capacity, int(constants["n_sink"]), int(constants["n_recent"]), self.params["safeguard"]
        )
        pool = torch.where(safe, torch.inf, z.double()).flatten(-2)
        best = pool.sort(dim=-1, descending=True, stable=True).indices[..., : heads * capacity]
        return certain(torch.zeros_like(pool, dtype=torch.bool).scatter(-1, best, True).view(z.shape))
