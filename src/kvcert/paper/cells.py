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
from kvcert.paper.console import plain_console
from kvcert.sizing import log_bytes, memory_mb, minutes

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
    """One entry per (model, task, length): shards, runs, states, seconds per example and seconds left.

    The time left is estimated from the cell's own finished shards, else from all finished shards of the model.
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
                "seconds": 0.0,
                "states": {},
            },
        )
        where = state(results, spec)
        cell["total"] += 1
        cell["runs"] += len(expected_run_ids(spec))
        cell["examples"] += len(spec["examples"])
        cell["states"][where] = cell["states"].get(where, 0) + 1
        if where == DONE:
            cell["done_examples"] += len(spec["examples"])
            cell["seconds"] += seconds(results, spec)
            cell["tokens"] += len(spec["examples"]) * spec["task"]["length"]
    for (model, _, _), cell in cells.items():
        same = [cell] if cell["done_examples"] else [other for key, other in cells.items() if key[0] == model]
        known = sum(other["done_examples"] for other in same)
        pace = sum(other["seconds"] for other in same) / known if known else None
        left = cell["examples"] - cell["done_examples"]
        cell["left"] = 0.0 if left == 0 else None if pace is None else pace * left
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
    lefts = [row["left"] for row in rows]
    total = None if any(left is None for left in lefts) else sum(lefts)
    done = sum(row["states"].get(DONE, 0) for row in rows)
    examples, runs, spent = (sum(row[name] for row in rows) for name in ("examples", "runs", "seconds"))
    footers: tuple[str, ...] = (
        "all",
        "",
        "",
        f"{done}/{sum(row['total'] for row in rows)}",
        f"{examples:,}",
        f"{runs:,}",
    )
    footers += (duration(spent), duration(total), "")
    names = ("model", "task", "length", "shards", "examples", "runs", "spent", "left", "note")
    for name, footer in zip(names, footers, strict=True):
        table.add_column(
            name, footer=footer, justify="left" if name in ("model", "task", "note") else "right"
        )
    for row in rows:
        note = ",\n".join(
            f"{count} {name}" for name, count in row["states"].items() if name in (STALE, DAMAGED)
        )
        table.add_row(
            row["model"], row["task"], f"{row['length']:,}", f"{row['states'].get(DONE, 0)}/{row['total']}",
            f"{row['examples']:,}", f"{row['runs']:,}", duration(row["seconds"]), duration(row["left"]), note,
        )  # fmt: skip
    console = plain_console(file)
    console.print(table)
    jobs = "Times are seconds of one job; two jobs at a time halve what is left."
    console.print(jobs if done else "No shard is done yet, so there is no estimate of the time left.")
    if spent > 0:
        console.print(pace_line(rows))
    console.print(job_line(config))
    console.print(size_line(results, config))


def size_line(results: Path, config: dict[str, Any]) -> str:
    """Bytes of logs now and at the end, every answer at full length."""
    totals: dict[str, float] = {}
    for spec in shards(config):
        for table, size in log_bytes(spec, config["run"]).items():
            totals[table] = totals.get(table, 0.0) + size
    folders = [Path(results) / table for table in totals]
    now = sum(path.stat().st_size for folder in folders for path in folder.glob("*") if path.is_file())
    parts = ", ".join(f"{table} {megabytes(size)}" for table, size in totals.items())
    return (
        f"Logs: {megabytes(now)} now, at most about {megabytes(sum(totals.values()))} in the end ({parts})."
    )


def megabytes(size: float) -> str:
    """Bytes for people: `0.4 MB`, `120 MB`, `3.5 GB`."""
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 1e7 else f"{size / 1e6:.1f} MB"


def job_line(config: dict[str, Any]) -> str:
    """What the largest job asks of a cluster at its first attempt."""
    run, specs = config["run"], shards(config)
    memory, limit = (max(ask(spec, run) for spec in specs) for ask in (memory_mb, minutes))
    return f"Jobs: {len(specs)}, each at most {memory:,} MB and {limit} min at its first attempt."


def pace_line(rows: list[dict[str, Any]]) -> str:
    """Prompt tokens per second that finished shards reached: the number for `run.throughput`."""
    tokens, seconds_ = (sum(row[name] for row in rows) for name in ("tokens", "seconds"))
    return f"Pace so far: {tokens / seconds_:.0f} prompt tokens per second and job (run.throughput)."


def print_shards(results: Path, config: dict[str, Any], file: TextIO | None = None) -> None:
    """Print one plain line per shard: state, a tab, its name."""
    for spec in shards(config):
        print(f"{state(results, spec)}\t{spec['shard']}", file=file)
