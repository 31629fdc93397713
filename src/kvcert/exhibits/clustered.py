"""Means, medians and slopes over units of traced examples, with a bootstrap that resamples whole examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Plan, Statistic, estimate
from kvcert.exhibits.outcome import Measured

Kind = Callable[[np.ndarray], Statistic]


def mean(values: np.ndarray) -> Statistic:
    """The weighted mean."""

    def statistic(weights: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return (weights @ values / weights.sum(1))[:, None]

    return statistic


def median(values: np.ndarray) -> Statistic:
    """The weighted median: the smallest value with at least half of the weight at or below it."""
    order = np.argsort(values, kind="stable")

    def statistic(weights: np.ndarray) -> np.ndarray:
        total = np.cumsum(weights[:, order], axis=1)
        at = (total >= total[:, -1:] / 2).argmax(axis=1)
        return np.where(total[:, -1] > 0, values[order][at], np.nan)[:, None]

    return statistic


def regression(x: np.ndarray, y: np.ndarray, which: int) -> Statistic:
    """Coefficient number `which` of the weighted least squares of y [n] on x [n, k]; NaN where it is not identified."""
    width, right = x.shape[1], x * y[:, None]
    products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)

    def statistic(weights: np.ndarray) -> np.ndarray:
        left = (weights @ products).reshape(-1, width, width)
        good = np.linalg.cond(left) < 1e12
        found = np.full((len(weights), 1), np.nan)
        if good.any():
            found[good, 0] = np.linalg.solve(left[good], (weights[good] @ right)[..., None])[:, which, 0]
        return found

    return statistic


def measured(rows: pd.DataFrame, statistic: Statistic, interval: dict[str, Any], note: str = "") -> Measured:
    """A statistic of `rows` with its cluster-bootstrap interval.

    Parameters
    ----------
    rows : with the columns of `traces.KEY`; the cluster is all of them. Clusters are drawn within model, task and length
        where each of these has at least two, else from all together: one alone in its stratum would not vary.
    interval : `level`, `resamples`, `seed`, as registered.
    """
    if rows.empty:
        return Measured(None, n=0, note="no units")
    names = rows[["model", "task", "length"]].astype(str).agg("/".join, axis=1)
    frame = pd.DataFrame({"stratum": names, "cluster": names + "/" + rows["example"].astype(str)})
    if frame.groupby("stratum")["cluster"].nunique().min() < 2:
        frame["stratum"] = "all"
    plan = Plan(interval["level"], interval["resamples"], interval["seed"])
    found = estimate(frame, statistic, ["value"], plan)
    low, high = found.interval("value")
    return Measured(found.value("value"), low, high, len(rows), note)


def by(
    rows: pd.DataFrame, groups: list[str], column: str, kind: Kind, interval: dict[str, Any]
) -> pd.DataFrame:
    """A statistic of one column in every group: the groups, `value`, `low`, `high`, `n`."""
    found = []
    for key, part in rows.groupby(groups, sort=True, observed=True):
        result = measured(part, kind(part[column].to_numpy(float)), interval)
        place = dict(zip(groups, key, strict=True))
        found.append(place | {"value": result.value, "low": result.low, "high": result.high, "n": len(part)})
    return pd.DataFrame(found, columns=[*groups, "value", "low", "high", "n"])
