"""The ablations the paper left out: what each choice does to coverage (as claim C1) and to attribution (as claim C6)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from kvcert.claims import frames
from kvcert.claims.bootstrap import Plan
from kvcert.exhibits import grids, registration, variants
from kvcert.exhibits.ablation_rows import rerun_rows, study_rows
from kvcert.exhibits.outcome import Measured, record
from kvcert.registry import load_claims


def measure(config: dict[str, Any], root: Path, progress: Callable[[str], None]) -> None:
    """Measure the ablations on the default run's logs and on their own reruns; write their rows and their outcome."""
    started = time.monotonic()
    parameters, claims = registration.load(root)["ablations"]["parameters"], load_claims(root)
    interval = claims["common"]["interval"]
    plan = Plan(interval["level"], interval["resamples"], interval["seed"])
    results = Path(config["run"]["results"])
    study = frames.load(results, config, claims["common"])
    choices = variants.listed(config["study"]["constants"], parameters)
    rows = study_rows(study, claims["claims"], choices, plan)
    progress(f"ablations: {len(choices)} choices recomputed from the logged heads; the reruns follow")
    specs = grids.complete("ablations", config, root, progress)
    rows += rerun_rows(study, claims["claims"], config, parameters, choices[0], plan)
    frame = pd.DataFrame(rows)
    base = frame[frame["factor"] == "registered"]
    gaps = {name: reproduced(results, base, name) for name in ("C1", "C6")}
    about = {
        "model": specs[0]["model"]["name"], "reruns": len(specs),
        "rerun_examples": sum(len(spec["examples"]) for spec in specs),
        "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip
    record(results, root, "ablations", expectations(frame, gaps), {"": frame}, about)


def reproduced(results: Path, base: pd.DataFrame, claim: str) -> float:
    """Largest difference between the registered choice, recomputed here, and the scored claim's own values."""
    parts = {
        part["name"]: part["value"]
        for part in json.loads((results / "claims" / f"{claim}.json").read_text())["parts"]
    }
    if claim == "C6":
        pairs = [(parts.get(form), f"AUC {form}", None) for form in ("pooled", "conditional")]
    else:
        budgets = sorted(base["budget"].dropna().unique())
        pairs = [(parts.get(f"{name} at {b:g}"), name, b) for b in budgets for name in ("C1a", "C1b")]
    gaps = []
    for value, measure_name, budget in pairs:
        rows = base[base["measure"] == measure_name]
        rows = rows[rows["budget"].isna() if budget is None else rows["budget"] == budget]
        if value is None or len(rows) == 0:
            return float("nan")
        gaps.append(abs(float(rows["estimate"].iloc[0]) - float(value)))
    return max(gaps)


def expectations(frame: pd.DataFrame, gaps: dict[str, float]) -> dict[str, Measured]:
    """The registered quantities by id; differences are to the registered value of the same choice."""
    tight = float(frame["budget"].min())
    values = {
        "ablations-C1": gaps["C1"],
        "ablations-C6": gaps["C6"],
        "ablations-heads": change(frame, "query heads", "all", "C1a", tight),
        "ablations-layers": change(frame, "panel layers", "1", "C1a", tight),
        "ablations-layers-attribution": change(frame, "panel layers", "1", "AUC pooled"),
        "ablations-window": spread(frame, "signal steps", "AUC pooled"),
        "ablations-floor": spread(frame, "floor", "AUC pooled"),
        "ablations-delta": spread(frame, "delta", "AUC pooled"),
        "ablations-guarded": change(frame, "radius", "guarded", "C1b", tight),
        "ablations-range": change(frame, "radius", "no range term", "C1b", tight),
        "ablations-standard-error": change(frame, "radius", "standard error", "C1b", tight),
        "ablations-rho": change(frame, "rho", "0", "C1b", tight),
        "ablations-epsilon": spread(frame, "epsilon", "C1b", tight),
    }
    return {name: Measured(value) for name, value in values.items()}


def spread(frame: pd.DataFrame, factor: str, measure_name: str, budget: float | None = None) -> float:
    """Largest minus smallest estimate over the values of one factor."""
    rows = _rows(frame, factor, measure_name, budget)
    return float(rows["estimate"].max() - rows["estimate"].min())


def change(
    frame: pd.DataFrame, factor: str, value: str, measure_name: str, budget: float | None = None
) -> float:
    """Estimate at one value minus the estimate at the registered value of the same factor."""
    rows = _rows(frame, factor, measure_name, budget)
    return float(
        rows[rows["value"] == value]["estimate"].iloc[0] - rows[rows["registered"]]["estimate"].iloc[0]
    )


def _rows(frame: pd.DataFrame, factor: str, measure_name: str, budget: float | None) -> pd.DataFrame:
    rows = frame[(frame["factor"] == factor) & (frame["measure"] == measure_name)]
    if budget is not None:
        return rows[rows["budget"] == budget]
    keys = ["factor", "value", "registered", "measure"]
    return rows.groupby(keys, as_index=False, sort=False).agg(estimate=("estimate", "mean"))
