"""X3's oracle: variance and coverage with π ∝ a, redrawn for every query head and step, beside the deployed design."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from torch import Tensor

from kvcert.exhibits import redraw
from kvcert.grid import Spec
from kvcert.policies import capacity_of
from kvcert.runner import trace
from kvcert.survey.philox import uniforms

DESIGNS = {"deployed": redraw.deployed, "oracle": redraw.oracle}


def measure(
    specs: list[Spec], results: Path, draws: int, scorer: str, progress: Callable[[str], None]
) -> pd.DataFrame:
    """Redraw both designs on every trace of the shards.

    Returns
    -------
    One row per (shard, example, setting, budget, design, layer, head, step): linearised variance, mean V̂ and mean squared
    error over the draws, coverage of both radii (shares of the draws), R·m. `run` names (example, setting, budget).
    """
    parts = []
    for spec in specs:
        tensors = load_file(trace.path(results, spec["shard"]))
        for example in sorted({int(name.partition("/")[0]) for name in tensors}):
            parts += [
                _one(spec, tensors, example, setting, scorer, budget, draws)
                for setting in spec["settings"]
                for budget in sorted({row["budget"] for row in spec["rows"] if row["policy"] == "poisson"})
            ]
        progress(f"X3: {spec['shard']}: π ∝ a redrawn")
    return pd.concat(parts, ignore_index=True)


def _one(
    spec: Spec, tensors: dict[str, Tensor], example: int, setting: str, scorer: str, budget: float, draws: int
) -> pd.DataFrame:
    about = redraw.recorded(tensors, f"score.{setting}.{scorer}", example)
    layers, heads, steps, n = about.share.shape
    u32 = draw_uniforms(
        spec["seed"], f"{spec['shard']}/{example}/{setting}", (draws, layers, heads, steps, n)
    )
    capacity = capacity_of(budget, n, spec["constants"])
    key = {
        "task": spec["task"]["name"], "length": spec["task"]["length"], "example": example, "setting": setting,
        "budget": budget,
    }  # fmt: skip
    parts = []
    for name, make in DESIGNS.items():
        found = redraw.redraw(about, make(about, capacity, spec["constants"]), u32, spec["constants"])
        columns: dict[str, Any] = {
            "exact": found.exact,
            "variance": found.variance.mean(-1),
            "mse": found.error.square().mean(-1),
            "covered": (found.error <= found.radius).double().mean(-1),
            "covered_guarded": (found.error <= found.guarded).double().mean(-1),
            "rm": found.r * found.m,
        }
        frame = pd.DataFrame({key: value.reshape(-1).numpy() for key, value in columns.items()})
        index = np.indices((layers, heads, steps)).reshape(3, -1)
        layer = tensors[f"{example}/layers"].numpy()[index[0]]
        frame = frame.assign(layer=layer, kv_head=index[1], step=index[2] + 1, design=name, draws=draws)
        parts.append(frame.assign(**key))
    return pd.concat(parts, ignore_index=True)


def draw_uniforms(seed: int, name: str, shape: tuple[int, int, int, int, int]) -> Tensor:
    """Counter-based uniforms [D, L, K, S, n] of this exhibit alone; stage 255 is never one of a run's."""
    draws, layers, heads, steps, n = shape
    code = int.from_bytes(hashlib.sha256(f"X3/{name}".encode()).digest()[:4], "little")
    positions = torch.arange(n)
    found = [
        uniforms(seed, code, positions, layers, heads, draw * steps + step, stage=255)
        for draw in range(draws)
        for step in range(steps)
    ]
    return torch.stack(found).view(draws, steps, layers, heads, n).permute(0, 2, 3, 1, 4)
