"""X2: the variance estimator and the radius on recorded attention, analytically, by simulation and by enumeration."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from kvcert.exhibits import clustered, outcome, registration
from kvcert.exhibits.outcome import Measured
from kvcert.exhibits.traces import read
from kvcert.exhibits.x2_rows import Rows, analytic_rows, banded, bands, drawn_rows, small_rows


def measure(config: dict[str, Any], root: Path, progress: Callable[[str], None]) -> None:
    """Measure X2 on the traces of these results and write its outcome.

    Raises
    ------
    KvcertError when traces are missing or the registration is not complete.
    """
    started = time.monotonic()
    given = registration.load(root)["X2"]["parameters"]
    constants = config["study"]["constants"]
    exact: Rows = []
    drawn: Rows = []
    small: Rows = []
    torch.set_num_threads(config["run"]["threads"])
    with torch.inference_mode():
        for number, trace in enumerate(read(config, given["examples"]), 1):
            exact += analytic_rows(trace, given, constants)
            drawn += drawn_rows(trace, given, constants)
            small += small_rows(trace, given, constants)
            progress(f"X2: example {number}, {time.monotonic() - started:.0f} s")
    frames = {"": banded(drawn), "analytic": banded(exact), "enumeration": pd.DataFrame(small)}
    frames["bands"] = bands(frames[""], given["interval"])
    about = {
        "examples": number,
        "units": {"drawn": len(drawn), "analytic": len(exact), "enumerated": len(small)},
        "draws": given["draws"],
        "population": "the context's tokens; what a run appends later is not in the traces",
        "seconds": round(time.monotonic() - started, 1),
    }
    outcome.record(Path(config["run"]["results"]), root, "X2", expectations(frames, given), frames, about)


def expectations(frames: dict[str, pd.DataFrame], given: dict[str, Any]) -> dict[str, Measured]:
    """Every registered expectation's value."""
    drawn, exact, small = frames[""], frames["analytic"], frames["enumeration"]
    interval = given["interval"]
    low, high = min(given["budgets"]), max(given["budgets"])

    def apart(frame: pd.DataFrame) -> Measured:
        return Measured(
            float(((frame["expected"] - frame["linear"]).abs() / frame["linear"]).max()), n=len(frame)
        )

    def middle(column: str, rows: pd.DataFrame) -> Measured:
        return clustered.measured(rows, clustered.median(rows[column].to_numpy(float)), interval)

    def average(column: str, rows: pd.DataFrame) -> Measured:
        return clustered.measured(rows, clustered.mean(rows[column].to_numpy(float)), interval)

    ratios = [middle("ratio", drawn[drawn["budget"] == budget]) for budget in given["budgets"]]
    small_budget, large_budget = drawn[drawn["budget"] == low], drawn[drawn["budget"] == high]
    heavy = small_budget[small_budget["r"] > 1.0]
    few = (small_budget["ess"] <= 8).to_numpy(float)
    design_matrix = np.column_stack([np.ones_like(few), few])
    lower = clustered.regression(design_matrix, small_budget["coverage"].to_numpy(float), 1)
    unseen = exact[f"unseen_{given['grades'][0]}"]
    return {
        "X2.analytic": apart(exact),
        "X2.enumerated": apart(small),
        "X2.ratio_low": min(ratios, key=lambda entry: entry.value or 0.0),
        "X2.ratio_high": max(ratios, key=lambda entry: entry.value or 0.0),
        "X2.small": middle("ratio", small),
        "X2.bias": middle("bias_share", small_budget),
        "X2.coverage_small": average("coverage", small_budget),
        "X2.coverage_large": average("coverage", large_budget),
        "X2.low_ess": clustered.measured(small_budget, lower, interval),
        "X2.heavy": average("guarded", heavy),
        "X2.unseen": Measured(float(unseen.max()), n=len(unseen)),
    }
