"""The caches of one row whose history is compressed turn by turn: what it retains, and the shadow of all it ever saw."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kvcert.cache.base import HookCache, buffers
from kvcert.cache.context import ContextCache
from kvcert.cache.retained import RetainedCache


class Shadow(HookCache):
    """Keys and values that one row computed for every token of its history, whether it still retains them or not.

    Only the first turn is shared between rows: a later one is read on the compressed cache, so its keys and values (from
    the second layer on) are the row's own. The row's truth is measured on them, as on the full cache elsewhere.

    Parameters
    ----------
    context : the full cache; its first `start` tokens, read before any compression, are taken over.
    n : tokens of the whole history.
    """

    def __init__(self, context: ContextCache, start: int, n: int) -> None:
        like = context.keys[0]
        shape = (len(context.keys), 1, like.shape[1], n, like.shape[-1])
        super().__init__(buffers(*shape, like=like), buffers(*shape, like=like), end=start)
        self.scale = context.scale
        for layer in range(len(self.keys)):
            self.keys[layer][:, :, :start] = context.keys[layer][:, :, :start]
            self.values[layer][:, :, :start] = context.values[layer][:, :, :start]

    def extend(self, turn: TurnCache) -> None:
        """Take over the keys and values of the turn that was just read."""
        stop = self.end + turn.end - turn.width
        for layer in range(len(self.keys)):
            own = slice(turn.width, turn.end)
            self.keys[layer][:, :, self.end : stop] = turn.keys[layer][:, :, own]
            self.values[layer][:, :, self.end : stop] = turn.values[layer][:, :, own]
        self.end = stop


class TurnCache(RetainedCache):
    """A retained cache of one row that remembers the last `window` queries of the turn read on it, [H, w, D] a layer."""

    def __init__(self, window: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.window = window
        self.queries: list[Tensor] = []

    def attend(self, module: torch.nn.Module, q: Tensor, scale: float) -> Tensor:
        """Hajek attention of the turn's tokens, q [1, H, T, D]; the layers come in order."""
        self.queries.append(q[0][:, -self.window :].clone())
        return super().attend(module, q, scale)
