"""Rows of the ablations: coverage as claim C1 has it and attribution as claim C6, under every choice. No torch."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from kvcert.claims import c1_coverage, c6_attribution, frames
from kvcert.claims.bootstrap import Plan
from kvcert.claims.frames import Study
from kvcert.claims.labels import policy_runs, task_filter
from kvcert.exhibits import grids, variants
from kvcert.exhibits.variants import Variant
from kvcert.grid import Spec

Row = dict[str, Any]


def study_rows(
    study: Study, claims: dict[str, Any], choices: list[Variant], plan: Plan, of: str = ""
) -> list[Row]:
    """C1a and C1b by budget and both AUCs of attribution for every choice, on one study's logs.

    The rows and weights are those of claims C1 and C6; only the certificate is another.
    """
    forced = policy_runs(study, study.common["policy"], claims["C1"], "forced").reset_index(drop=True)
    failed, _ = c6_attribution.failures(study, claims["C6"])
    failed = failed[failed["setting"].isin(claims["C6"]["scope"]["settings"])].reset_index(drop=True)
    files = study.files("heads")
    coverage = variants.recompute(files, forced["run_id"], choices)
    signals = variants.recompute(files, failed["run_id"], choices)
    rows: list[Row] = []
    for choice, shares, signal in zip(choices, coverage, signals, strict=True):
        key = {
            "factor": choice.factor,
            "value": choice.value,
            "registered": choice.registered,
            "of": of or "default run",
        }
        rows += [key | row for row in _coverage(forced, shares, plan)]
        rows += [key | row for row in _attribution(failed, signal["signal"].to_numpy(), plan)]
    return rows


def _coverage(runs: pd.DataFrame, shares: pd.DataFrame, plan: Plan) -> list[Row]:
    rows = []
    runs = runs.assign(C1a=shares["C1a"], C1b=shares["C1b"], **{"C1b guarded": shares["C1b"]})
    runs = runs[runs["C1a"].notna()]
    for _, some in runs.groupby("budget"):
        some = some.reset_index(drop=True)
        found = c1_coverage.shares(some, plan)
        for name in ("C1a", "C1b"):
            low, high = found.interval(name, share=True)
            rows.append(
                {"measure": name, "budget": float(some["budget"].iloc[0]), "estimate": found.value(name),
                 "low": low, "high": high, "runs": len(some), "clusters": found.clusters}
            )  # fmt: skip
    return rows


def _attribution(rows: pd.DataFrame, signal: np.ndarray, plan: Plan) -> list[Row]:
    rows = rows.assign(signal=signal)
    rows = rows[rows["signal"].notna()].reset_index(drop=True)
    found = c6_attribution.contender(rows, "certificate", plan)
    return [
        {"measure": f"AUC {form}", "budget": float("nan"), "estimate": found.value(form),
         "low": found.interval(form)[0], "high": found.interval(form)[1], "runs": len(rows), "clusters": found.clusters}
        for form in ("pooled", "conditional")
    ]  # fmt: skip


def rerun_rows(
    study: Study, claims: dict[str, Any], config: dict[str, Any], parameters: dict[str, Any], base: Variant, plan: Plan
) -> list[Row]:  # fmt: skip
    """ρ and ε: the registered value from the default run's logs, the others from reruns of the same examples."""
    rows: list[Row] = []
    cells = Path(grids.operational(config)["results"])
    inside, _ = task_filter(study, claims["C6"])
    # The filter is the default run's: a handful of examples would redraw it.
    open_claims = claims | {"C6": claims["C6"] | {"scope": claims["C6"]["scope"] | {"tasks": "all"}}}
    for constant, values in parameters["reruns"].items():
        known = float(config["study"]["constants"][constant])
        for value in sorted({known, *map(float, values)}):
            specs = grids.rerun(config, parameters, constant, value)
            one = same_examples(study, specs) if value == known else reran(study, cells, specs)
            choice = dataclasses.replace(base, factor=constant, value=f"{value:g}", registered=value == known)
            found = study_rows(one, open_claims, [choice], plan, "rerun examples")
            narrow = dataclasses.replace(one, runs=one.runs[one.runs["cell"].isin(inside)])
            auc = study_rows(narrow, open_claims, [choice], plan, "rerun examples")
            rows += [row for row in found if row["measure"].startswith("C1")]
            rows += [row for row in auc if row["measure"].startswith("AUC")]
    return rows


def same_examples(study: Study, specs: list[Spec]) -> Study:
    """The default run's part that the reruns repeat."""
    wanted = {
        (s["model"]["name"], s["task"]["name"], s["task"]["length"], e) for s in specs for e in s["examples"]
    }
    keys = zip(*(study.runs[name] for name in ("model", "task", "length", "example")), strict=True)
    runs = study.runs[[key in wanted for key in keys]].reset_index(drop=True)
    return dataclasses.replace(study, runs=runs)


def reran(study: Study, cells: Path, specs: list[Spec]) -> Study:
    """One value's reruns as a study."""
    names = tuple(spec["shard"] for spec in specs)
    tables = [frames.read_columns(cells / "runs" / f"{name}.parquet", list(frames.COLUMNS)) for name in names]
    runs, invalid = frames.usable(pa.concat_tables(tables).to_pandas())
    cell = study.runs.drop_duplicates(["model", "task", "length"]).set_index(["model", "task", "length"])[
        "cell"
    ]
    runs["cell"] = [cell[key] for key in zip(runs["model"], runs["task"], runs["length"], strict=True)]
    return Study(runs, cells, names, study.scorer, study.common, invalid)
