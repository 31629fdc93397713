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
        window = int(self.constants["window"])
        return self._pool(causal_probabilities(queries[:, -window:], keys, scale)[..., :n].mean((1, 2)))

    def thinned(self, queries: Tensor, keys: Tensor, log_pi: Tensor, alive: Tensor, scale: float) -> Tensor:
        """z, float64 [K, n], from what earlier compressions have left; 0 where a token is gone.

        The window's attention is the Hajek estimate p_i = softmax(s_i - log Pi_i) over the tokens that are `alive`,
        bool [K, n]; `log_pi` [K, n] is cumulative. Pooling averages over those neighbours alone.
        """
        offset = torch.where(alive, -log_pi, float("-inf"))
        attention = causal_probabilities(queries[:, -int(self.constants["window"]) :], keys, scale, offset)
        there = alive.float()
        share = self._pool(there) / self._pool(torch.ones_like(there))
        pooled = self._pool(attention.mean((1, 2))) / share.clamp_min(1e-12)
        z = pooled.double().nan_to_num(0.0, 0.0, 0.0).clamp_min(0.0)
        return torch.where(alive, z, 0.0)

    def _pool(self, x: Tensor) -> Tensor:
        pooling, n = int(self.constants["pooling"]), x.shape[-1]
        return torch.nn.functional.avg_pool1d(
            x[:, None], pooling, stride=1, padding=pooling // 2, count_include_pad=True
        )[:, 0, :n]
