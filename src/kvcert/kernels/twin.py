"""The CPU twin as torch operators, called through ctypes and a plain C ABI."""

from __future__ import annotations

import ctypes
from functools import cache

import torch  # first, so that its OpenMP runtime is the one the twin shares
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.kernels.build import build_twin
from kvcert.kernels.types import STATS

_P, _I, _U, _F = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32, ctypes.c_float
KINDS = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}


def _struct(name: str, *groups: tuple[type, str]) -> type[ctypes.Structure]:
    fields = [(field, kind) for kind, names in groups for field in names.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


_Decode = _struct(
    "_Decode",
    (_P, "q k v log_pi centre begin out stats"),
    (_I, "R H Hkv T D end kind k0 k1 k2 v0 v1 v2 p0 p1 threads certificate"),
    (_F, "scale level"),
)
_Evict = _struct(
    "_Evict",
    (_P, "pi position begin draw index count k v log_pi k_out v_out log_pi_out position_out"),
    (_I, "R Hkv n D bytes k0 k1 k2 v0 v1 v2 end length threads"),
    (_U, "seed_lo seed_hi layer example stage unused"),
)


@cache
def library() -> ctypes.CDLL:
    """The compiled twin, built at first use; refuses a library whose structures differ from ours."""
    lib = ctypes.CDLL(str(build_twin()))
    if lib.kvcert_abi() != ctypes.sizeof(_Decode) * 1000 + ctypes.sizeof(_Evict):
        raise KvcertError("kernels: the compiled twin does not match this package; empty KVCERT_KERNEL_CACHE")
    return lib


def _pointer(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


def _flat(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def decode_twin(
    q: Tensor, k: Tensor, v: Tensor, log_pi: Tensor, begin: Tensor, end: int, scale: float,
    centre: Tensor | None, certificate: bool, level: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Certified attention; see `kvcert.kernels.decode`. Returns out [R, H, T, D] float32 and stats [8 or 1, R, H, T]."""
    rows, heads, steps, dim = q.shape
    q, k, v, log_pi, begin = q.float().contiguous(), _flat(k), _flat(v), _flat(log_pi), begin.contiguous()
    centre = None if centre is None else centre.contiguous()
    out = torch.empty(rows, heads, steps, dim)
    stats = torch.empty(len(STATS) if certificate else 1, rows, heads, steps)
    args = _Decode(
        *map(_pointer, (q, k, v, log_pi, centre, begin, out, stats)),
        rows, heads, k.shape[1], steps, dim, end, KINDS[k.dtype], *k.stride()[:3], *v.stride()[:3], *log_pi.stride()[:2],
        torch.get_num_threads(), certificate, scale, level,
    )  # fmt: skip
    library().kvcert_decode(ctypes.byref(args))
    return out, stats


#: The same function as a torch operator, for compiled and traced programs; eager callers skip its 10 us of dispatch.
decode_cpu = torch.library.custom_op("kvcert::decode_cpu", decode_twin, mutates_args=(), device_types="cpu")


@decode_cpu.register_fake
def _(q, k, v, log_pi, begin, end, scale, centre, certificate, level):
    out = q.new_empty(q.shape, dtype=torch.float32)
    return out, q.new_empty((len(STATS) if certificate else 1, *q.shape[:3]), dtype=torch.float32)
