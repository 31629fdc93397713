"""What the kernels return, and the checks of what they are given."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kvcert.errors import KvcertError

#: Order of the certificate's planes in the `stats` tensor of every backend.
STATS = ("lse", "variance", "bound", "radius", "guarded", "ess", "p_max", "p_sampled")


class Decoded(NamedTuple):
    """Certified attention of R rows, H query heads and T query positions.

    out : [R, H, T, D], o_hat, in the type of q. The rest are float32 [R, H, T]; all but `lse` are None without a
    certificate. lse : log of the Horvitz-Thompson normaliser (-inf for a query that saw no token). variance : V_hat.
    bound : B_hat, one-pass bound relative to the centre. radius : plug-in Bernstein radius, units of ||v||.
    guarded : radius / (1 - p_sampled). ess : 1 / sum p^2. p_max, p_sampled : largest weight, largest with Pi < 1.
    """

    out: Tensor
    lse: Tensor
    variance: Tensor | None = None
    bound: Tensor | None = None
    radius: Tensor | None = None
    guarded: Tensor | None = None
    ess: Tensor | None = None
    p_max: Tensor | None = None
    p_sampled: Tensor | None = None


class Evicted(NamedTuple):
    """The retained cache after one Poisson draw, right-aligned per (row, KV head): tokens lie in [begin, end).

    k, v : [R, Hkv, L, D], L = end + room; slots outside [begin, end) are uninitialised. log_pi : [R, Hkv, L] float32,
    cumulative. positions : [R, Hkv, L] int32, absolute. begin : [R, Hkv] int32. end : int.
    """

    k: Tensor
    v: Tensor
    log_pi: Tensor
    positions: Tensor
    begin: Tensor
    end: int


def pack(out: Tensor, stats: Tensor, dtype: torch.dtype) -> Decoded:
    """`Decoded` from a backend's out [R, H, T, D] and stats [1 or 8, R, H, T]."""
    return Decoded(out.to(dtype), *stats.unbind(0))


def check_decode(
    q: Tensor, k: Tensor, v: Tensor, log_pi: Tensor, begin: Tensor, end: int, centre: Tensor | None
) -> None:
    """Refuse shapes and types no backend accepts; one line that names the argument."""
    problem = None
    if q.dim() != 4 or k.dim() != 4 or k.shape != v.shape:
        shapes = ", ".join(str(tuple(x.shape)) for x in (q, k, v))
        problem = f"q [R,H,T,D], k and v [R,Hkv,L,D] of equal shape, got {shapes}"
    else:
        rows, heads, steps, dim = q.shape
        groups, length = k.shape[1:3]
        if k.shape[0] != rows or k.shape[3] != dim or groups == 0 or heads % groups:
            problem = f"k {tuple(k.shape)} does not match q {tuple(q.shape)} (rows, D, heads a multiple of KV heads)"
        elif not steps <= end <= length:
            problem = f"end = {end} must be at least T = {steps} and at most L = {length}"
        elif log_pi.shape != (rows, groups, length) or log_pi.dtype != torch.float32:
            problem = f"log_pi must be float32 [{rows}, {groups}, {length}], got {log_pi.dtype} {tuple(log_pi.shape)}"
        elif begin.shape != (rows, groups) or begin.dtype != torch.int32:
            problem = f"begin must be int32 [{rows}, {groups}], got {begin.dtype} {tuple(begin.shape)}"
        elif centre is not None and (centre.shape != (rows, groups, dim) or centre.dtype != torch.float32):
            problem = (
                f"centre must be float32 [{rows}, {groups}, {dim}], got {centre.dtype} {tuple(centre.shape)}"
            )
        elif k.dtype != v.dtype:
            problem = f"k and v must have one type, got {k.dtype} and {v.dtype}"
    if problem:
        raise KvcertError(f"kernels.decode: {problem}")
