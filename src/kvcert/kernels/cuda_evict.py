"""Draw and compaction on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvcert.kernels.cuda import aligned, kernel, launch, pointer
from kvcert.kernels.device import EVICT_NAMES, EVICT_SHARED, EVICT_WARPS, DeviceEvict

if TYPE_CHECKING:
    from kvcert.kernels.evict import Draw


def draw_cuda(pi: Tensor, positions: Tensor, begin: Tensor, name: Draw) -> tuple[Tensor, Tensor]:
    """As `draw_torch`."""
    rows, groups, n = pi.shape
    index = torch.empty(rows, groups, n, dtype=torch.int32, device=pi.device)
    count = torch.empty(rows, groups, dtype=torch.int32, device=pi.device)
    draw = torch.tensor(name.draw, dtype=torch.int32, device=pi.device)
    args = DeviceEvict(
        pi=pointer(pi), position=pointer(positions), begin=pointer(begin), draw=pointer(draw),
        index=pointer(index), count=pointer(count), Hkv=groups, n=n,
        seed_lo=name.seed & 0xFFFFFFFF, seed_hi=(name.seed >> 32) & 0xFFFFFFFF,
        layer=name.layer, example=name.example, stage=name.stage,
    )  # fmt: skip
    with torch.cuda.device(pi.device):
        launch(
            kernel(EVICT_NAMES[0], pi.device.index or 0),
            (rows * groups, 1, 1),
            EVICT_WARPS * 32,
            EVICT_SHARED,
            args,
        )
    return index, count


def gather_cuda(
    k: Tensor, v: Tensor, pi: Tensor, positions: Tensor, log_pi: Tensor | None,
    index: Tensor, count: Tensor, end: int, length: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """As `gather_torch`; slots outside [end - count, end) are left as they are."""
    rows, groups, n, dim = k.shape
    k, v = aligned(k, name="k"), aligned(v, name="v")
    k_out, v_out = (torch.empty(rows, groups, length, dim, dtype=k.dtype, device=k.device) for _ in range(2))
    log_out = torch.empty(rows, groups, length, device=k.device)
    position_out = torch.empty(rows, groups, length, dtype=torch.int32, device=k.device)
    args = DeviceEvict(
        pi=pointer(pi), position=pointer(positions), index=pointer(index), count=pointer(count), k=pointer(k),
        v=pointer(v), log_pi=pointer(log_pi), k_out=pointer(k_out), v_out=pointer(v_out),
        log_pi_out=pointer(log_out), position_out=pointer(position_out), Hkv=groups, n=n, end=end, length=length,
        row_bytes=dim * k.element_size(), element=k.element_size(),
        k0=k.stride(0), k1=k.stride(1), k2=k.stride(2), v0=v.stride(0), v1=v.stride(1), v2=v.stride(2),
    )  # fmt: skip
    if end:
        with torch.cuda.device(k.device):
            grid = (-(-end // EVICT_WARPS), rows * groups, 1)
            launch(kernel(EVICT_NAMES[1], k.device.index or 0), grid, EVICT_WARPS * 32, 0, args)
    return k_out, v_out, log_out, position_out
