"""One prepared check of the device kernels on a GPU: correctness, bit-equal draws, timings. At most five minutes.

    python benchmarks/device_check.py [--out docs/device] [--device cuda|cpu]

Needs torch, numpy and kvcert.kernels only. Writes `<name>.json` and `<name>.md` into --out; the exit status is 0 when
every correctness check passed. `--device cpu` rehearses the script with the CPU twin (its timings are then of the CPU).
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from kvcert.kernels import decode, evict, resolve_backend
from kvcert.kernels.reference import decode_reference
from kvcert.kernels.types import STATS

LEVEL = math.log(2.0 / 0.05)
#: Largest relative error per figure; the exponential on a GPU is `__expf`, a few units in the last place worse.
BOUNDS = {
    "lse": 1e-5,
    "variance": 3e-4,
    "bound": 3e-5,
    "radius": 1e-4,
    "guarded": 2e-4,
    "ess": 1e-4,
    "p_max": 3e-5,
    "p_sampled": 3e-5,
}
OUT = {torch.float32: 2e-5, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}
#: rows, KV heads, query heads per KV head, query positions, head dimension, tokens
SHAPES = [
    (2, 2, 3, 1, 64, 450), (1, 2, 1, 1, 64, 65), (2, 2, 4, 1, 128, 1000), (1, 2, 8, 1, 128, 777), (1, 2, 2, 1, 256, 130),
    (2, 1, 4, 1, 96, 333), (1, 2, 4, 5, 128, 90), (1, 1, 3, 12, 64, 200), (1, 1, 5, 1, 128, 64), (1, 1, 1, 1, 64, 1),
]  # fmt: skip
#: rows, KV heads, group, head dimension, retained tokens (bf16)
TIMED = [(b, 8, 4, 128, n) for n in (1024, 4096, 16384) for b in (1, 8, 32)] + [(1, 8, 4, 128, 65536)]


def problem(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> dict[str, Any]:
    """A decode on the CPU with ragged begins, sampled and certain tokens, and NaN outside the valid slots."""
    rows, groups, per, steps, dim, n = shape
    g = torch.Generator().manual_seed(seed)
    q = torch.randn(rows, groups * per, steps, dim, generator=g).to(dtype)
    k, v = (torch.randn(rows, groups, n + 8, dim, generator=g).to(dtype) for _ in range(2))
    log_pi = torch.where(
        torch.rand(rows, groups, n + 8, generator=g) < 0.4,
        0.0,
        -4 * torch.rand(rows, groups, n + 8, generator=g),
    )
    begin = torch.randint(0, max(1, n - steps + 1), (rows, groups), generator=g, dtype=torch.int32)
    slots = torch.arange(n + 8)
    outside = (slots < begin[..., None]) | (slots >= n)
    for x in (k, v, log_pi):
        x[outside] = math.nan
    centre = 0.1 * torch.randn(rows, groups, dim, generator=g)
    return {
        "q": q,
        "k": k,
        "v": v,
        "log_pi": log_pi,
        "begin": begin,
        "end": n,
        "scale": dim**-0.5,
        "centre": centre,
    }


def moved(p: dict[str, Any], device: str) -> dict[str, Any]:
    """The same problem on a device."""
    return {name: x.to(device) if isinstance(x, torch.Tensor) else x for name, x in p.items()}


def paged(p: dict[str, Any], page: int) -> dict[str, Any]:
    """The same cache in pages of `page` slots, in reversed order."""
    rows, groups, _length, _ = p["k"].shape
    count = -(-p["end"] // page)
    table = torch.arange(rows * count).flip(0).view(rows, 1, count).expand(-1, groups, -1).to(torch.int32)
    pools = {}
    for name in ("k", "v", "log_pi"):
        x = p[name][:, :, : p["end"]]
        padded = torch.full((rows, groups, count * page, *x.shape[3:]), math.nan, dtype=x.dtype)
        padded[:, :, : p["end"]] = x
        cut = padded.view(rows, groups, count, page, *x.shape[3:]).transpose(1, 2).flatten(0, 1)
        pools[name] = cut[torch.argsort(table[:, 0].flatten().long())].contiguous()
    return p | pools | {"pages": table.contiguous()}


def worst(y: Any, want: tuple[torch.Tensor, torch.Tensor], dtype: torch.dtype) -> dict[str, float]:
    """Largest error of every figure as a share of its bound: above 1 is a failure."""
    out, stats = want
    size = max(1.0, float(out.abs().max()))
    shares = {"out": float((y.out.cpu().double() - out).abs().max()) / (OUT[dtype] * size)}
    for name, ref in zip(STATS, stats, strict=True):
        got = getattr(y, name).cpu().double()
        limit = BOUNDS[name] * (ref.abs().clamp_min(1.0) if name == "lse" else ref.abs()) + 1e-6
        if name == "variance":
            limit = limit + 1e-5 * stats[2].square()
        if name == "guarded":
            limit = limit + 2e-6 * ref.abs() / (1.0 - stats[7]).clamp_min(1e-12)
        same = (got == ref) | (got.isinf() & (stats[7] > 1.0 - 1e-5))
        share = float(torch.where(same, 0.0, (got - ref).abs() / limit).max())
        shares[name] = math.inf if math.isnan(share) else share
    return shares


def correctness(device: str) -> dict[str, Any]:
    """Every shape in every type, contiguous and paged, against float64."""
    total: dict[str, float] = {}
    cases = 0
    for seed, shape in enumerate(SHAPES):
        for dtype in OUT:
            p = problem(shape, dtype, seed)
            want = decode_reference(**p, level=LEVEL)
            for case in (p, paged(p, 32)):
                for name, share in worst(
                    decode(**moved(case, device), certificate=True), want, dtype
                ).items():
                    total[name] = max(total.get(name, 0.0), share)
                cases += 1
            plain = decode(**moved(p, device))
            total["plain"] = max(
                total.get("plain", 0.0),
                worst(
                    plain._replace(**{n: y for n, y in zip(STATS, want[1], strict=True) if n != "lse"}),
                    want,
                    dtype,
                )["out"],
            )
    return {"passed": max(total.values()) <= 1.0, "cases": cases, "worst_error_over_bound": total}


def draws(device: str) -> dict[str, Any]:
    """Inclusion sets and compacted caches of 1,000 units, device against the torch form on the CPU."""
    g = torch.Generator().manual_seed(1)
    units = wrong = 0
    while units < 1000:
        rows, groups, n = 5, 8, int(torch.randint(1, 3000, (), generator=g))
        pi = torch.rand(rows, groups, n, generator=g, dtype=torch.float64).square()
        pi[pi > 0.7] = 1.0
        pi[pi < 0.01] = 1e-6
        k = torch.randn(rows, groups, n, 64, generator=g)
        named = {
            "seed": 2607 + (units << 33),
            "layer": units % 31,
            "example": units * 7919,
            "draw": list(range(rows)),
            "stage": units % 3,
        }
        a = evict(k, -k, pi, **named, backend="torch")
        b = evict(k.to(device), -k.to(device), pi.to(device), **named)
        kept = torch.arange(a.end) >= a.begin[..., None]
        same = a.end == b.end and torch.equal(a.begin, b.begin.cpu())
        same = same and all(
            torch.equal(x[kept], y.cpu()[kept])
            for x, y in ((a.k, b.k), (a.v, b.v), (a.positions, b.positions))
        )
        same = same and torch.allclose(a.log_pi[kept], b.log_pi.cpu()[kept], rtol=1e-6, atol=0.0)
        wrong += not same
        units += rows * groups
    return {"passed": wrong == 0, "units": units, "batches_wrong": wrong}


def clock(call: Callable[[], Any], device: str, seconds: float = 0.25) -> float:
    """Median microseconds of a call; on a GPU by events, many calls between two of them."""
    call()
    if device == "cpu":
        spans = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(spans) < 3:
            start = time.perf_counter()
            call()
            spans.append(time.perf_counter() - start)
        return 1e6 * statistics.median(spans)
    torch.cuda.synchronize()
    spans = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(spans) < 5:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(10):
            call()
        last.record()
        torch.cuda.synchronize()
        spans.append(100.0 * first.elapsed_time(last))
    return statistics.median(spans)


def graphed(call: Callable[[], Any], device: str) -> Callable[[], Any]:
    """The call captured as a CUDA graph, so that Python's launch cost is not what is timed."""
    if device == "cpu":
        return call
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def bandwidth(device: str) -> float:
    """Measured copy bandwidth in bytes per second, read plus write."""
    n = 2**30 if device != "cpu" else 2**26
    a = torch.empty(n, dtype=torch.uint8, device=device)
    b = torch.empty_like(a)
    return 2 * n / (1e-6 * clock(lambda: b.copy_(a), device))


def timings(device: str) -> dict[str, Any]:
    """Certified decode against plain, SDPA, flash-attn if importable, and torch's two-pass certificate."""
    try:
        from flash_attn import flash_attn_with_kvcache
    except ImportError:
        flash_attn_with_kvcache = None
    copy, dtype = bandwidth(device), torch.bfloat16 if device != "cpu" else torch.float32
    rows_out = []
    for rows, groups, per, dim, n in TIMED if device != "cpu" else TIMED[:1]:
        g = torch.Generator(device).manual_seed(0)
        q = torch.randn(rows, groups * per, 1, dim, generator=g, device=device, dtype=dtype)
        k, v = (torch.randn(rows, groups, n, dim, generator=g, device=device, dtype=dtype) for _ in range(2))
        log_pi = -3 * torch.rand(rows, groups, n, generator=g, device=device)
        begin, centre = torch.zeros(rows, groups, dtype=torch.int32, device=device), v.float().mean(2)
        ours = {"q": q, "k": k, "v": v, "log_pi": log_pi, "begin": begin, "end": n, "scale": dim**-0.5}
        calls: dict[str, Callable[[], Any]] = {
            "certificate": lambda ours=ours, c=centre: decode(**ours, centre=c, certificate=True),
            "plain": lambda ours=ours: decode(**ours),
            "sdpa": lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
            "two_pass": lambda ours=ours, c=centre: decode(
                **ours, centre=c, certificate=True, backend="torch"
            ),
        }
        if flash_attn_with_kvcache and device != "cpu":
            fq, fk, fv = (x.transpose(1, 2).contiguous() for x in (q, k, v))
            calls["flash"] = lambda q=fq, k=fk, v=fv: flash_attn_with_kvcache(q, k, v)
        row: dict[str, Any] = {"shape": [rows, groups, per, dim, n]}
        for name, call in calls.items():
            try:
                row[name] = clock(graphed(call, device), device)
            except Exception as problem:
                row[name], row[f"{name}_problem"] = None, str(problem)[:200]
            row[f"{name}_eager"] = clock(call, device, 0.1)
        if row["certificate"]:
            row["copy_bandwidth_share"] = (
                2 * k.numel() * k.element_size() / (1e-6 * row["certificate"]) / copy
            )
        rows_out.append(row)
    return {"copy_bandwidth_GBps": copy / 1e9, "unit": "microseconds per call, median", "cells": rows_out}


def table(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    lines = [
        f"# Device check: {report['device']}",
        "",
        f"{report['versions']}, {report['date']}, {report['seconds']:.0f} s",
        "",
    ]
    lines += [
        f"* {part}: {'passed' if report[part].get('passed') else 'FAILED'} `{json.dumps(report[part])}`"
        for part in ("correctness", "draws")
    ]
    names = ("certificate", "plain", "sdpa", "flash", "two_pass")
    lines += [
        "",
        "| rows, KV heads, group, D, tokens | "
        + " | ".join(f"{n} µs" for n in names)
        + " | share of copy bandwidth |",
        "|---" * 7 + "|",
    ]
    for row in report["timings"].get("cells", []):
        figures = [f"{row[n]:.1f}" if row.get(n) else "–" for n in names]
        lines.append(
            f"| {row['shape']} | "
            + " | ".join(figures)
            + f" | {row.get('copy_bandwidth_share', math.nan):.2f} |"
        )
    return "\n".join(lines) + "\n"


def guarded(call: Callable[[str], dict[str, Any]], device: str) -> dict[str, Any]:
    """A part that fails is reported; the others still run."""
    try:
        return call(device)
    except Exception as problem:
        return {"passed": False, "problem": f"{type(problem).__name__}: {problem}"[:500]}


def main() -> int:
    """Run all parts, write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("docs/device"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    device, start = options.device, time.perf_counter()
    backend = resolve_backend(device, device)  # a missing GPU or NVRTC is told here
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU rehearsal, no GPU"
    report: dict[str, Any] = {
        "device": name, "backend": backend, "date": time.strftime("%Y-%m-%d"),
        "versions": f"python {sys.version.split()[0]}, torch {torch.__version__}, numpy {np.__version__}",
    }  # fmt: skip
    with torch.inference_mode():
        for part in (correctness, draws, timings):
            report[part.__name__] = guarded(part, device)
    report["seconds"] = time.perf_counter() - start
    options.out.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    (options.out / f"{stem}.json").write_text(json.dumps(report, indent=1))
    (options.out / f"{stem}.md").write_text(table(report))
    print(table(report))
    return 0 if report["correctness"]["passed"] and report["draws"]["passed"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
