"""What a gate that acts on a fixed share of the runs collects."""

from __future__ import annotations

import numpy as np

from kvcert.claims.ties import grouped, tie_starts


def collected(signal: np.ndarray, value: np.ndarray, weights: np.ndarray, fraction: float) -> np.ndarray:
    """Weighted sum of `value` over the runs with the largest `signal`, exactly `fraction` of all weight.

    Runs with equal signals are taken in equal shares, which is the exact expectation under random tie
    breaking; the run on the boundary is taken in part, so that every gate spends the same.

    Parameters
    ----------
    signal, value : (n,); signal never NaN. weights : (B, n) non-negative. fraction : in [0, 1].

    Returns
    -------
    (B,) sums.
    """
    if len(signal) == 0:
        return np.zeros(len(weights))
    order = np.argsort(-signal, kind="stable")
    starts = tie_starts(signal[order])
    mass = grouped(weights[:, order], starts)
    worth = grouped(weights[:, order] * value[order], starts)
    cumulated = np.cumsum(mass, axis=1)
    room = fraction * cumulated[:, -1:] - (cumulated - mass)
    taken = np.clip(room / np.where(mass > 0, mass, 1.0), 0.0, 1.0)
    return (taken * worth).sum(axis=1)
