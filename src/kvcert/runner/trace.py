"""A sampled trace of real attention: keys, values, scores and queries of the panel's layers, for the exhibits."""

from __future__ import annotations

import errno
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.files import replacing
from kvcert.runner.example import ExampleRuns


def path(results: Path, shard: str) -> Path:
    """Where the traces of a shard's first examples lie."""
    return Path(results) / "traces" / f"{shard}.safetensors"


def collect(example: int, found: ExampleRuns) -> dict[str, Tensor]:
    """One example's tensors, named `<example>/<what>`; empty where nothing was evicted.

    `keys`, `values` [layers, K, n, d] of the context; `score.<setting>.<scorer>` [layers, K, n] float64; `queries`
    [layers, H, steps, d] of the full run's decode steps; `layers` the panel's layer numbers. pi follows from the
    score and the registered constants, and is not stored.
    """
    if found.panel is None:
        return {}
    layers, context = found.panel.layers, found.context
    steps = min(len(found.full.tokens), context.window)
    data = {
        "layers": torch.tensor(layers),
        "keys": torch.stack([context.keys[i][0, :, : found.n] for i in layers]),
        "values": torch.stack([context.values[i][0, :, : found.n] for i in layers]),
        "queries": torch.stack([q[:, -steps:] for i in layers if (q := context.queries[i]) is not None]),
    }
    for setting, by_scorer in found.scores.items():
        data |= {f"score.{setting}.{name}": z[layers] for name, z in by_scorer.items()}
    return {f"{example}/{name}": value.contiguous().cpu() for name, value in data.items()}


def write(results: Path, shard: str, traces: dict[str, Tensor]) -> None:
    """Write a shard's traces as one safetensors file."""
    place = path(results, shard)
    try:
        with replacing(place) as temporary:
            save_file(traces, temporary)
    except (OSError, SafetensorError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC or "os error 28" in str(error):
            raise KvcertError(
                f"no space left for {place}: free some or move run.results to another disk"
            ) from error
        raise
