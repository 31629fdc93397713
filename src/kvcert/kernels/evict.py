"""Poisson draw and ordered compaction: from a full cache to a right-aligned retained cache."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.kernels.dispatch import resolve_backend
from kvcert.kernels.evict_torch import draw_torch, gather_torch
from kvcert.kernels.types import Evicted


class Draw(NamedTuple):
    """What names one draw. seed : 64-bit Philox key. layer < 2**16. example : 32-bit hash of model and example.

    draw : [R] numbers of the independent draws, < 2**24. stage : number of the compression, < 2**8.
    """

    seed: int
    layer: int
    example: int
    draw: list[int]
    stage: int


def evict(
    k: Tensor, v: Tensor, pi: Tensor, positions: Tensor | None = None, *,
    seed: int, layer: int, example: int, draw: int | list[int] = 0, stage: int = 0,
    log_pi: Tensor | None = None, begin: Tensor | None = None, room: int = 0, backend: str = "auto",
) -> Evicted:  # fmt: skip
    """Keep token i iff its 32-bit uniform is below floor(pi_i * 2**32); compact what is kept, in order.

    Parameters
    ----------
    k, v : [R, Hkv, n, D], last dimension contiguous (rows may be an expanded view of one context).
    pi : float64 [R, Hkv, n], inclusion probabilities of this stage given the earlier ones; 1 always keeps. The
        probability stored is floor(pi * 2**32) / 2**32, which is the true one.
    positions : int32 [R, Hkv, n] or [n], absolute positions (default 0..n-1): the counter of the draw.
    seed, layer, example, draw, stage : see `Draw`; `draw` is one number or one per row.
    log_pi : float32 [R, Hkv, n], cumulative log Pi before this stage (default 0).
    begin : int32 [R, Hkv], first valid slot of the input (default 0).
    room : slots to leave after the retained tokens, for those to come.

    Returns
    -------
    Evicted. Token order is kept; log_pi is the cumulative sum, computed in float64 and stored in float32.
    """
    rows, groups, n = pi.shape
    if k.shape[:3] != pi.shape or v.shape != k.shape or pi.dtype != torch.float64 or k.dtype != v.dtype:
        raise KvcertError(
            f"kernels.evict: pi must be float64 {tuple(k.shape[:3])} as k and v, got {pi.dtype} {tuple(pi.shape)}"
        )
    draws = [draw] * rows if isinstance(draw, int) else list(draw)
    if (
        len(draws) != rows
        or not all(0 <= x < 2**24 for x in draws)
        or not (0 <= stage < 256 and 0 <= layer < 2**16)
    ):
        raise KvcertError(
            f"kernels.evict: draw ({rows} numbers < 2**24), stage (< 256) or layer (< 65536) is out of range"
        )
    name = Draw(seed, layer, example & 0xFFFFFFFF, draws, stage)
    device = k.device
    if positions is None:
        positions = torch.arange(n, dtype=torch.int32, device=device)
    positions = positions.to(torch.int32).expand(rows, groups, n).contiguous()
    first = (
        torch.zeros(rows, groups, dtype=torch.int32, device=device) if begin is None else begin.contiguous()
    )
    pi = pi.contiguous()
    chosen = resolve_backend(backend, device.type)
    if chosen == "cpu":
        from kvcert.kernels.twin_evict import draw_cpu as draw_units
        from kvcert.kernels.twin_evict import gather_cpu as gather
    elif chosen == "cuda":
        from kvcert.kernels.cuda_evict import draw_cuda as draw_units
        from kvcert.kernels.cuda_evict import gather_cuda as gather
    else:
        draw_units, gather = draw_torch, gather_torch
    index, count = draw_units(pi, positions, first, name)
    end = int(count.max()) if count.numel() else 0
    prior = None if log_pi is None else log_pi.contiguous()
    parts = gather(k, v, pi, positions, prior, index, count, end, end + room)
    return Evicted(*parts, begin=(end - count).to(torch.int32), end=end)
