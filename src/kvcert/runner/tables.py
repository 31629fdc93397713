"""From finished runs to the three Arrow tables of the log schema."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from kvcert.logs.schema import HEADS, RUNS, STEPS
from kvcert.runner.record import Run

_STEP_FIGURES = ("certificate", "guarded", "error")


def summarise(run: Run, signal_steps: int) -> dict[str, Any]:
    """The row of `runs`: the run's fields and the means over its steps."""
    trail = run.trail
    first = slice(0, signal_steps)
    figures = {name: trail.figures.get(name, [])[first] for name in _STEP_FIGURES}
    entropy = sum(trail.entropy) / len(trail.entropy)
    return run.fields | {
        "logp_mean": sum(trail.logp) / len(trail.logp),
        "logp_first6": sum(trail.logp[:6]) / len(trail.logp[:6]),
        "entropy_mean": entropy,
        "signal": _mean(figures["certificate"]) if run.certified else None,
        "signal_guarded": _mean(figures["guarded"]) if run.certified else None,
        "error": _mean(figures["error"]),
        "n_steps": len(trail.tokens),
    }


def _mean(values: list[float]) -> float | None:
    kept = [value for value in values if not math.isnan(value)]
    return sum(kept) / len(kept) if kept else None


def runs_table(runs: list[Run], signal_steps: int) -> pa.Table:
    """`runs`: one row per run."""
    return pa.Table.from_pylist([summarise(run, signal_steps) for run in runs], schema=RUNS)


def steps_table(runs: list[Run]) -> pa.Table:
    """`steps`: one row per run and step."""
    rows = []
    for run in runs:
        trail = run.trail
        for step, token in enumerate(trail.tokens):
            figures = {name: _at(trail.figures, name, step) for name in _STEP_FIGURES}
            if not run.certified:
                figures["certificate"] = figures["guarded"] = None
            certificate, error = figures["certificate"], figures["error"]
            rows.append(
                {
                    "run_id": run.fields["run_id"],
                    "step": step + 1,
                    "token_id": token,
                    "logp": trail.logp[step],
                    "entropy": trail.entropy[step],
                    "covered": None if certificate is None or error is None else error <= certificate,
                    "units": int(_at(trail.figures, "units", step) or 0),
                }
                | figures
            )
    return pa.Table.from_pylist(rows, schema=STEPS)


def _at(figures: dict[str, list[float]], name: str, step: int) -> float | None:
    values = figures.get(name)
    return None if not values or math.isnan(values[step]) else values[step]


def heads_table(
    runs: list[Run],
    layers: list[int],
    heads: int,
    kv_heads: int,
    *,
    every: int = 1,
    panel_only: bool = False,
) -> pa.Table:
    """`heads`: one row per certified run, step and (layer, query head) of the panel's layers.

    `every` keeps steps 1, 1 + every, …; `panel_only` keeps the first query head of each KV head (the registered panel).
    """
    names = [
        name for name in HEADS.names if name not in {"run_id", "step", "layer", "head", "kv_head", "panel"}
    ]
    columns: dict[str, list[np.ndarray]] = {name: [] for name in names}
    ids, counts, steps = [], [], []
    per = heads // kv_heads
    logged = np.arange(0, heads, per if panel_only else 1)
    for run in runs:
        if not run.certified or run.sizes is None:
            continue
        ids.append(run.fields["run_id"])
        kept = list(enumerate(run.trail.heads))[::every]
        counts.append(len(kept))
        for step, record in kept:
            steps.append(step + 1)
            for name in names:
                values = record[name] if name in record else run.sizes[name]
                columns[name].append(values[:, logged].reshape(-1))
    block = len(layers) * len(logged)
    layer = np.repeat(np.asarray(layers, np.int16), len(logged))
    head = np.tile(logged.astype(np.int16), len(layers))
    data: dict[str, Any] = {
        "run_id": pa.DictionaryArray.from_arrays(
            pa.array(
                np.repeat(np.arange(len(ids)), np.multiply(np.asarray(counts, np.int64), block)), pa.int32()
            ),
            pa.array(ids, pa.string()),
        ),
        "step": np.repeat(np.asarray(steps, np.int32), block),
        "layer": np.tile(layer, len(steps)),
        "head": np.tile(head, len(steps)),
        "kv_head": np.tile(head // per, len(steps)),
        "panel": np.tile(head % per == 0, len(steps)),
    }
    for name in names:
        joined = np.concatenate(columns[name]) if columns[name] else np.empty(0)
        data[name] = joined.astype(HEADS.field(name).type.to_pandas_dtype())
    return pa.table(
        {
            name: pa.array(data[name], HEADS.field(name).type) if name != "run_id" else data[name]
            for name in HEADS.names
        },
        schema=HEADS,
    )
