"""What a scorer is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor


class Scorer(ABC):
    """An importance score z >= 0 for every (layer, KV head, context token).

    `kind` is `mass` where the raw score is used as it is (it must be >= 0) and `ordinal` where only its order means
    something (signed scores): then z = (rank + 1/2) / n.
    """

    name: ClassVar[str]
    kind: ClassVar[Literal["mass", "ordinal"]] = "mass"
    #: True when `observe` must see every query of the prefill, not only the last window.
    accumulates: ClassVar[bool] = False
    #: True when `raw` reads the inputs of the attention modules (`kvcert.scorers.press.recording`).
    reads_prefix: ClassVar[bool] = False

    def __init__(self, constants: dict[str, float]) -> None:
        self.constants = constants

    def observe(self, layer: int, queries: Tensor, keys: Tensor, scale: float) -> None:
        """Called for each prefill pass with queries [H, T, D] and all keys so far [K, S, D]; default: nothing."""
        return

    @abstractmethod
    def raw(
        self, layer: int, queries: Tensor, keys: Tensor, n: int, scale: float, values: Tensor | None = None
    ) -> Tensor:
        """Raw score [K, n] of the first n tokens, from the last queries [H, w, D] and all keys and values [K, S, D]."""

    def score(
        self, layer: int, queries: Tensor, keys: Tensor, n: int, scale: float, values: Tensor | None = None
    ) -> Tensor:
        """z, float64 [K, n]. Non-finite scores become 0: the run is marked invalid by its logits, not here."""
        raw = self.raw(layer, queries, keys, n, scale, values).double().nan_to_num(0.0, 0.0, 0.0)
        if self.kind == "mass":
            return raw.clamp_min(0.0)
        order = raw.argsort(dim=-1, stable=True)
        rank = torch.empty_like(order).scatter_(
            -1, order, torch.arange(n, device=raw.device).expand_as(order)
        )
        return (rank.double() + 0.5) / n


def causal_probabilities(queries: Tensor, keys: Tensor, scale: float, offset: Tensor | None = None) -> Tensor:
    """Softmax attention [K, G, T, S] of the last T tokens' queries [H, T, D] over all S keys [K, S, D], float32.

    `offset` [K, S] is added to the logits: -log Pi corrects for sampling, -inf leaves a key out.
    """
    heads, steps, dim = queries.shape
    groups, seen = keys.shape[0], keys.shape[1]
    grouped = queries.reshape(groups, heads // groups * steps, dim)
    logits = (grouped @ keys.transpose(1, 2)).float().view(groups, heads // groups, steps, seen) * scale
    if offset is not None:
        logits = logits + offset[:, None, None].float()
    later = torch.ones(steps, seen, dtype=torch.bool, device=keys.device).triu(seen - steps + 1)
    return logits.masked_fill(later, float("-inf")).softmax(-1)
