"""Table `coverage` (C1): coverage as scored, beside how wide the certificate is, by task and budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.heads import error_ratio
from kvcert.claims.ranks import weighted_quantile
from kvcert.paper.claims_json import coverage_strata
from kvcert.paper.logs import Logs
from kvcert.paper.render import Table

COLUMNS = {
    "task": "task", "budget": "budget", "c1a": "C1a panel", "c1a_low": "low", "c1a_high": "high", "c1b": "C1b head",
    "c1b_low": "low", "c1b_high": "high", "guarded": "guarded head", "kappa95": "κ95", "sharpness": "sharpness",
    "steps": "steps", "runs": "runs", "examples": "examples",
}  # fmt: skip


def coverage(logs: Logs) -> Table:
    """Coverage by task and budget, then all tasks together, from the token-forced Poisson runs.

    κ95 is the smallest multiplier of the step certificate that covers 95 % of the steps; sharpness is the median of
    certificate / true error (1: perfectly sharp; 10: ten times too wide). Examples weigh the same in both, as in C1.
    """
    scored = coverage_strata(logs.claims.get("C1"))
    scored = scored[scored["by"].isin(["budget", "budget x task"])]
    rows = []
    for (last, group, budget), part in scored.groupby(
        [scored["group"] == "all", "group", "budget"], sort=True
    ):
        values = part.set_index("measure")
        row: dict[str, Any] = {"task": group, "budget": budget}
        for column, measure in (("c1a", "C1a"), ("c1b", "C1b")):
            row |= {column: _get(values, measure, "mean"), f"{column}_low": _get(values, measure, "low")}
            row[f"{column}_high"] = _get(values, measure, "high")
        row["guarded"] = _get(values, "C1b guarded", "mean")
        steps = logs.steps[logs.steps["budget"] == budget]
        row |= tightness(steps if last else steps[steps["cell"] == group])
        rows.append(row | {"runs": int(part["n_runs"].max()), "examples": int(part["n_clusters"].max())})
    return Table(
        pd.DataFrame(rows, columns=list(COLUMNS)), COLUMNS, {"budget": -1, "kappa95": 2, "sharpness": 2}
    )


def tightness(steps: pd.DataFrame) -> dict[str, Any]:
    """κ95 and sharpness of the step certificate at one budget; within an example its runs weigh the same."""
    ratio = error_ratio(steps["error"].to_numpy(float), steps["certificate"].to_numpy(float))
    example = steps.groupby(["model", "task", "length", "example"])
    weight = 1.0 / (
        steps.groupby("run_id")["step"].transform("size") * example["run_id"].transform("nunique")
    )
    middle = weighted_quantile(ratio, weight.to_numpy(float), 0.5)
    return {
        "kappa95": weighted_quantile(ratio, weight.to_numpy(float), 0.95),
        "sharpness": 1 / middle if middle > 0 else np.inf if middle == 0 else np.nan, "steps": len(steps),
    }  # fmt: skip


def _get(values: pd.DataFrame, measure: str, column: str) -> float:
    return float(values[column].get(measure, float("nan")))
