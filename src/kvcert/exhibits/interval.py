"""Shares and medians of an exhibit's rows, with the study's cluster bootstrap over examples. No torch here."""

from __future__ import annotations

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Plan, estimate
from kvcert.exhibits.outcome import Measured

PLAN = Plan(level=0.95, resamples=500, seed=2607)


def weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Lower median of (n,) values under each row of (B, n) weights; (B,), NaN where all weights are 0."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[:, order], axis=1)
    place = (total < total[:, -1:] / 2).sum(axis=1)
    return np.where(total[:, -1] > 0, values[order][np.minimum(place, len(values) - 1)], np.nan)


def _rows(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    rows = rows[rows[column].notna()]
    cluster = rows["task"].astype(str) + "/" + rows["example"].astype(str)
    # One stratum: with one or two examples a task, resampling inside tasks would leave nothing to vary.
    return rows.assign(stratum="all", cluster=cluster)


def share(rows: pd.DataFrame, column: str, note: str = "") -> Measured:
    """Share of rows in which a truth value holds; the exact bound over examples where it is 0 or 1."""
    some = _rows(rows, column)
    if some.empty:
        return Measured(None, note=note or "nothing to measure")
    held = some[column].to_numpy(float)
    found = estimate(some, lambda w: (w @ held / w.sum(axis=1))[:, None], ("x",), PLAN)
    low, high = found.interval("x", share=True)
    return Measured(found.value("x"), low, high, len(some), note)


def median(rows: pd.DataFrame, column: str, note: str = "") -> Measured:
    """Median of a column."""
    some = _rows(rows, column)
    if some.empty:
        return Measured(None, note=note or "nothing to measure")
    values = some[column].to_numpy(float)
    found = estimate(some, lambda w: weighted_median(values, w)[:, None], ("x",), PLAN)
    low, high = found.interval("x")
    return Measured(found.value("x"), low, high, len(some), note)
