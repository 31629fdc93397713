"""Certified decode on the CPU, side by side in one process: ours, SDPA without a certificate, torch in two passes.

    python benchmarks/bench_decode.py [--quick] [--threads 1] [--repeats 15] [--json FILE]

Every repeat runs all contenders once, in a shuffled order, so a slow moment of a shared machine hits all. Each call reads
the next of several "layers" of K and V (96 MB in all at least), as a decode step of a model does: no contender finds
its tokens in the cache because another just read them.
Ratios are of medians per cell; the last lines are the medians of those over the cells. Lower is better for the first
(1 = the certificate is free), higher for the other two (how many times slower the rival is than our *certified* decode).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kvcert.kernels import decode

LEVEL = math.log(2.0 / 0.05)
#: rows, KV heads, query heads per KV head, query positions, head dimension, retained tokens
LENGTHS, BATCHES = (256, 1024, 4096, 16384), (1, 8, 32)
EXTRA = [(22, 3, 3, 1, 64, 450), (22, 3, 3, 12, 64, 450), (4, 8, 4, 1, 128, 2048)]
LAYERS = 96e6  # bytes of K and V to cycle through, well above a last-level cache's share
LARGEST = 2**18  # rows * tokens of the largest cell: 400 MB of K and V


def cells(quick: bool) -> list[tuple[int, ...]]:
    """The grid of batch and retained length that fits in memory, then the runner's own shapes and a wider head."""
    grid = [
        (b, 3, 3, 1, 64, n) for n in LENGTHS for b in BATCHES if b * n <= (LARGEST >> (3 if quick else 0))
    ]
    return grid + EXTRA


def two_pass(
    q: Tensor, k: Tensor, v: Tensor, log_pi: Tensor, centre: Tensor, scale: float
) -> tuple[Tensor, ...]:
    """What a user writes today: grouped attention, then the certificate from K, V and the weights in a second pass."""
    rows, _heads, _steps, dim = q.shape
    groups = k.shape[1]
    logits = (q.view(rows, groups, -1, dim) * scale) @ k.transpose(2, 3) - log_pi[:, :, None]
    p = logits.softmax(-1)
    out = p @ v
    x, o = v - centre[:, :, None], out - centre[:, :, None]
    tail = (log_pi < 0).to(p.dtype)[:, :, None]
    c = -torch.expm1(log_pi)[:, :, None] * p * p
    size = x.square().sum(-1)
    variance = (c @ size[..., None])[..., 0] - 2 * (o * (c @ x)).sum(-1) + o.square().sum(-1) * c.sum(-1)
    sampled = p * tail
    p_sampled = sampled.amax(-1)
    bound = (sampled * size.sqrt()[:, :, None]).amax(-1) + o.norm(dim=-1) * p_sampled
    linear = bound * LEVEL / 3
    radius = linear + (linear.square() + 2 * variance.clamp_min(0) * LEVEL).sqrt()
    return out, variance, bound, radius, radius / (1 - p_sampled), 1 / p.square().sum(-1), p.amax(-1)


def measure(shape: tuple[int, ...], repeats: int) -> dict[str, Any]:
    """Median milliseconds of the four contenders on one cell."""
    rows, groups, per, steps, dim, n = shape
    g = torch.Generator().manual_seed(0)
    q = torch.randn(rows, groups * per, steps, dim, generator=g)
    layers = max(1, math.ceil(LAYERS / (8 * rows * groups * n * dim)))
    cache = [[torch.randn(rows, groups, n, dim, generator=g) for _ in range(2)] for _ in range(layers)]
    log_pi = torch.where(
        torch.rand(rows, groups, n, generator=g) < 0.5, 0.0, -3 * torch.rand(rows, groups, n, generator=g)
    )
    centre, begin, scale = cache[0][1].mean(2), torch.zeros(rows, groups, dtype=torch.int32), dim**-0.5
    ours = {"log_pi": log_pi, "begin": begin, "end": n, "scale": scale, "backend": "cpu"}
    contenders: dict[str, Callable[[Tensor, Tensor], Any]] = {
        "certificate": lambda k, v: decode(q, k, v, **ours, centre=centre, certificate=True),
        "plain": lambda k, v: decode(q, k, v, **ours),
        "sdpa": lambda k, v: F.scaled_dot_product_attention(q, k, v, scale=scale, enable_gqa=True),
        "two_pass": lambda k, v: two_pass(q, k, v, log_pi, centre, scale),
    }
    order, layer = random.Random(0), itertools.cycle(cache)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats + 2):
        for name, call in order.sample(list(contenders.items()), len(contenders)):
            k, v = next(layer)
            start = time.perf_counter()
            call(k, v)
            if turn >= 2:  # the first two are warm-up
                times[name].append(time.perf_counter() - start)
    return {"shape": shape} | {name: 1e3 * statistics.median(t) for name, t in times.items()}


def machine() -> str:
    """The processor's name and what the run may use of it."""
    try:
        names = [
            x.split(":")[1].strip()
            for x in Path("/proc/cpuinfo").read_text().splitlines()
            if x.startswith("model name")
        ]
    except OSError:
        names = []
    return f"{(names or [platform.processor() or platform.machine()])[0]}, {len(names)} cores, torch {torch.__version__}"


def main() -> None:
    """Measure, print a table, the ratios last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="leave out the large cells")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        f"machine: {machine()}; {options.threads} thread(s); median of {options.repeats} interleaved repeats, ms"
    )
    print(
        f"{'rows x KV heads x group x queries x D x tokens':46s}   cert ms     plain      sdpa  two_pass   "
        "cert/plain sdpa/ours two/ours"
    )
    table = []
    with torch.inference_mode():
        for shape in cells(options.quick):
            row = measure(shape, options.repeats)
            a = row["certificate"]
            row["ratios"] = [a / row["plain"], row["sdpa"] / a, row["two_pass"] / a]
            table.append(row)
            figures = "".join(f"{row[x]:10.3f}" for x in ("certificate", "plain", "sdpa", "two_pass"))
            print(
                f"{' x '.join(map(str, shape)):46s} {figures}   "
                + "".join(f"{x:9.2f}" for x in row["ratios"]),
                flush=True,
            )
    middle = [statistics.median(row["ratios"][i] for row in table) for i in range(3)]
    names = ("certificate_over_plain", "sdpa_over_ours", "two_pass_over_ours")
    if options.json:
        options.json.write_text(
            json.dumps({"machine": machine(), "threads": options.threads, "cells": table}, indent=1)
        )
    for name, value in zip(names, middle, strict=True):
        print(f"ratio {name} {value:.2f}")


if __name__ == "__main__":
    main()
