"""The torch form of the draw and of the compaction: fallback on any device and reference of the other two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvcert.survey.inclusion import TWO32
from kvcert.survey.philox import philox4x32

if TYPE_CHECKING:
    from kvcert.kernels.evict import Draw


def thresholds(pi: Tensor) -> Tensor:
    """floor(pi * 2**32) as int64; 2**32 where the token is certain."""
    return (pi.clamp(0.0, 1.0) * TWO32).floor().to(torch.int64)


def draw_torch(pi: Tensor, positions: Tensor, begin: Tensor, name: Draw) -> tuple[Tensor, Tensor]:
    """index int32 [R, Hkv, n]: kept slots in order, left-aligned (the rest unspecified); count int32 [R, Hkv]."""
    _rows, groups, n = pi.shape
    device = pi.device
    unit = torch.arange(groups, device=device)[:, None] + (name.layer << 16)
    draw = torch.tensor(name.draw, device=device)[:, None, None] * 256 + name.stage
    key = (name.seed & 0xFFFFFFFF, (name.seed >> 32) & 0xFFFFFFFF)
    u32 = philox4x32(key, (positions.to(torch.int64), unit, name.example, draw))
    slots = torch.arange(n, device=device)
    keep = (u32 < thresholds(pi)) & (slots >= begin[..., None])
    # Kept slots sort before the others, each group in its own order.
    index = torch.where(keep, slots, slots + n).sort(-1).values % max(n, 1)
    return index.to(torch.int32), keep.sum(-1).to(torch.int32)


def gather_torch(
    k: Tensor, v: Tensor, pi: Tensor, positions: Tensor, log_pi: Tensor | None,
    index: Tensor, count: Tensor, end: int, length: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """k, v, log_pi, positions of the kept tokens, right-aligned at `end` in buffers of `length` slots."""
    slots = torch.arange(length, device=k.device)
    source = (slots - end + count[..., None]).clamp(0, max(index.shape[-1] - 1, 0))
    chosen = index.to(torch.int64).gather(-1, source)
    wide = chosen[..., None].expand(*chosen.shape, k.shape[-1])
    stored = (thresholds(pi).double() / TWO32).log()
    total = stored if log_pi is None else stored + log_pi.double()
    return (
        k.gather(2, wide),
        v.gather(2, wide),
        total.float().gather(-1, chosen),
        positions.gather(-1, chosen),
    )
