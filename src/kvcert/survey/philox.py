"""Philox4x32-10, the counter-based generator behind every draw (Salmon et al. 2011, "Parallel random numbers").

A uniform depends on its key and counter alone: the same bits on every device, in any batch and in any order.
"""

from __future__ import annotations

import torch
from torch import Tensor

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF


def _mulhilo(factor: int, x: Tensor) -> tuple[Tensor, Tensor]:
    # The product of two 32-bit words fits 64 bits; int64 wraps, its bits are the unsigned product's.
    product = x * factor
    return (product >> 32) & _MASK, product & _MASK


def philox4x32(
    key: tuple[int, int], counter: tuple[Tensor | int, Tensor | int, Tensor | int, Tensor | int]
) -> Tensor:
    """First output word of Philox4x32-10.

    Parameters
    ----------
    key : (low, high) 32-bit words of the seed.
    counter : four words (int64 tensors or ints, broadcast together), each taken modulo 2**32.

    Returns
    -------
    Tensor, int64, values in [0, 2**32), of the broadcast shape.
    """
    device = next((c.device for c in counter if isinstance(c, Tensor)), None)
    words = [torch.as_tensor(c, dtype=torch.int64, device=device) & _MASK for c in counter]
    c0, c1, c2, c3 = torch.broadcast_tensors(*words)
    k0, k1 = key
    for _ in range(10):
        high0, low0 = _mulhilo(_M0, c0)
        high1, low1 = _mulhilo(_M1, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return c0


def uniforms(
    seed: int, example_hash: int, positions: Tensor, layers: int, kv_heads: int, draw: int, stage: int = 0
) -> Tensor:
    """The 32-bit uniforms of one example's draw.

    Key = seed; counter = (position, layer * 2**16 + KV head, 32-bit hash of model and example, draw * 2**8 + stage).

    Parameters
    ----------
    positions : int64 [n], absolute positions.
    layers, kv_heads : counts, both below 2**16.
    draw, stage : number of the independent draw (< 2**24) and of the compression (< 2**8).

    Returns
    -------
    Tensor, int64 [layers, kv_heads, n], values in [0, 2**32).
    """
    device = positions.device
    unit = torch.arange(layers, device=device)[:, None] * 65536 + torch.arange(kv_heads, device=device)
    key = (seed & _MASK, (seed >> 32) & _MASK)
    return philox4x32(key, (positions, unit[..., None], example_hash, (draw << 8) | stage))
