"""What the grid holds, what is done, and how long the rest should take."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.table import Table

from kvcert.grid import Spec, expected_run_ids, shards, spec_sha256
from kvcert.logs.schema import SPEC, TABLES
from kvcert.pace import spec_seconds
from kvcert.paper.cells_lines import gpu_line, job_line, pace_line, size_line, source, token_line
from kvcert.paper.console import plain_console

DONE, STALE, OPEN, DAMAGED = "done", "stale", "open", "damaged"


def state(results: Path, spec: Spec) -> str:
    """`done`, `open` (a file is missing), `stale` (written under another specification) or `damaged`."""
    paths = [Path(results) / table / f"{spec['shard']}.parquet" for table in TABLES]
    if not all(path.is_file() for path in paths):
        return OPEN
    try:
        hashes = {(pq.read_schema(path).metadata or {}).get(SPEC, b"").decode() for path in paths}
    except (pa.ArrowException, OSError):
        return DAMAGED
    return DONE if hashes == {spec_sha256(spec)} else STALE


def seconds(results: Path, spec: Spec) -> float:
    """Seconds that a finished shard took: each example's one prefill and all of its decode steps."""
    path = Path(results) / "runs" / f"{spec['shard']}.parquet"
    runs = pq.read_table(path, columns=["example", "seconds_prefill", "seconds_decode"]).to_pandas()
    return float(runs.groupby("example")["seconds_prefill"].first().sum() + runs["seconds_decode"].sum())


def duration(value: float | None) -> str:
    """Seconds for people: `45 s`, `12 min`, `1 h 05 min`, and `–` for unknown."""
    if value is None:
        return "–"
    if value < 90:
        return f"{value:.0f} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def summarise(results: Path, config: dict[str, Any]) -> list[dict[str, Any]]:
    """One entry per (model, task, length): shards, runs, states, tokens, seconds spent and seconds left.

    The time left is estimated from the cell's own finished shards, else from all finished shards of the model, else as
    the graph is sized (`kvcert.pace`).
    """
    cells: dict[tuple[str, str, int], dict[str, Any]] = {}
    for spec in shards(config):
        key = (spec["model"]["name"], spec["task"]["name"], spec["task"]["length"])
        cell = cells.setdefault(
            key,
            {
                "total": 0,
                "runs": 0,
                "examples": 0,
                "done_examples": 0,
                "tokens": 0,
                "prompt_tokens": 0,
                "new_tokens": 0,
                "guess": 0.0,
                "seconds": 0.0,
                "states": {},
            },
        )
        where = state(results, spec)
        cell["total"] += 1
        runs = len(expected_run_ids(spec))
        cell["runs"] += runs
        cell["prompt_tokens"] += len(spec["examples"]) * spec["task"]["length"]
        cell["new_tokens"] += runs * spec["max_new_tokens"]
        cell["examples"] += len(spec["examples"])
        cell["states"][where] = cell["states"].get(where, 0) + 1
        if where == DONE:
            cell["done_examples"] += len(spec["examples"])
            cell["seconds"] += seconds(results, spec)
            cell["tokens"] += len(spec["examples"]) * spec["task"]["length"]
        else:
            cell["guess"] += spec_seconds(spec, config["run"])
    for (model, _, _), cell in cells.items():
        same = [cell] if cell["done_examples"] else [other for key, other in cells.items() if key[0] == model]
        known = sum(other["done_examples"] for other in same)
        pace = sum(other["seconds"] for other in same) / known if known else None
        left = cell["examples"] - cell["done_examples"]
        cell["left"] = cell["guess"] if left and pace is None else (pace or 0.0) * left
    return [{"model": key[0], "task": key[1], "length": key[2], **cell} for key, cell in cells.items()]


def print_cells(results: Path, config: dict[str, Any], file: TextIO | None = None) -> None:
    """Print one line per (model, task, length), and the sum."""
    rows = summarise(results, config)
    table = Table(
        title=f"Cells of the grid, results in {results}",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_footer=True,
    )
    total = sum(row["left"] for row in rows)
    done = sum(row["states"].get(DONE, 0) for row in rows)
    examples, runs, spent = (sum(row[name] for row in rows) for name in ("examples", "runs", "seconds"))
    notes = [_note(row["states"]) for row in rows]
    shards_ = f"{done}/{sum(row['total'] for row in rows)}"
    # Heading, foot, a cell of each row; a column that says nothing yet leaves its room to the names.
    columns: list[tuple[str, str, list[str]]] = [
        ("model", "all", [row["model"] for row in rows]),
        ("task", "", [row["task"] for row in rows]),
        ("length", "", [f"{row['length']:,}" for row in rows]),
        ("shards", shards_, [f"{row['states'].get(DONE, 0)}/{row['total']}" for row in rows]),
        ("examples", f"{examples:,}", [f"{row['examples']:,}" for row in rows]),
        ("runs", f"{runs:,}", [f"{row['runs']:,}" for row in rows]),
        *([("spent", duration(spent), [duration(row["seconds"]) for row in rows])] if done else []),
        ("left", duration(total), [duration(row["left"]) for row in rows]),
        *([("note", "", notes)] if any(notes) else []),
    ]
    for name, footer, _ in columns:
        left = name in ("model", "task", "note")
        table.add_column(name, footer=footer, justify="left" if left else "right", no_wrap=name == "task")
    for cells in zip(*(cells for _, _, cells in columns), strict=True):
        table.add_row(*cells)
    console = plain_console(file)
    console.print(table)
    console.print("Times are those of one job; two jobs at a time halve what is left.")
    if not done:
        console.print(f"No shard is done yet: what is left is estimated {source(config['run'])}.")
    console.print(token_line(rows))
    if config["run"]["device"] != "cpu":
        console.print(gpu_line(spent + total))
    if spent > 0:
        console.print(pace_line(rows))
    console.print(job_line(config))
    console.print(size_line(results, config))


def _note(states: dict[str, int]) -> str:
    """What is wrong with a cell's shards."""
    return ",\n".join(f"{count} {name}" for name, count in states.items() if name in (STALE, DAMAGED))


def print_shards(results: Path, config: dict[str, Any], file: TextIO | None = None) -> None:
    """Print one plain line per shard: state, a tab, its name."""
    for spec in shards(config):
        print(f"{state(results, spec)}\t{spec['shard']}", file=file)
