"""One door to three backends: `cuda` (NVRTC kernels), `cpu` (compiled twin), `torch` (grouped expression)."""

from __future__ import annotations

import importlib
import math
import warnings
from functools import cache

import torch
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.kernels.grouped import decode_grouped
from kvcert.kernels.paged import check_pages, flatten_pages
from kvcert.kernels.types import Decoded, check_decode, pack

BACKENDS = ("auto", "cuda", "cpu", "torch")


@cache
def missing(backend: str) -> str | None:
    """Why a backend cannot be used here (one line), or None when it can. The answer is computed once per process."""
    if backend == "torch":
        return None
    try:
        importlib.import_module(
            "kvcert.kernels.cuda" if backend == "cuda" else "kvcert.kernels.twin"
        ).library()
    except (KvcertError, ImportError, OSError) as problem:
        return str(problem)
    return None


@cache
def resolve_backend(name: str = "auto", device: str | torch.device = "cpu") -> str:
    """The backend that `name` means on `device`: `cuda`, `cpu` or `torch`. This is what a run's log records.

    `auto` takes the compiled backend of the device and falls back to `torch` with one warning.

    Raises
    ------
    KvcertError
        Unknown name, a backend that is missing here, or one that cannot work on this device.
    """
    kind = torch.device(device).type
    if name not in BACKENDS:
        raise KvcertError(f"kernels: unknown backend {name!r}; choose one of {', '.join(BACKENDS)}")
    if name == "auto":
        best = kind if kind in ("cpu", "cuda") else "torch"
        why = missing(best)
        if why:
            warnings.warn(f"kernels: backend auto falls back to torch: {why}", RuntimeWarning, stacklevel=2)
            return "torch"
        return best
    if name != "torch" and kind != name:
        raise KvcertError(f"kernels: backend {name} cannot work on device {device}; choose auto or torch")
    why = missing(name)
    if why:
        raise KvcertError(why)
    return name


def decode(
    q: Tensor, k: Tensor, v: Tensor, log_pi: Tensor, begin: Tensor, end: int, *,
    scale: float, centre: Tensor | None = None, certificate: bool = False, delta: float = 0.05, backend: str = "auto",
    pages: Tensor | None = None,
) -> Decoded:  # fmt: skip
    """Softmax attention over a retained cache, with the eviction certificate in the same pass.

    Parameters
    ----------
    q : [R, H, T, D]. The last T slots of [0, end) are the tokens of these queries: query t sees [begin, end - T + t].
    k, v : [R, Hkv, L, D], any strides on the first three dimensions; slots outside [begin, end) may hold anything.
    log_pi : float32 [R, Hkv, L], log of the cumulative inclusion probability Pi, 0 where a token was certain.
    begin : int32 [R, Hkv], first valid slot. end : number of valid slots, counted from slot 0.
    scale : factor of q.k; the logits are q.k * scale - log_pi.
    centre : float32 [R, Hkv, D], reference centre c of the moments (None = 0).
    certificate : False returns out and lse only.
    delta : one minus the nominal coverage.
    backend : "auto", "cuda", "cpu" or "torch"; see `resolve_backend`.
    pages : int32 [R, Hkv, P], page table of a paged cache: k, v are then pools [N, Hkv, page, D], log_pi [N, Hkv, page],
        page a power of two, and slot j of (row, KV head) lies in page `pages[row, head, j // page]`.

    Raises
    ------
    KvcertError
        A shape, a type or a backend that cannot be used.
    """
    chosen, level = resolve_backend(backend, q.device.type), math.log(2.0 / delta)
    if pages is not None:
        check_pages(k, log_pi, pages, end)
        if chosen != "cuda":
            k, v, log_pi = flatten_pages(k, v, log_pi, pages)
    if pages is None or chosen != "cuda":
        check_decode(q, k, v, log_pi, begin, end, centre)
    if chosen == "cpu" and (q.shape[-1] % 8 or k.dtype not in (torch.float32, torch.bfloat16, torch.float16)):
        if backend == "cpu":
            raise KvcertError(
                f"kernels: backend cpu needs D % 8 == 0 and fp32/bf16/fp16, got D = {q.shape[-1]}, {k.dtype}"
            )
        chosen = "torch"
    if chosen == "torch":
        out, stats = decode_grouped(
            q, k, v, log_pi, begin, end, scale=scale, centre=centre, certificate=certificate, level=level
        )
    elif chosen == "cpu":
        from kvcert.kernels.twin import decode_cpu, decode_twin

        eager = type(q) is Tensor and not torch.compiler.is_compiling()
        out, stats = (decode_twin if eager else decode_cpu)(
            q, k, v, log_pi, begin, end, scale, centre, certificate, level
        )
    else:
        from kvcert.kernels.cuda_decode import decode_cuda

        out, stats = decode_cuda(q, k, v, log_pi, begin, end, scale, centre, certificate, level, pages)
    return pack(out, stats, q.dtype)
