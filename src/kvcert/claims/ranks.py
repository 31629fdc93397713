"""Spearman's rank correlation with a cluster bootstrap, and weighted quantiles."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from kvcert.claims.auc import ratio
from kvcert.claims.bootstrap import Statistic


def rank_moments(first: np.ndarray, second: np.ndarray, run: np.ndarray, runs: int) -> np.ndarray:
    """(runs, 6) sums of 1, x, y, xx, yy, xy over each run's steps; x and y are mid-ranks scaled to mean 0."""
    middle, size = (len(first) + 1) / 2, max(len(first), 1)
    x, y = (rankdata(first) - middle) / size, (rankdata(second) - middle) / size
    columns = (np.ones_like(x), x, y, x * x, y * y, x * y)
    return np.column_stack([np.bincount(run, values, minlength=runs) for values in columns])


def correlation(moments: np.ndarray) -> Statistic:
    """Spearman's rho from run moments. Resamples keep the full sample's ranks (a linearised bootstrap)."""

    def statistic(weights: np.ndarray) -> np.ndarray:
        n, x, y, xx, yy, xy = (weights @ moments).T
        with np.errstate(divide="ignore", invalid="ignore"):
            top = xy - x * y / n
            spread = np.stack([xx - x * x / n, yy - y * y / n]) / n
        # A constant side leaves rounding noise, not a variance.
        bottom = np.where(np.nan_to_num(spread).min(axis=0) > 1e-14, spread.prod(axis=0), 0.0)
        return ratio(top / np.where(n > 0, n, 1.0), np.sqrt(bottom))[:, None]

    return statistic


def weighted_quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    """Smallest value with at least `level` of the weight at or below it; NaN without values."""
    if len(values) == 0 or weights.sum() <= 0:
        return float("nan")
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    place = np.searchsorted(cumulated, level * cumulated[-1] * (1 - 1e-12))
    return float(values[order][min(place, len(order) - 1)])
