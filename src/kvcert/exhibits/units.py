"""(layer, head, step) units of finished shards with what is known about their runs, and shares with cluster intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.auc import ratio
from kvcert.claims.bootstrap import Plan, estimate
from kvcert.claims.frames import read_columns
from kvcert.claims.means import weighted_means

RUNS = [
    "run_id",
    "task",
    "length",
    "example",
    "setting",
    "policy",
    "budget",
    "draw",
    "regime",
    "valid",
    "score",
]
HEADS = [
    "run_id", "step", "layer", "head", "panel", "radius", "guarded", "error", "norm", "r_max", "r_kept", "m", "tail",
]  # fmt: skip


@dataclass(frozen=True)
class Units:
    """`heads`: one row per unit of the registered panel, `run` its row in `runs`; `runs` with cluster and stratum."""

    runs: pd.DataFrame
    heads: pd.DataFrame

    def where(self, runs: pd.Series) -> Units:
        """The units of some of the runs (a mask over `runs`)."""
        chosen = np.flatnonzero(runs.to_numpy(bool))
        place = np.full(len(self.runs), -1)
        place[chosen] = np.arange(len(chosen))
        run = place[self.heads["run"].to_numpy()]
        heads = self.heads[run >= 0].assign(run=run[run >= 0]).reset_index(drop=True)
        return Units(self.runs.iloc[chosen].reset_index(drop=True), heads)

    def steps(self) -> int:
        """Decode steps: pairs of run and step."""
        return len(self.heads[["run", "step"]].drop_duplicates())


def read(results: Path, shards: Iterable[str], policies: Sequence[str] | None = None) -> Units:
    """Valid runs and their panel units in which something is evicted; of some policies (as the logs name them) or all.

    Units are chosen as claim C1 chooses them: the registered panel, a tail that the design does not keep whole, and
    numbers for error and radius.
    """
    frames, parts, seen = [], [], 0
    for shard in shards:
        runs = read_columns(Path(results) / "runs" / f"{shard}.parquet", RUNS).to_pandas()
        runs = runs[runs["valid"].to_numpy(bool) & (runs["policy"].isin(policies) if policies else True)]
        table = read_columns(Path(results) / "heads" / f"{shard}.parquet", HEADS)
        names = table.column("run_id").combine_chunks()
        place = pd.Index(runs["run_id"]).get_indexer(names.dictionary.to_pylist())
        heads = table.drop_columns(["run_id"]).to_pandas()
        heads["run"] = place[names.indices.to_numpy()] if len(heads) else np.zeros(0, int)
        keep = (heads["run"] >= 0) & heads["panel"] & (heads["tail"] > 0) & ~(heads["m"] >= heads["tail"])
        keep &= np.isfinite(heads["error"]) & heads["radius"].notna()
        parts.append(heads[keep].drop(columns="panel").assign(run=lambda x, at=seen: x["run"] + at))
        frames.append(runs)
        seen += len(runs)
    runs = pd.concat(frames, ignore_index=True)
    for column in ("task", "setting", "policy", "regime"):
        runs[column] = runs[column].astype(str)
    runs["stratum"] = runs["task"] + "/" + runs["length"].astype(str)
    runs["cluster"] = runs["stratum"] + "/" + runs["example"].astype(str)
    heads = pd.concat(parts, ignore_index=True)
    numbers = ["radius", "guarded", "error", "norm", "r_max", "r_kept", "m", "tail"]
    return Units(runs, heads.astype(dict.fromkeys(numbers, np.float64)))


def share(units: Units, inside: np.ndarray, among: np.ndarray, plan: Plan) -> dict[str, Any]:
    """Share of units `inside` among units `among` (masks over `heads`): value, interval over clusters, numbers behind it."""
    run = units.heads["run"].to_numpy()
    count = np.bincount(run[among], minlength=len(units.runs)).astype(float)
    total = np.bincount(run[among & inside], minlength=len(units.runs)).astype(float)
    used = count > 0
    count, total, rows = count[used], total[used], units.runs[used].reset_index(drop=True)
    found = estimate(rows, lambda weights: ratio(weights @ total, weights @ count)[:, None], ["share"], plan)
    low, high = found.interval("share", share=True)
    return {
        "value": found.value("share"), "low": low, "high": high,
        "units": int(count.sum()), "clusters": int(rows["cluster"].nunique()),
    }  # fmt: skip


def mean(rows: pd.DataFrame, values: np.ndarray, plan: Plan) -> dict[str, Any]:
    """Mean of one value a row with its cluster interval; NaN rows are left out."""
    known = ~np.isnan(values)
    rows, values = rows[known].reset_index(drop=True), values[known][:, None]
    found = estimate(rows, weighted_means(values, np.ones_like(values)), ["mean"], plan)
    low, high = found.interval("mean")
    clusters = int(rows["cluster"].nunique()) if len(rows) else 0
    return {"value": found.value("mean"), "low": low, "high": high, "clusters": clusters}
