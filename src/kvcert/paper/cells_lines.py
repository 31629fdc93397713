"""The lines under the table of cells: tokens, hours, pace, jobs, bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvcert.grid import shards
from kvcert.pace import AUTO
from kvcert.sizing import log_bytes, memory_mb, minutes

#: Public notes on the paper: single H100 and H200.
PAPER_GPU_HOURS = 70


def source(run: dict[str, Any]) -> str:
    """Where an estimate of the time comes from, in words."""
    if run["throughput"] == AUTO:
        return "roughly, for a 135M model on one thread of a processor"
    return "from run.throughput and run.step_seconds, every answer at full length"


def token_line(rows: list[dict[str, Any]]) -> str:
    """Tokens of the grid: prompts are read once, whatever the number of rows; answers at full length."""
    prompts, new = (sum(row[name] for row in rows) for name in ("prompt_tokens", "new_tokens"))
    return f"Tokens: {prompts:,} of prompts, each read once for all its runs; at most {new:,} decoded."


def gpu_line(seconds_: float) -> str:
    """Hours of one GPU beside what the study reports (arXiv 2607.21475: about 70 on one H100 or H200)."""
    return f"GPU-hours: about {seconds_ / 3600:.0f}; the paper reports about {PAPER_GPU_HOURS} on one H100 or H200."


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
