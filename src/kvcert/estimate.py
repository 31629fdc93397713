"""What a call is about to do and how long it should take, told before it starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kvcert.grid import shards
from kvcert.pace import AUTO, spec_seconds


def seconds(spec: dict[str, Any], run: dict[str, Any] | None = None) -> float:
    """Rough seconds of one shard: by `run.throughput` where `run` states one, else on one thread of a processor."""
    return spec_seconds(spec, run or {})


def describe(spec: dict[str, Any], run: dict[str, Any] | None = None) -> str:
    """One line on a shard: examples, tokens, rows, rough time."""
    rows = len(spec["rows"])
    settings = " and ".join(spec["settings"])
    return (
        f"{len(spec['examples'])} examples of {spec['task']['length']} tokens, {rows} rows each, {settings}, "
        f"about {spoken(seconds(spec, run))}"
    )


def is_done(results: Path, spec: dict[str, Any]) -> bool:
    """True when the three tables of a shard are there (whether they fit is for the integrity gate)."""
    return all(
        (results / table / f"{spec['shard']}.parquet").is_file() for table in ("runs", "steps", "heads")
    )


def plan(config: dict[str, Any], workers: int | None = None) -> str:
    """What the grid holds, what is done, and about how long the rest takes.

    Parameters
    ----------
    config : dict
        Resolved configuration.
    workers : int, optional
        Shards at a time; by default the processors divided by `run.threads`.
    """
    study, run = config["study"], config["run"]
    results, specs = Path(run["results"]), shards(config)
    open_specs = [spec for spec in specs if not is_done(results, spec)]
    workers = workers or max(1, (os.cpu_count() or 1) // run["threads"])
    tasks = ", ".join(dict.fromkeys(task["name"] for task in study["tasks"]))
    models = ", ".join(model["name"] for model in study["models"])
    lines = [
        f"kvcert: {models} on {tasks}; {' and '.join(study['settings'])}; {len(specs[0]['rows'])} rows per setting",
        f"  shards: {len(specs)}, done {len(specs) - len(open_specs)}, to run {len(open_specs)} → {results}/",
    ]
    if open_specs:
        total = sum(seconds(spec, run) for spec in open_specs) / min(workers, len(open_specs))
        source = "rough, for a 135M model on processors" if run["throughput"] == AUTO else "by run.throughput"
        lines.append(f"  about {spoken(total)} with {workers} at a time ({source})")
    lines.append("  then: integrity gate, seven claims, tables, figures")
    return "\n".join(lines)


def spoken(duration: float) -> str:
    """Seconds as people say them: `40 s`, `12 min`, `3.5 h`."""
    if duration < 90:
        return f"{round(duration):d} s"
    return f"{duration / 60:.0f} min" if duration < 5400 else f"{duration / 3600:.1f} h"
