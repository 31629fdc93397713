"""Tables built from the Parquet logs alone: accuracy, cost, summary."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from kvcert.errors import KvcertError
from kvcert.logs.schema import TABLES
from kvcert.paper.logs import Logs
from kvcert.paper.render import Table
from kvcert.paper.stats import table_of_means

CELL = ("model", "task", "length")
KEY_TITLES = {"model": "model", "task": "task", "length": "length", "setting": "setting", "policy": "policy"}
BUDGET = {"budget": -1}


def accuracy(logs: Logs) -> Table:
    """Mean score of the valid free runs, draws averaged within an example, with cluster bootstrap intervals."""
    frame = table_of_means(logs.free, [*CELL, "setting", "policy", "scorer", "budget"], "score")
    frame = frame.rename(columns={"clusters": "examples", "n": "runs"})
    titles = KEY_TITLES | {
        "budget": "budget",
        "mean": "score",
        "low": "low",
        "high": "high",
        "examples": "examples",
        "runs": "runs",
    }
    return Table(frame, titles, BUDGET)


def cost(logs: Logs) -> Table:
    """Mean tokens and bytes kept, and mean seconds, over the valid free runs of both settings.

    `seconds_prefill` is that of an example's one prefill, which all its runs share; `seconds_decode` is a run's share
    of its batch. The full cache is decoded outside that batch.
    """
    means = ["context_tokens", "kept_tokens", "kept_bytes", "full_bytes", "seconds_prefill", "seconds_decode"]
    groups = logs.free.groupby([*CELL, "policy", "scorer", "budget"], observed=True, sort=True)
    frame = groups[means].mean().assign(runs=groups.size()).reset_index()
    titles = KEY_TITLES | {
        "budget": "budget", "context_tokens": "context tokens", "kept_tokens": "kept tokens", "kept_bytes": "kept bytes",
        "full_bytes": "full bytes", "seconds_prefill": "prefill s", "seconds_decode": "decode s/run", "runs": "runs",
    }  # fmt: skip
    digits = BUDGET | {"context_tokens": 0, "kept_tokens": 0, "kept_bytes": 0, "full_bytes": 0}
    return Table(frame, titles, digits | {"seconds_prefill": 2, "seconds_decode": 2})


def summary(logs: Logs) -> Table:
    """What was run: counts, the machine's side, and the versions; one item a row."""
    runs = logs.runs
    items: list[tuple[str, str]] = [("shards", f"{runs['shard'].nunique():,}")]
    items += [(name, f"{_rows(logs, name):,}") for name in TABLES]
    items += [
        (f"runs, {regime}", f"{count:,}")
        for regime, count in runs["regime"].value_counts().sort_index().items()
    ]
    items.append(("runs, invalid", f"{int((~runs['valid'].astype(bool)).sum()):,}"))
    items += [
        (f"invalid: {why}", f"{count:,}")
        for why, count in runs["invalid_reason"].value_counts().sort_index().items()
    ]
    identity = runs["identity"].astype(bool) & (runs["policy"] != "full")
    items.append(("runs with nothing evicted (full cache excepted)", f"{int(identity.sum()):,}"))
    items.append(("examples", f"{len(runs[['model', 'task', 'length', 'example']].drop_duplicates()):,}"))
    for name in (
        "model",
        "task",
        "length",
        "setting",
        "policy",
        "scorer",
        "backend",
        "device",
        "dtype",
        "threads",
    ):
        items.append((name, ", ".join(str(value) for value in sorted(runs[name].unique())) or "none"))
    status = {
        str((claim.get("registration") or {}).get("status", "unknown")) for claim in logs.claims.values()
    }
    items.append(("registration", ", ".join(sorted(status)) or "not scored"))
    items += _versions(runs["versions"])
    return Table(pd.DataFrame(items, columns=["item", "value"]), {"item": "item", "value": "value"})


def _rows(logs: Logs, table: str) -> int:
    try:
        return sum(pq.read_metadata(path).num_rows for path in (logs.results / table).glob("*.parquet"))
    except (pa.ArrowException, OSError) as error:
        raise KvcertError(
            f"{logs.results}/{table}: a file cannot be read ({error}); run `kvcert check`"
        ) from None


def _versions(column: pd.Series) -> list[tuple[str, str]]:
    """Every value that any shard logged, by key: more than one value in a row means a mixed run."""
    found: dict[str, set[str]] = {}
    for text in column.unique():
        for key, value in json.loads(text).items():
            found.setdefault(str(key), set()).add(str(value))
    return [(f"version: {key}", ", ".join(sorted(values))) for key, values in sorted(found.items())]
