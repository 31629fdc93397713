"""What both caches share towards transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache


class HookCache(Cache):
    """A cache that keeps preallocated [R, K, capacity, D] buffers per layer and counts its tokens itself.

    `end` is the number of filled slots before the current forward; `pending` the tokens of the current one. Layers
    all append at the same place; the count moves when the last layer has been updated.
    """

    def __init__(self, keys: list[Tensor], values: list[Tensor], end: int = 0) -> None:
        super().__init__(layers=[])
        self.keys, self.values, self.end = keys, values, end
        self._step = 0

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append this layer's new keys and values, [R, K, T, D]."""
        if layer_idx == 0:
            self._step = key_states.shape[2]
        stop = self.end + self._step
        if stop > self.keys[layer_idx].shape[2]:
            raise IndexError(f"cache holds {self.keys[layer_idx].shape[2]} slots, {stop} asked for")
        self.keys[layer_idx][:, :, self.end : stop] = key_states
        self.values[layer_idx][:, :, self.end : stop] = value_states
        return key_states, value_states

    def finish_layer(self, layer: int) -> None:
        """Called by `attend` after each layer; the last one moves the count."""
        if layer == len(self.keys) - 1:
            self.end += self._step

    def crop(self, max_length: int) -> None:
        """Negative: drop that many tokens from the end. Other values are refused (they differ between releases)."""
        if max_length >= 0:
            raise ValueError("crop: only a negative count, the tokens to drop from the end")
        self.end += max_length

    def get_seq_length(self, layer_idx: int = 0, *args: Any) -> int:
        """Slots filled."""
        return self.end

    def get_mask_sizes(self, *args: Any, **kwargs: Any) -> tuple[int, int]:
        """(KV length, offset) for a mask nobody builds: the attention name has no mask function."""
        return self.end + self._step, 0

    def get_max_cache_shape(self, *args: Any, **kwargs: Any) -> int:
        """Slots allocated."""
        return int(self.keys[0].shape[2])

    def __len__(self) -> int:
        return len(self.keys)

    def __bool__(self) -> bool:
        return True

    @property
    def is_compileable(self) -> bool:
        """No torch.compile path."""
        return False


def buffers(layers: int, rows: int, kv_heads: int, slots: int, dim: int, like: Tensor) -> list[Tensor]:
    """One uninitialised [rows, kv_heads, slots, dim] tensor per layer, of the type and device of `like`."""
    shape = (rows, kv_heads, slots, dim)
    return [torch.empty(shape, dtype=like.dtype, device=like.device) for _ in range(layers)]
