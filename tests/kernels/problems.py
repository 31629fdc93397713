"""Random and hostile decode problems, and the comparison with the float64 reference."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from kvcert.kernels.reference import decode_reference
from kvcert.kernels.types import STATS, Decoded

LEVEL = math.log(2.0 / 0.05)
#: Largest relative error (absolute below 1) allowed per figure, for float32, bfloat16 and float16 inputs alike: all
#: arithmetic is float32, so the input type changes the inputs and not the error of what is computed from them.
BOUNDS = {
    "lse": 2e-6,
    "variance": 1e-4,
    "bound": 5e-6,
    "radius": 2e-5,
    "guarded": 3e-5,
    "ess": 1e-5,
    "p_max": 5e-6,
    "p_sampled": 5e-6,
}
#: Rounding of the output to its type, on values of order 1 to 4.
OUT = {torch.float32: 5e-6, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}


def problem(
    rows: int, groups: int, per: int, steps: int, dim: int, length: int, *, dtype: torch.dtype = torch.float32,
    seed: int = 0, ragged: bool = True, centred: bool = True, spare: int = 3,
) -> dict[str, Any]:  # fmt: skip
    """Arguments of `decode`: k and v are views of larger buffers, everything outside [begin, end) is NaN."""
    g = torch.Generator().manual_seed(seed)
    q = torch.randn(rows, groups * per, steps, dim, generator=g).to(dtype)
    k = torch.randn(rows, groups, length + spare, dim, generator=g).to(dtype)
    v = (torch.randn(rows, groups, length + 2 * spare, dim, generator=g) + 1.0).to(dtype)[
        :, :, : length + spare
    ]
    pi = torch.rand(rows, groups, length + spare, generator=g).clamp_min(0.05)
    log_pi = torch.where(torch.rand(pi.shape, generator=g) < 0.4, 0.0, pi.log())
    log_pi[:, :, max(length - steps, 0) : length] = 0.0
    most = max(1, length - steps + 1)
    begin = torch.randint(0, most, (rows, groups), generator=g, dtype=torch.int32)
    begin = begin if ragged else torch.zeros_like(begin)
    centre = 1.0 + 0.1 * torch.randn(rows, groups, dim, generator=g) if centred else None
    made = {
        "q": q,
        "k": k,
        "v": v,
        "log_pi": log_pi,
        "begin": begin,
        "end": length,
        "scale": dim**-0.5,
        "centre": centre,
    }
    return poison(made)


def poison(p: dict[str, Any]) -> dict[str, Any]:
    """NaN in every slot outside [begin, end)."""
    slots = torch.arange(p["k"].shape[2])
    outside = (slots < p["begin"][..., None]) | (slots >= p["end"])
    for name in ("k", "v", "log_pi"):
        p[name][outside] = math.nan
    return p


def paged(p: dict[str, Any], page: int, seed: int = 0) -> dict[str, Any]:
    """The same problem with its cache cut into shuffled pages; unused pages hold NaN."""
    g = torch.Generator().manual_seed(seed)
    rows, groups, _, _dim = p["k"].shape
    count = -(-p["end"] // page)
    total = rows * count + 2
    table = torch.stack(
        [torch.randperm(total, generator=g)[: rows * count].view(rows, count) for _ in range(groups)], 1
    )
    pools = {
        n: torch.full((total, groups, page, *p[n].shape[3:]), math.nan, dtype=p[n].dtype)
        for n in ("k", "v", "log_pi")
    }
    for name, pool in pools.items():
        for r in range(rows):
            for h in range(groups):
                for c in range(count):
                    part = p[name][r, h, c * page : min((c + 1) * page, p["end"])]
                    pool[table[r, h, c], h, : part.shape[0]] = part
    return p | pools | {"pages": table.to(torch.int32)}


def reference(p: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Float64 out and stats of a contiguous problem."""
    return decode_reference(**{k: v for k, v in p.items() if k != "pages"}, level=LEVEL)


def agree(y: Decoded, want: tuple[Tensor, Tensor], *, loose: float = 1.0) -> None:
    """Assert that every figure is within its bound.

    The variance is a difference of sums of p^2 ||v - c||^2, so it may be off by 4e-6 of the largest of them, which is at
    most B_hat^2; where one sampled token holds nearly all weight, 1 - p_sampled and hence `guarded` cancel likewise.
    """
    out, stats = want
    size = max(1.0, float(out.abs().max()))
    error = float((y.out.double() - out).abs().max())
    assert error <= loose * OUT[y.out.dtype] * size, f"out: {error:.2e}"
    for name, ref in zip(STATS, stats, strict=True):
        got = getattr(y, name)
        if got is None:
            continue
        assert not got.isnan().any(), f"{name}: NaN"
        same = got.double() == ref
        if name == "guarded":
            same |= got.isinf() & (stats[7] > 1.0 - 2e-7)
        slack = {"variance": 4e-6 * stats[2].square(), "bound": 1e-6, "lse": 0.0}.get(name, 1e-7)
        gap = torch.where(same, 0.0, (got.double() - ref).abs() - loose * slack)
        limit = loose * BOUNDS[name] * ref.abs().clamp_min(1.0 if name == "lse" else 0.0)
        if name == "guarded":  # 1 - p_sampled cancels in float32
            limit = limit + 4e-7 * ref.abs() / (1.0 - stats[7]).clamp_min(1e-12)
        bad = gap > limit
        assert not bad.any(), (
            f"{name}: got {got[bad][0]:.6g}, want {ref[bad][0]:.6g} ({int(bad.sum())} wrong)"
        )
