"""SnapKV-like score: attention of the last window of queries, pooled over neighbours (Li et al. 2024, 2404.14469)."""

from __future__ import annotations

import torch
from torch import Tensor

from kvcert.scorers.base import Scorer, causal_probabilities


class SnapKV(Scorer):
    """Mean attention of the last `window` queries, over the query heads of a KV head, average-pooled (`pooling`).

    The window sees the question in the aware setting and does not in the streaming one: that is decided by which
    queries are the last when the cache is compressed.
    """

    name = "snapkv"

    def raw(
        self, layer: int, queries: Tensor, keys: Tensor, n: int, scale: float, values: Tensor | None = None
    ) -> Tensor:
        window, pooling = int(self.constants["window"]), int(self.constants["pooling"])
        attention = causal_probabilities(queries[:, -window:], keys, scale)[..., :n].mean((1, 2))
        return torch.nn.functional.avg_pool1d(
            attention[:, None], pooling, stride=1, padding=pooling // 2, count_include_pad=True
        )[:, 0, :n]
