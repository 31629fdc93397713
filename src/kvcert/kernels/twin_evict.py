"""Draw and compaction of the CPU twin, through ctypes."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvcert.kernels.twin import _Evict, _flat, _pointer, library

if TYPE_CHECKING:
    from kvcert.kernels.evict import Draw


def draw_cpu(pi: Tensor, positions: Tensor, begin: Tensor, name: Draw) -> tuple[Tensor, Tensor]:
    """As `draw_torch`."""
    rows, groups, n = pi.shape
    index = torch.empty(rows, groups, n, dtype=torch.int32)
    count = torch.empty(rows, groups, dtype=torch.int32)
    draw = torch.tensor(name.draw, dtype=torch.int32)
    args = _Evict(
        pi=_pointer(pi), position=_pointer(positions), begin=_pointer(begin), draw=_pointer(draw),
        index=_pointer(index), count=_pointer(count), R=rows, Hkv=groups, n=n, threads=torch.get_num_threads(),
        seed_lo=name.seed & 0xFFFFFFFF, seed_hi=(name.seed >> 32) & 0xFFFFFFFF,
        layer=name.layer, example=name.example, stage=name.stage,
    )  # fmt: skip
    library().kvcert_draw(ctypes.byref(args))
    return index, count


def gather_cpu(
    k: Tensor, v: Tensor, pi: Tensor, positions: Tensor, log_pi: Tensor | None,
    index: Tensor, count: Tensor, end: int, length: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """As `gather_torch`; slots outside [end - count, end) are left as they are."""
    rows, groups, n, dim = k.shape
    k, v = _flat(k), _flat(v)
    k_out, v_out = (torch.empty(rows, groups, length, dim, dtype=k.dtype) for _ in range(2))
    log_out = torch.empty(rows, groups, length)
    position_out = torch.empty(rows, groups, length, dtype=torch.int32)
    args = _Evict(
        pi=_pointer(pi), position=_pointer(positions), index=_pointer(index), count=_pointer(count),
        k=_pointer(k), v=_pointer(v), log_pi=_pointer(log_pi), k_out=_pointer(k_out), v_out=_pointer(v_out),
        log_pi_out=_pointer(log_out), position_out=_pointer(position_out),
        R=rows, Hkv=groups, n=n, D=dim, bytes=k.element_size(), length=length, end=end, threads=torch.get_num_threads(),
        k0=k.stride(0), k1=k.stride(1), k2=k.stride(2), v0=v.stride(0), v1=v.stride(1), v2=v.stride(2),
    )  # fmt: skip
    library().kvcert_gather(ctypes.byref(args))
    return k_out, v_out, log_out, position_out
