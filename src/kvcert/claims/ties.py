"""Runs of equal values in a sorted vector, and sums over them."""

from __future__ import annotations

import numpy as np


def tie_starts(values: np.ndarray) -> np.ndarray:
    """Index of the first element of every run of equal values of a sorted, non-empty (n,) vector."""
    return np.flatnonzero(np.r_[True, values[1:] != values[:-1]])


def grouped(weights: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums of the columns of (B, n) `weights` over each run; the array itself where nothing is tied."""
    return weights if len(starts) == weights.shape[1] else np.add.reduceat(weights, starts, axis=1)
