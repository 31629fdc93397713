"""What the rows of one example retain after eviction, decoded as one ragged batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kvcert.cache.base import HookCache, buffers
from kvcert.kernels import Decoded, decode
from kvcert.policies import Selection

#: Called after a certified layer: (layer, queries, certificate of the layer, keys and values appended so far).
Listener = Callable[[int, Tensor, Decoded, Tensor, Tensor], None]


class RetainedCache(HookCache):
    """Retained keys and values per row, layer and KV head, right-aligned before the appended tokens.

    Slots [begin[row, head], C) hold a head's retained context in its original order, slots from C on the tokens
    appended after compression (pi = 1), at the same place for every row and head. Slots before `begin` are padding.

    Parameters
    ----------
    context : the full cache (or a row's shadow of it); `selection` says what each row keeps of its first n tokens.
    room : slots for appended tokens.
    """

    def __init__(
        self, context: HookCache, selections: list[Selection], room: int, backend: str, delta: float
    ) -> None:
        keep = torch.stack([s.keep for s in selections], 1)  # [layers, rows, heads, n]
        log_pi = torch.stack([s.log_pi for s in selections], 1)
        layers, rows, heads, n = keep.shape
        count = keep.sum(-1)
        width = int(count.max())
        # A stable sort by "kept" puts the retained tokens last and in order; what precedes them is padding.
        order = keep.to(torch.uint8).argsort(dim=-1, stable=True)[..., n - width :]
        like = context.keys[0]
        shape = (layers, rows, heads, width + room, like.shape[-1])
        super().__init__(buffers(*shape, like=like), buffers(*shape, like=like), end=width)
        self.positions = order  # [layers, rows, heads, width]; meaningful from `begin` on
        self.begin = (width - count).to(torch.int32)  # [layers, rows, heads]
        self.width = width
        self.log_pi = torch.nn.functional.pad(log_pi.gather(-1, order), (0, room))
        head = torch.arange(heads, device=like.device)[:, None]
        for layer in range(layers):
            for source, target in ((context.keys, self.keys), (context.values, self.values)):
                target[layer][:, :, :width] = source[layer][0][head, order[layer]]
        self.centre = [self._centre(layer) for layer in range(layers)]
        self.backend, self.delta = backend, delta
        self.certified: frozenset[int] = frozenset()
        self.listener: Listener | None = None

    def _centre(self, layer: int) -> Tensor:
        """Mean of the retained tail values, float32 [rows, heads, d]; 0 where the tail is empty."""
        slot = torch.arange(self.width, device=self.begin.device)
        sampled = (slot >= self.begin[layer][..., None]) & (self.log_pi[layer][..., : self.width] < 0)
        weight = sampled.float()
        total = (weight[..., None, :] @ self.values[layer][:, :, : self.width].float())[..., 0, :]
        return total / weight.sum(-1, keepdim=True).clamp_min(1.0)

    def take(self, index: slice | Tensor) -> RetainedCache:
        """Some rows as a cache of their own: a slice shares the storage, a tensor of row numbers copies it."""
        part = object.__new__(RetainedCache)
        part.__dict__.update(self.__dict__)
        for name in ("keys", "values", "centre"):
            setattr(part, name, [x[index] for x in getattr(self, name)])
        for name in ("begin", "log_pi", "positions"):
            setattr(part, name, getattr(self, name)[:, index])
        return part

    def append_from(self, context: HookCache, start: int, stop: int) -> None:
        """Append tokens [start, stop) of the full cache to every row (a question that was read on the full cache)."""
        size = stop - start
        for layer in range(len(self.keys)):
            self.keys[layer][:, :, self.end : self.end + size] = context.keys[layer][:, :, start:stop]
            self.values[layer][:, :, self.end : self.end + size] = context.values[layer][:, :, start:stop]
        self.end += size

    def attend(self, module: torch.nn.Module, q: Tensor, scale: float) -> Tensor:
        """Hajek attention of the newest T tokens, q [R, H, T, D]; returns [R, T, H, D]."""
        layer, stop = int(module.layer_idx), self.end + q.shape[2]  # type: ignore[arg-type]
        certify = self.listener is not None and layer in self.certified
        decoded = decode(
            q,
            self.keys[layer],
            self.values[layer],
            self.log_pi[layer],
            self.begin[layer],
            stop,
            scale=scale,
            centre=self.centre[layer] if certify else None,
            certificate=certify,
            delta=self.delta,
            backend=self.backend,
        )
        if certify and self.listener is not None:
            own = slice(self.width, stop)
            self.listener(layer, q, decoded, self.keys[layer][:, :, own], self.values[layer][:, :, own])
        self.finish_layer(layer)
        return decoded.out.transpose(1, 2)
