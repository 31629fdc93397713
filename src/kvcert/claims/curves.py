"""ROC curves of attribution, pooled and conditional; the area under each is the AUC beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.auc import roc

#: False-positive rates at which conditional curves are averaged over cells.
GRID = np.linspace(0.0, 1.0, 201)
POINTS = 400


def attribution_curves(rows: pd.DataFrame, signals: dict[str, str]) -> dict[str, Any]:
    """`{contender: {"pooled": {"fpr", "tpr"}, "conditional": {"fpr", "tpr"}}}` for the contenders with a curve."""
    curves = {}
    for name, column in signals.items():
        known = rows[rows[column].notna()]
        fpr, tpr = roc(
            known[column].to_numpy(float), known["induced"].to_numpy(bool), known["weight"].to_numpy(float)
        )
        if len(fpr) == 0:
            continue
        keep = np.unique(np.linspace(0, len(fpr) - 1, min(len(fpr), POINTS)).astype(int))
        curves[name] = {
            "pooled": {"fpr": fpr[keep], "tpr": tpr[keep]},
            "conditional": _conditional(known, column),
        }
    return curves


def _conditional(rows: pd.DataFrame, column: str) -> dict[str, np.ndarray]:
    """Cells' curves averaged at equal false-positive rate, weighted by their pairs."""
    total, weight = np.zeros_like(GRID), 0.0
    for _, cell in rows.groupby("place"):
        induced, base = cell["induced"].to_numpy(bool), cell["weight"].to_numpy(float)
        fpr, tpr = roc(cell[column].to_numpy(float), induced, base)
        if len(fpr):
            pairs = float(base[induced].sum() * base[~induced].sum())
            total, weight = total + pairs * np.interp(GRID, fpr, tpr), weight + pairs
    return {"fpr": GRID, "tpr": total / weight} if weight else {"fpr": np.array([]), "tpr": np.array([])}
