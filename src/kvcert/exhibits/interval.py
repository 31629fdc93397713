"""Shares and medians of an exhibit's rows, with the study's cluster bootstrap over examples. No torch here."""

from __future__ import annotations

import pandas as pd

from kvcert.claims.bootstrap import Plan, estimate
from kvcert.exhibits import clustered
from kvcert.exhibits.outcome import Measured

PLAN = Plan(level=0.95, resamples=500, seed=2607)


def _rows(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    rows = rows[rows[column].notna()]
    cluster = rows["task"].astype(str) + "/" + rows["example"].astype(str)
    # One stratum: with one or two examples a task, resampling inside tasks would leave nothing to vary.
    return rows.assign(stratum="all", cluster=cluster)


def share(rows: pd.DataFrame, column: str, note: str = "") -> Measured:
    """Share of rows in which a truth value holds; the exact bound over examples where it is 0 or 1."""
    return _measured(rows, column, clustered.mean, note, share=True)


def median(rows: pd.DataFrame, column: str, note: str = "") -> Measured:
    """Median of a column."""
    return _measured(rows, column, clustered.median, note)


def _measured(
    rows: pd.DataFrame, column: str, kind: clustered.Kind, note: str, share: bool = False
) -> Measured:
    some = _rows(rows, column)
    if some.empty:
        return Measured(None, note=note or "nothing to measure")
    found = estimate(some, kind(some[column].to_numpy(float)), ("x",), PLAN)
    low, high = found.interval("x", share=share)
    return Measured(found.value("x"), low, high, len(some), note)
