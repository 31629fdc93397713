"""Last use: how recently a token was attended to strongly, for the least-recently-used rule (`lru`)."""

from __future__ import annotations

import torch
from torch import Tensor

from kvcert.scorers.base import Scorer, causal_probabilities


class LastUsed(Scorer):
    """The position of the last query that used the token; only its order counts, ties go to the later token.

    The query at position t sees t + 1 tokens and *uses* those whose weight, averaged over the query heads of the KV head,
    is above the mean weight 1 / (t + 1). A token counts as used when it enters (by the query at its own position). This
    definition is ours: least-recently-used rules for KV caches are found in arXiv 2605.18053 without one for the prefill.
    """

    name = "last_used"
    kind = "ordinal"
    accumulates = True
    #: Queries per block: bounds the memory of the attention matrix.
    block = 256

    def __init__(self, constants: dict[str, float]) -> None:
        super().__init__(constants)
        self._last: dict[int, Tensor] = {}

    def observe(self, layer: int, queries: Tensor, keys: Tensor, scale: float) -> None:
        steps, seen = queries.shape[1], keys.shape[1]
        last = torch.arange(seen, device=keys.device).repeat(keys.shape[0], 1)
        if layer in self._last and seen > steps:
            last[:, : seen - steps] = self._last[layer][:, : seen - steps]
        for start in range(0, steps, self.block):
            stop = min(start + self.block, steps)
            visible = seen - steps + stop
            weight = causal_probabilities(queries[:, start:stop], keys[:, :visible], scale).mean(1)
            position = torch.arange(seen - steps + start, visible, device=keys.device)[:, None]
            used = torch.where(weight > 1.0 / (position + 1.0), position, -1).amax(1)
            last[:, :visible] = torch.maximum(last[:, :visible], used)
        self._last[layer] = last

    def raw(
        self, layer: int, queries: Tensor, keys: Tensor, n: int, scale: float, values: Tensor | None = None
    ) -> Tensor:
        return self._last[layer][:, :n]
