"""Area under the ROC curve as a share of correctly ordered pairs, weighted, for many weightings at once."""

from __future__ import annotations

import numpy as np

from kvcert.claims.ties import grouped, tie_starts


def pair_sums(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weight of the correctly ordered (positive, negative) pairs, ties counted half, and of all such pairs.

    Parameters
    ----------
    scores : (n,) finite or infinite, never NaN; larger means "more likely positive".
    positive : (n,) bool.
    weights : (B, n) non-negative; each row is one weighting (a resample).

    Returns
    -------
    (B,), (B,) : the ordered pairs' weight and the pairs' weight; their ratio is the AUC (Mann-Whitney).
    """
    if len(scores) == 0:
        return np.zeros(len(weights)), np.zeros(len(weights))
    order = np.argsort(scores, kind="stable")
    starts = tie_starts(scores[order])
    sorted_weights = weights[:, order]
    plus = grouped(sorted_weights * positive[order], starts)
    minus = grouped(sorted_weights * ~positive[order], starts)
    below = np.cumsum(minus, axis=1) - minus
    return (plus * (below + 0.5 * minus)).sum(axis=1), plus.sum(axis=1) * minus.sum(axis=1)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """`numerator / denominator`, NaN (and no warning) where the denominator is 0."""
    safe = np.where(denominator > 0, denominator, 1.0)
    return np.where(denominator > 0, numerator / safe, np.nan)


def auc(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted AUC per row of `weights`, shape (B,); NaN where a class is missing. Never reflected at 1/2."""
    return ratio(*pair_sums(scores, positive, weights))


def conditional_auc(
    scores: np.ndarray, positive: np.ndarray, weights: np.ndarray, cells: np.ndarray
) -> np.ndarray:
    """AUC over the pairs inside one cell, cells weighted by their pairs; shape (B,), NaN without any pair."""
    numerator, pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for cell in np.unique(cells):
        inside = np.flatnonzero(cells == cell)
        if positive[inside].all() or not positive[inside].any():
            continue
        part, count = pair_sums(scores[inside], positive[inside], weights[:, inside])
        numerator, pairs = numerator + part, pairs + count
    return ratio(numerator, pairs)


def pair_count(positive: np.ndarray, weights: np.ndarray, cells: np.ndarray) -> float:
    """Weight of all (positive, negative) pairs inside one cell; (n,) weights."""
    total = 0.0
    for cell in np.unique(cells):
        inside = cells == cell
        total += float(weights[inside & positive].sum() * weights[inside & ~positive].sum())
    return total


def roc(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False- and true-positive rates from the largest score down, starting at (0, 0); (n,) weights."""
    if len(scores) == 0 or positive.all() or not positive.any():
        return np.array([]), np.array([])
    order = np.argsort(-scores, kind="stable")
    starts = tie_starts(scores[order])
    plus = np.cumsum(grouped((weights * positive)[order][None], starts)[0])
    minus = np.cumsum(grouped((weights * ~positive)[order][None], starts)[0])
    return np.r_[0.0, minus / minus[-1]], np.r_[0.0, plus / plus[-1]]
