"""Weighted AUC, gates, correlations and the jackknife from their definitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

NAN = float("nan")


def divided(top: float, bottom: float) -> float:
    """`top / bottom`; NaN where nothing is below."""
    return float(top / bottom) if bottom > 0 else NAN


def pairs_won(
    score: np.ndarray, positive: np.ndarray, weight: np.ndarray, block: np.ndarray | None = None
) -> tuple[float, float]:
    """Weight of the (positive, negative) pairs that `score` orders rightly, ties half, and of all pairs.

    For every positive: the weight of the negatives strictly below it and of those not above it, found by bisection.
    With `block`, (n,) small integers, pairs inside one block only: a block's scores lie in a range of their own.
    """
    if len(score) == 0:
        return 0.0, 0.0
    levels, level = np.unique(score, return_inverse=True)
    start = (np.zeros(len(score), int) if block is None else block) * (len(levels) + 1)
    place = start + level
    order = np.argsort(place[~positive])
    negative = place[~positive][order]
    mass = np.concatenate([[0.0], np.cumsum(weight[~positive][order])])
    mine, own, first = place[positive], weight[positive], start[positive]
    before = mass[np.searchsorted(negative, first, side="left")]
    below = mass[np.searchsorted(negative, mine, side="left")] - before
    up_to = mass[np.searchsorted(negative, mine, side="right")] - before
    every = mass[np.searchsorted(negative, first + len(levels), side="right")] - before
    return float(np.dot(own, (below + up_to) / 2)), float(np.dot(own, every))


def auc(score: np.ndarray, positive: np.ndarray, weight: np.ndarray, cell: np.ndarray | None = None) -> float:
    """Weighted AUC, pooled or (with `cell`) conditional; NaN without a pair."""
    return divided(*pairs_won(score, positive, weight, cell))


def gate(signal: np.ndarray, value: np.ndarray, weight: np.ndarray, fraction: float) -> float:
    """Weighted `value` collected from the largest `signal` down, until `fraction` of the weight is spent.

    Equal signals share what is left equally.
    """
    levels, place = np.unique(signal, return_inverse=True)
    mass = np.bincount(place, weight, len(levels))[::-1].tolist()
    worth = np.bincount(place, weight * value, len(levels))[::-1].tolist()
    left, total = fraction * float(np.sum(weight)), 0.0
    for have, gives in zip(mass, worth, strict=True):
        if left <= 0:
            break
        taken = min(1.0, left / have) if have > 0 else 0.0
        total, left = total + taken * gives, left - taken * have
    return total


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation of mid-ranks; NaN where a side is constant."""
    if len(first) < 2:
        return NAN
    ranks = [pd.Series(side).rank(method="average").to_numpy() for side in (first, second)]
    if any(np.ptp(side) == 0 for side in ranks):
        return NAN
    one, two = (side - side.mean() for side in ranks)
    return float(np.dot(one, two) / np.sqrt(np.dot(one, one) * np.dot(two, two)))


#: Clusters of a task are left out one at a time, or where there are more than this in as many groups.
GROUPS = 12


def jackknife(rows: pd.DataFrame, statistic: Callable[[pd.DataFrame], dict[str, float]]) -> dict[str, float]:
    """Standard error of every statistic from leaving out groups of clusters within tasks (Wolter 2007, section 4.5).

    Returns
    -------
    NaN where a task has a single cluster or a replicate is undefined.
    """
    cluster, task = rows["cluster"].to_numpy(), rows["task"].to_numpy()
    values: dict[str, list[tuple[float, int]]] = {}
    for name in sorted(set(task)):
        inside = np.flatnonzero(task == name)
        codes = np.unique(cluster[inside], return_inverse=True)[1]
        groups = min(GROUPS, int(codes.max()) + 1)
        replicates: dict[str, list[float]] = {}
        for group in range(groups):
            keep = np.ones(len(rows), bool)
            keep[inside[codes % groups == group]] = False
            for key, value in statistic(rows[keep]).items():
                replicates.setdefault(key, []).append(value)
        for key, found in replicates.items():
            spread = float(np.sum((np.array(found) - np.mean(found)) ** 2))
            values.setdefault(key, []).append(((groups - 1) / groups * spread, groups))
    return {
        key: float(np.sqrt(sum(part for part, _ in parts))) if min(size for _, size in parts) > 1 else NAN
        for key, parts in values.items()
    }
