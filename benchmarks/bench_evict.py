"""Draw and compaction: the twin against the torch form (Philox in tensors, sort, gather), and against sort and gather alone.

    python benchmarks/bench_evict.py [--threads 1] [--repeats 9]

Interleaved repeats on the same tensors; the last lines are medians over the cells of ratios of medians (higher: the rival is
slower than our twin, which draws *and* compacts).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from bench_decode import machine

from kvcert.kernels import evict

#: rows, KV heads, head dimension, context tokens
CELLS = [(6, 3, 64, 768), (22, 3, 64, 768), (8, 8, 128, 4096), (2, 8, 128, 16384)]


def measure(shape: tuple[int, ...], repeats: int) -> dict[str, float]:
    """Median milliseconds per contender."""
    rows, groups, dim, n = shape
    g = torch.Generator().manual_seed(0)
    k, v = (torch.randn(1, groups, n, dim, generator=g).expand(rows, -1, -1, -1) for _ in range(2))
    pi = torch.rand(rows, groups, n, generator=g, dtype=torch.float64).square()
    named = {"seed": 1, "layer": 2, "example": 3, "draw": list(range(rows))}

    def sort_gather() -> Any:
        keep = torch.rand(rows, groups, n) < pi  # the library's own generator: no reproducible draw
        order = keep.to(torch.int8).sort(dim=-1, stable=True).indices[..., n - int(keep.sum(-1).max()) :]
        wide = order[..., None].expand(*order.shape, dim)
        return k.gather(2, wide), v.gather(2, wide), pi.log().float().gather(-1, order)

    contenders: dict[str, Callable[[], Any]] = {
        "ours": lambda: evict(k, v, pi, **named, backend="cpu"),
        "torch": lambda: evict(k, v, pi, **named, backend="torch"),
        "sort_gather": sort_gather,
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(t) for name, t in times.items()}


def main() -> None:
    """Measure, print a table, the ratios last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        f"machine: {machine()}; {options.threads} thread(s); median of {options.repeats} interleaved repeats, ms"
    )
    print(f"{'rows x KV heads x D x tokens':32s}{'ours':>10s}{'torch':>10s}{'sort_gather':>13s}")
    ratios = []
    with torch.inference_mode():
        for shape in CELLS:
            row = measure(shape, options.repeats)
            print(
                f"{' x '.join(map(str, shape)):32s}{row['ours']:10.2f}{row['torch']:10.2f}{row['sort_gather']:13.2f}",
                flush=True,
            )
            ratios.append((row["torch"] / row["ours"], row["sort_gather"] / row["ours"]))
    for i, name in enumerate(("torch_over_ours", "sort_gather_over_ours")):
        print(f"ratio {name} {statistics.median(r[i] for r in ratios):.2f}")


if __name__ == "__main__":
    main()
