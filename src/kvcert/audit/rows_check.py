"""The bundle's rows against each other: labels, run names, the grid, steps behind signals, heads behind counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from kvcert.audit.derive import rows_table
from kvcert.audit.second.claims import Computed
from kvcert.grid import expected_run_ids, shards, spec_sha256

KEYS = ("model", "task", "length", "example", "setting", "scorer", "policy", "budget", "draw", "regime")
#: Signals and confidences are means of float32 steps.
STEP = 1e-5


def run_problems(runs: pd.DataFrame, config: dict[str, Any]) -> list[str]:
    """Labels that contradict scores, thresholds that are not the study's, names that contradict columns, a wrong grid."""
    found = []
    scored = runs[runs["valid"] & (runs["regime"] == "free")]
    wrong = scored[(scored["score"] < scored["fail_below"]) != scored["fail"].map(bool, na_action="ignore")]
    wrong = wrong[wrong["score"].notna()]
    found += [f"run {key}: `fail` contradicts score and threshold" for key in wrong["run_id"][:3]]
    outside = scored[(scored["score"] < 0) | (scored["score"] > 1)]
    found += [f"run {key}: score outside [0, 1]" for key in outside["run_id"][:3]]
    lines = {task["name"]: task["fail_below"] for task in config["study"]["tasks"]}
    moved = runs[runs["fail_below"] != runs["task"].map(lines)]
    found += [f"run {key}: `fail_below` is not the study's" for key in moved["run_id"][:3]]
    budgets = runs["budget"].map(lambda value: f"{value:g}")
    named = runs["model"].astype(str)
    for key in KEYS[1:]:
        named = named + "/" + (budgets if key == "budget" else runs[key].astype(str))
    found += [
        f"run {key}: its columns say {other}"
        for key, other in zip(runs["run_id"], named, strict=True)
        if key != other
    ][:3]
    specs = {spec["shard"]: spec for spec in shards(config)}
    wanted = {key for spec in specs.values() for key in expected_run_ids(spec)}
    listed = runs["run_id"].tolist()
    broken = {_example(key) for key in runs["run_id"][(runs["policy"] == "full") & ~runs["valid"]]}
    absent = {k for k in wanted - set(listed) if not (k.endswith("/forced") and _example(k) in broken)}
    found += [f"run {key} of the grid is missing" for key in sorted(absent)[:3]]
    found += [f"run {key} is not of the grid" for key in sorted(set(listed) - wanted)[:3]]
    if len(listed) != len(set(listed)):
        found.append("a run is there twice")
    hashes = {name: spec_sha256(spec) for name, spec in specs.items()}
    foreign = runs[runs["spec_sha256"] != runs["shard"].map(hashes)]
    found += [f"run {key}: of another specification" for key in foreign["run_id"][:1]]
    return found


def _example(key: str) -> tuple[str, ...]:
    return tuple(key.split("/")[:4])


def step_problems(runs: pd.DataFrame, steps: pd.DataFrame, first: int) -> list[str]:
    """Signals, confidences, errors and `covered` flags that the steps do not give."""
    found = []
    counts = steps.groupby("run_id")["step"].agg(["size", "nunique", "max"])
    mine = counts.reindex(runs["run_id"]).to_numpy()
    bad = (mine != runs["n_steps"].to_numpy()[:, None]).any(axis=1)
    found += [f"run {key}: its steps are not 1..n" for key in runs["run_id"][bad][:3]]
    known = steps["certificate"].notna() & steps["error"].notna()
    flags = steps["covered"].map(bool, na_action="ignore")
    wrong = known & steps["covered"].notna() & (flags != (steps["error"] <= steps["certificate"]))
    found += [f"run {key}: `covered` contradicts error and certificate" for key in steps["run_id"][wrong][:3]]
    valid = runs[runs["valid"]].set_index("run_id")
    early = steps[steps["step"] <= first].assign(
        **{name: steps[name].astype(float) for name in ("logp", "certificate", "guarded", "error")}
    )
    early = early[early["run_id"].isin(valid.index)]
    means = early.groupby("run_id")[["certificate", "guarded", "error"]].mean()
    whole = steps.astype({"logp": float}).groupby("run_id")["logp"].mean()
    for column, values in (
        ("signal", means["certificate"]), ("signal_guarded", means["guarded"]), ("error", means["error"]),
        ("logp_mean", whole),
    ):  # fmt: skip
        told = valid[column].astype(float).dropna()
        again = values.reindex(told.index)
        with np.errstate(invalid="ignore"):
            near = (told - again).abs() <= STEP * np.maximum(1.0, told.abs())
        off = told.index[~(near | (told == again) | again.isna())]
        found += [f"run {key}: `{column}` is not the mean of its steps" for key in off[:3]]
    return found


def head_problems(folder: Path) -> list[str]:
    """Heads whose number or sums are not those counted in the logs."""
    heads = pq.read_table(
        folder / "heads.parquet", columns=["run", "step", "radius", "error", "wide", "band"]
    )
    counts = pq.read_table(folder / "counts.parquet").to_pandas()
    run, size = heads["run"].to_numpy(), len(counts)
    if len(run) and (run.min() < 0 or run.max() >= size):
        return ["a run number is not in counts.parquet"]
    found = []
    if (np.bincount(run, minlength=size) != counts["used"].to_numpy()).any():
        found.append("the number of pairs of some run is not that of counts.parquet")
    columns = {name: heads[name].to_numpy().astype(float) for name in ("radius", "error", "wide", "band")}
    columns["band"] *= heads["step"].to_numpy()
    for name, values in columns.items():
        kept = np.isfinite(values)
        sums = np.bincount(run[kept], values[kept], minlength=size)
        told = counts[f"{name}_sum"].to_numpy(float)
        if not (np.abs(sums - told) <= 1e-9 * np.maximum(1.0, np.abs(told))).all():
            found.append(f"the sum of `{name}` of some run is not that of counts.parquet")
    return found


def claim_row_problems(folder: Path, found: Computed) -> list[str]:
    """Rows of `rows.parquet` whose labels, weights or signals do not follow from `runs.parquet`."""
    stored, again = pq.read_table(folder / "rows.parquet"), rows_table(found)
    if stored.column_names != again.column_names or stored.num_rows != again.num_rows:
        return [f"{stored.num_rows} rows, {again.num_rows} follow from runs.parquet (or other columns)"]
    problems = []
    for name in again.column_names:
        one, two = stored[name].combine_chunks(), again[name].combine_chunks()
        if pa.types.is_floating(two.type) and pa.types.is_floating(one.type):
            a, b = (np.asarray(side.to_numpy(zero_copy_only=False), float) for side in (one, two))
            with np.errstate(invalid="ignore"):
                same = (
                    (np.abs(a - b) <= 1e-9 * np.maximum(1.0, np.abs(b)))
                    | (a == b)
                    | (np.isnan(a) & np.isnan(b))
                )
            bad = np.flatnonzero(~same)
        else:
            bad = np.array(
                [i for i, (a, b) in enumerate(zip(one.to_pylist(), two.to_pylist(), strict=True)) if a != b]
            )
        if len(bad):
            problems.append(f"row {int(bad[0])}: `{name}` does not follow from runs.parquet")
    return problems
