"""Contenders timed side by side: alternating in a shuffled order, so that a slow moment of a shared machine hits all."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from kvcert.tasks.stream import Stream

#: Turns before the clock counts.
WARM_UP = 2


def interleaved(
    contenders: Mapping[str, Callable[[], object]], repeats: int, key: object
) -> dict[str, float]:
    """Median milliseconds of each contender over `repeats` turns; `key` names the order of the turns."""
    order, times = Stream("timing", key), {name: list[float]() for name in contenders}
    for turn in range(repeats + WARM_UP):
        for name in order.shuffled(list(contenders)):
            started = time.perf_counter()
            contenders[name]()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if turn >= WARM_UP:
                times[name].append(time.perf_counter() - started)
    return {name: 1e3 * statistics.median(spent) for name, spent in times.items()}


def machine(device: str) -> str:
    """What the ratios were measured on."""
    if torch.device(device).type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    name = (names or [platform.processor() or platform.machine()])[0]
    return f"{name}, {len(names)} cores, torch {torch.__version__}"
