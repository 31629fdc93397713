"""The device path: load NVRTC-compiled kernels through the public CUDA driver bindings and launch them."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.kernels.device import EVICT_NAMES
from kvcert.kernels.nvrtc import cached_cubin


def library() -> None:
    """Raise KvcertError unless a GPU of compute capability 7.5 or newer and NVRTC are usable here."""
    if not torch.cuda.is_available():
        raise KvcertError(
            "kernels: the cuda backend needs a CUDA build of torch and a GPU; choose backend: cpu or torch"
        )
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
        raise KvcertError(
            "kernels: the cuda backend needs cuda-bindings; pip install 'kvcert[kernels]'"
        ) from problem
    major, minor = torch.cuda.get_device_capability(device)
    path, symbol = cached_cubin(name, major * 10 + minor)
    with torch.cuda.device(device):
        torch.cuda.current_stream().synchronize()  # makes torch's context current
        module = _call(driver.cuModuleLoadData(path.read_bytes()), f"loading {path}")
        return _call(driver.cuModuleGetFunction(module, symbol.encode()), symbol)


def launch(
    function: Any, grid: tuple[int, int, int], threads: int, shared: int, args: ctypes.Structure
) -> None:
    from cuda.bindings import driver

    slots = (ctypes.c_void_p * 1)(ctypes.addressof(args))
    stream = torch.cuda.current_stream().cuda_stream
    _call(
        driver.cuLaunchKernel(function, *grid, threads, 1, 1, shared, stream, ctypes.addressof(slots), 0),
        "launch",
    )


def aligned(x: Tensor, *, name: str) -> Tensor:
    size = x.element_size()
    ok = x.stride(-1) == 1 and x.data_ptr() % 16 == 0 and all(s * size % 16 == 0 for s in x.stride()[:-1])
    if not ok and name in "kv":
        raise KvcertError(f"kernels: {name} on cuda needs 16-byte aligned rows; strides {x.stride()}")
    return x if ok else x.contiguous()


def pointer(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
