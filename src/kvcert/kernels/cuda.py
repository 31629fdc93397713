"""The device path: load the NVRTC-compiled kernels through the public CUDA driver bindings and launch them."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.kernels.device import (
    EVICT_NAMES, EVICT_SHARED, EVICT_WARPS, TYPES, WARPS, DeviceDecode, DeviceEvict, decode_names, plan_decode,
)  # fmt: skip
from kvcert.kernels.nvrtc import cached_cubin
from kvcert.kernels.paged import check_pages
from kvcert.kernels.types import STATS

if TYPE_CHECKING:
    from kvcert.kernels.evict import Draw


def library() -> None:
    """Raise KvcertError unless a GPU of compute capability 7.5 or newer and NVRTC are usable here."""
    if not torch.cuda.is_available():
        raise KvcertError("kernels: the cuda backend needs a CUDA build of torch and a GPU; choose backend: cpu or torch")
    if torch.cuda.get_device_capability() < (7, 5):
        raise KvcertError("kernels: the cuda backend needs compute capability 7.5; choose backend: torch")
    kernel(EVICT_NAMES[0], torch.cuda.current_device())


def _call(result: tuple[Any, ...], what: str) -> Any:
    if int(result[0]):
        raise KvcertError(f"kernels: CUDA driver: {what} failed with {result[0].name}")
    return result[1] if len(result) > 1 else None


@cache
def kernel(name: str, device: int) -> Any:
    """The loaded function of one instantiation on one device."""
    try:
        from cuda.bindings import driver
    except ImportError as problem:
        raise KvcertError("kernels: the cuda backend needs cuda-bindings; pip install 'kvcert[kernels]'") from problem
    major, minor = torch.cuda.get_device_capability(device)
    path, symbol = cached_cubin(name, major * 10 + minor)
    with torch.cuda.device(device):
        torch.cuda.current_stream().synchronize()  # makes torch's context current
        module = _call(driver.cuModuleLoadData(path.read_bytes()), f"loading {path}")
        return _call(driver.cuModuleGetFunction(module, symbol.encode()), symbol)


def _launch(function: Any, grid: tuple[int, int, int], threads: int, shared: int, args: ctypes.Structure) -> None:
    from cuda.bindings import driver

    slots = (ctypes.c_void_p * 1)(ctypes.addressof(args))
    stream = torch.cuda.current_stream().cuda_stream
    _call(driver.cuLaunchKernel(function, *grid, threads, 1, 1, shared, stream, ctypes.addressof(slots), 0), "launch")


def _aligned(x: Tensor, *, name: str) -> Tensor:
    size = x.element_size()
    ok = x.stride(-1) == 1 and x.data_ptr() % 16 == 0 and all(s * size % 16 == 0 for s in x.stride()[:-1])
    if not ok and name in "kv":
        raise KvcertError(f"kernels: {name} on cuda needs 16-byte aligned rows; strides {x.stride()}")
    return x if ok else x.contiguous()


def _pointer(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


def decode_cuda(
    q: Tensor, k: Tensor, v: Tensor, log_pi: Tensor, begin: Tensor, end: int, scale: float,
    centre: Tensor | None, certificate: bool, level: float, pages: Tensor | None = None, splits: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """As `kvcert.kernels.decode` on a GPU: out [R, H, T, D] in the type of q, stats [8 or 1, R, H, T] float32."""
    rows, heads, steps, dim = q.shape
    groups = k.shape[1]
    if q.dtype != k.dtype or q.dtype not in TYPES:
        raise KvcertError(f"kernels: q, k, v on cuda need one type of fp32, bf16, fp16; got {q.dtype} and {k.dtype}")
    q, k, v = q.contiguous(), _aligned(k, name="k"), _aligned(v, name="v")
    log_pi = log_pi if log_pi.stride(-1) == 1 else log_pi.contiguous()
    begin, centre = begin.contiguous(), None if centre is None else centre.contiguous()
    shift = 0 if pages is None else check_pages(k, log_pi, pages, end)
    pages = None if pages is None else pages.to(torch.int32).contiguous()
    device = q.device.index or 0
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    plan = plan_decode(rows, heads, groups, steps, dim, end, certificate, processors=processors, splits=splits)
    partial = torch.empty(rows * heads * steps * plan.splits * plan.record, device=q.device)
    out = torch.empty_like(q)
    stats = torch.empty(len(STATS) if certificate else 1, rows, heads, steps, device=q.device)
    table = (0, 0) if pages is None else pages.stride()[:2]
    args = DeviceDecode(
        *map(_pointer, (q, k, v, log_pi, centre if certificate else None, begin, pages, partial, out, stats)),
        *k.stride()[:3], *v.stride()[:3], *log_pi.stride()[:2], *table,
        heads, groups, steps, end, heads // groups * steps, plan.chunks, plan.splits, plan.keys, shift,
        rows * heads * steps, scale, level,
    )  # fmt: skip
    first, second = (kernel(name, device) for name in decode_names(q.dtype, dim, plan.rows, certificate))
    with torch.cuda.device(device):
        _launch(first, plan.grid, WARPS * 32, plan.shared, args)
        _launch(second, (rows * heads * steps, 1, 1), dim, plan.combine_shared, args)
    return out, stats


def draw_cuda(pi: Tensor, positions: Tensor, begin: Tensor, name: Draw) -> tuple[Tensor, Tensor]:
    """As `draw_torch`."""
    rows, groups, n = pi.shape
    index = torch.empty(rows, groups, n, dtype=torch.int32, device=pi.device)
    count = torch.empty(rows, groups, dtype=torch.int32, device=pi.device)
    draw = torch.tensor(name.draw, dtype=torch.int32, device=pi.device)
    args = DeviceEvict(
        pi=_pointer(pi), position=_pointer(positions), begin=_pointer(begin), draw=_pointer(draw),
        index=_pointer(index), count=_pointer(count), Hkv=groups, n=n,
        seed_lo=name.seed & 0xFFFFFFFF, seed_hi=(name.seed >> 32) & 0xFFFFFFFF,
        layer=name.layer, example=name.example, stage=name.stage,
    )  # fmt: skip
    with torch.cuda.device(pi.device):
        _launch(kernel(EVICT_NAMES[0], pi.device.index or 0), (rows * groups, 1, 1), EVICT_WARPS * 32, EVICT_SHARED, args)
    return index, count


def gather_cuda(
    k: Tensor, v: Tensor, pi: Tensor, positions: Tensor, log_pi: Tensor | None,
    index: Tensor, count: Tensor, end: int, length: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """As `gather_torch`; slots outside [end - count, end) are left as they are."""
    rows, groups, n, dim = k.shape
    k, v = _aligned(k, name="k"), _aligned(v, name="v")
    k_out, v_out = (torch.empty(rows, groups, length, dim, dtype=k.dtype, device=k.device) for _ in range(2))
    log_out = torch.empty(rows, groups, length, device=k.device)
    position_out = torch.empty(rows, groups, length, dtype=torch.int32, device=k.device)
    args = DeviceEvict(
        pi=_pointer(pi), position=_pointer(positions), index=_pointer(index), count=_pointer(count), k=_pointer(k),
        v=_pointer(v), log_pi=_pointer(log_pi), k_out=_pointer(k_out), v_out=_pointer(v_out),
        log_pi_out=_pointer(log_out), position_out=_pointer(position_out), Hkv=groups, n=n, end=end, length=length,
        row_bytes=dim * k.element_size(), element=k.element_size(),
        k0=k.stride(0), k1=k.stride(1), k2=k.stride(2), v0=v.stride(0), v1=v.stride(1), v2=v.stride(2),
    )  # fmt: skip
    if end:
        with torch.cuda.device(k.device):
            grid = (-(-end // EVICT_WARPS), rows * groups, 1)
            _launch(kernel(EVICT_NAMES[1], k.device.index or 0), grid, EVICT_WARPS * 32, 0, args)
    return k_out, v_out, log_out, position_out
