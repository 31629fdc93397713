"""A sampled trace of real attention: keys, values, scores and queries of the panel's layers, for the exhibits."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file

from kvcert.files import replacing
from kvcert.prompts import Prompt
from kvcert.runner.example import ExampleRuns


def path(results: Path, shard: str, example: int) -> Path:
    """Where the trace of one example lies."""
    return Path(results) / "traces" / f"{shard}.{example}.safetensors"


def write(results: Path, shard: str, example: int, found: ExampleRuns, prompt: Prompt) -> None:
    """Write one example's trace.

    `keys`, `values` [layers, K, n, d] of the context; `score.<setting>` [layers, K, n] float64; `queries`
    [layers, H, steps, d] of the full run's decode steps; `layers` the panel's layer numbers. pi follows from the
    score and the registered constants, and is not stored.
    """
    if found.panel is None:
        return
    layers = found.panel.layers
    steps = min(len(found.full.tokens), found.context.window)
    data = {
        "layers": torch.tensor(layers),
        "keys": torch.stack([found.context.keys[i][0, :, : found.n] for i in layers]),
        "values": torch.stack([found.context.values[i][0, :, : found.n] for i in layers]),
        "queries": torch.stack(
            [q[:, -steps:] for i in layers if (q := found.context.queries[i]) is not None]
        ),
    }
    data |= {f"score.{setting}": z[layers] for setting, z in found.scores.items()}
    with replacing(path(results, shard, example)) as temporary:
        save_file(
            {name: value.contiguous() for name, value in data.items()}, temporary, {"prompt": prompt.sha256}
        )
