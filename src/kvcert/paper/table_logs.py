"""Tables built from the Parquet logs alone: coverage, accuracy, cost, summary."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from kvcert.errors import KvcertError
from kvcert.logs.schema import TABLES
from kvcert.paper.logs import Logs
from kvcert.paper.render import Table
from kvcert.paper.stats import NOMINAL, cluster_mean, covered, table_of_means

CELL = ("model", "task", "length")
KEY_TITLES = {"model": "model", "task": "task", "length": "length", "setting": "setting", "policy": "policy"}
BUDGET = {"budget": 4}
#: What a coverage row holds after its keys, with the heading for people (none: CSV only).
COVERAGE = {
    "c1a": "C1a panel", "c1a_low": "low", "c1a_high": "high", "c1b": "C1b head", "c1b_low": "low", "c1b_high": "high",
    "guarded_panel": "guarded panel", "guarded_head": "guarded head", "kappa95": "κ95", "sharpness": "sharpness",
    "rank_correlation": "rank corr.", "steps": "steps", "heads": "heads", "examples": "examples",
}  # fmt: skip


def coverage(logs: Logs) -> Table:
    """Coverage by (model, task, length) and budget, then all of them pooled, from the token-forced Poisson runs.

    κ95 is the smallest multiplier of the certificate that covers 95 % of the steps; sharpness is the median of
    certificate / true error (1 is a perfectly sharp certificate, 10 a certificate ten times too wide).
    """
    steps, heads = covered(logs.steps), covered(logs.heads, "radius")
    rows: list[dict[str, Any]] = []
    for keys, part in steps.groupby([*CELL, "budget"], observed=True, sort=True):
        inside = (heads[[*CELL, "budget"]] == list(keys)).all(axis=1)
        rows.append(dict(zip([*CELL, "budget"], keys, strict=True)) | _coverage(part, heads[inside]))
    for budget, part in steps.groupby("budget", sort=True):
        same = {name: part[name].iloc[0] if part[name].nunique() == 1 else None for name in ("model", "length")}
        rows.append(same | {"task": "all", "budget": budget} | _coverage(part, heads[heads["budget"] == budget]))
    frame = pd.DataFrame(rows, columns=[*CELL, "budget", *COVERAGE])
    frame["length"] = frame["length"].astype("Int64")
    return Table(frame, KEY_TITLES | {"budget": "budget"} | COVERAGE, BUDGET | {"kappa95": 2, "sharpness": 2})


def _coverage(steps: pd.DataFrame, heads: pd.DataFrame) -> dict[str, Any]:
    a, a_low, a_high, examples = cluster_mean(steps, "covered")
    b, b_low, b_high, _ = cluster_mean(heads, "covered")
    certificate, error = steps["certificate"].to_numpy(float), steps["error"].to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(error == 0, 0.0, error / certificate)  # the multiplier at which this step is covered
        wide = np.where(error == 0, np.inf, certificate / error)
    both = np.isfinite(certificate) & np.isfinite(error)
    varies = len(set(certificate[both])) > 1 and len(set(error[both])) > 1
    rank = pd.Series(certificate[both]).corr(pd.Series(error[both]), method="spearman") if varies else float("nan")
    return {
        "c1a": a, "c1a_low": a_low, "c1a_high": a_high, "c1b": b, "c1b_low": b_low, "c1b_high": b_high,
        "guarded_panel": cluster_mean(steps, "covered_guarded")[0], "guarded_head": cluster_mean(heads, "covered_guarded")[0],
        "kappa95": float(np.quantile(needed, NOMINAL, method="inverted_cdf")), "sharpness": float(np.median(wide)),
        "rank_correlation": rank, "steps": len(steps), "heads": len(heads), "examples": examples,
    }  # fmt: skip


def accuracy(logs: Logs) -> Table:
    """Mean score of the valid free runs, draws averaged within an example, with cluster bootstrap intervals."""
    frame = table_of_means(logs.free, [*CELL, "setting", "policy", "scorer", "budget"], "score")
    frame = frame.rename(columns={"clusters": "examples", "n": "runs"})
    titles = KEY_TITLES | {"budget": "budget", "mean": "score", "low": "low", "high": "high", "examples": "examples", "runs": "runs"}
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
    items += [(f"runs, {regime}", f"{count:,}") for regime, count in runs["regime"].value_counts().sort_index().items()]
    items.append(("runs, invalid", f"{int((~runs['valid'].astype(bool)).sum()):,}"))
    items += [(f"invalid: {why}", f"{count:,}") for why, count in runs["invalid_reason"].value_counts().sort_index().items()]
    identity = runs["identity"].astype(bool) & (runs["policy"] != "full")
    items.append(("runs with nothing evicted (full cache excepted)", f"{int(identity.sum()):,}"))
    items.append(("examples", f"{len(runs[['model', 'task', 'length', 'example']].drop_duplicates()):,}"))
    for name in ("model", "task", "length", "setting", "policy", "scorer", "backend", "device", "dtype", "threads"):
        items.append((name, ", ".join(str(value) for value in sorted(runs[name].unique())) or "none"))
    status = {str((claim.get("registration") or {}).get("status", "unknown")) for claim in logs.claims.values()}
    items.append(("registration", ", ".join(sorted(status)) or "not scored"))
    items += _versions(runs["versions"])
    return Table(pd.DataFrame(items, columns=["item", "value"]), {"item": "item", "value": "value"})


def _rows(logs: Logs, table: str) -> int:
    try:
        return sum(pq.read_metadata(path).num_rows for path in (logs.results / table).glob("*.parquet"))
    except (pa.ArrowException, OSError) as error:
        raise KvcertError(f"{logs.results}/{table}: a file cannot be read ({error}); run `kvcert check`") from None


def _versions(column: pd.Series) -> list[tuple[str, str]]:
    """Every value that any shard logged, by key: more than one value in a row means a mixed run."""
    found: dict[str, set[str]] = {}
    for text in column.unique():
        for key, value in json.loads(text).items():
            found.setdefault(str(key), set()).add(str(value))
    return [(f"version: {key}", ", ".join(sorted(values))) for key, values in sorted(found.items())]
