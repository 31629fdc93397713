"""Certified decode on a GPU: two launches, split and combine."""

from __future__ import annotations

import torch
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.kernels.cuda import aligned, kernel, launch, pointer
from kvcert.kernels.device import TYPES, WARPS, DeviceDecode, decode_names, plan_decode
from kvcert.kernels.paged import check_pages
from kvcert.kernels.types import STATS


def decode_cuda(
    q: Tensor, k: Tensor, v: Tensor, log_pi: Tensor, begin: Tensor, end: int, scale: float,
    centre: Tensor | None, certificate: bool, level: float, pages: Tensor | None = None, splits: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """As `kvcert.kernels.decode` on a GPU: out [R, H, T, D] in the type of q, stats [8 or 1, R, H, T] float32."""
    rows, heads, steps, dim = q.shape
    groups = k.shape[1]
    if q.dtype != k.dtype or q.dtype not in TYPES:
        raise KvcertError(
            f"kernels: q, k, v on cuda need one type of fp32, bf16, fp16; got {q.dtype} and {k.dtype}"
        )
    q, k, v = q.contiguous(), aligned(k, name="k"), aligned(v, name="v")
    log_pi = log_pi if log_pi.stride(-1) == 1 else log_pi.contiguous()
    begin, centre = begin.contiguous(), None if centre is None else centre.contiguous()
    shift = 0 if pages is None else check_pages(k, log_pi, pages, end)
    pages = None if pages is None else pages.to(torch.int32).contiguous()
    device = q.device.index or 0
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    plan = plan_decode(
        rows, heads, groups, steps, dim, end, certificate, processors=processors, splits=splits
    )
    partial = torch.empty(rows * heads * steps * plan.splits * plan.record, device=q.device)
    out = torch.empty_like(q)
    stats = torch.empty(len(STATS) if certificate else 1, rows, heads, steps, device=q.device)
    table = (0, 0) if pages is None else pages.stride()[:2]
    args = DeviceDecode(
        *map(pointer, (q, k, v, log_pi, centre if certificate else None, begin, pages, partial, out, stats)),
        *k.stride()[:3], *v.stride()[:3], *log_pi.stride()[:2], *table,
        heads, groups, steps, end, heads // groups * steps, plan.chunks, plan.splits, plan.keys, shift,
        rows * heads * steps, scale, level,
    )  # fmt: skip
    first, second = (kernel(name, device) for name in decode_names(q.dtype, dim, plan.rows, certificate))
    with torch.cuda.device(device):
        launch(first, plan.grid, WARPS * 32, plan.shared, args)
        launch(second, (rows * heads * steps, 1, 1), dim, plan.combine_shared, args)
    return out, stats
