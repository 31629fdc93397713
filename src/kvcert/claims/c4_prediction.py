"""C4, prediction: the certificate predicts failure better than output confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.auc import auc, conditional_auc
from kvcert.claims.bootstrap import Estimates, Plan, estimate
from kvcert.claims.draws import average_draws
from kvcert.claims.frames import Study
from kvcert.claims.labels import evicted_runs
from kvcert.claims.outcome import Outcome, each, stratum

NAMES = (
    "pooled",
    "conditional",
    "certificate",
    "confidence",
    "certificate_conditional",
    "confidence_conditional",
)


def differences(rows: pd.DataFrame, plan: Plan) -> Estimates:
    """The two AUC differences and the four AUCs they are made of."""
    signal, doubt = rows["signal"].to_numpy(float), rows["doubt"].to_numpy(float)
    fail, base, place = (
        rows["fail"].to_numpy(bool),
        rows["weight"].to_numpy(float),
        rows["place"].to_numpy(str),
    )

    def statistic(weights: np.ndarray) -> np.ndarray:
        weights = weights * base
        one, two = auc(signal, fail, weights), auc(doubt, fail, weights)
        inner_one = conditional_auc(signal, fail, weights, place)
        inner_two = conditional_auc(doubt, fail, weights, place)
        return np.column_stack([one - two, inner_one - inner_two, one, two, inner_one, inner_two])

    return estimate(rows, statistic, NAMES, plan)


def score(study: Study, claim: dict[str, Any], plan: Plan) -> Outcome:
    """Score C4."""
    rows, counts = evicted_runs(study, claim)
    found = differences(rows, plan)
    outcome = Outcome(n_runs=len(rows), n_clusters=found.clusters, redrawn=found.redrawn, counts=counts)
    fail = rows["fail"]
    if len(rows) == 0:
        outcome.not_run.append("no certified run in a task inside the filter")
    elif fail.all() or not fail.any():
        outcome.not_run.append("no run failed" if not fail.any() else "every run failed")
    elif rows["signal"].nunique() == 1:
        outcome.not_run.append("the certificate is constant")
    if outcome.not_run:
        return outcome
    outcome.hold(claim, found)
    outcome.need("clusters", found.clusters, claim["minimum"]["clusters"])
    outcome.need("clusters with a failure", rows[fail]["cluster"].nunique(), claim["minimum"]["positives"])
    outcome.need("clusters with a success", rows[~fail]["cluster"].nunique(), claim["minimum"]["positives"])

    def line(part_rows: pd.DataFrame, name: str, by: str) -> list[dict[str, Any]]:
        inner = differences(part_rows, plan)
        return [stratum(name, by, measure, inner, measure, part_rows) for measure in NAMES]

    outcome.strata += line(rows, "all", "pooled") + each(rows, "setting", line) + each(rows, "budget", line)
    outcome.strata += each(rows, "cell", line) + each(rows, "place", line)
    synthetic = rows[rows["task"].isin(study.common["synthetic_tasks"])]
    if len(synthetic):
        outcome.strata += line(synthetic, "synthetic tasks", "kind")
        outcome.counts |= synthetic_cells(synthetic)
    outcome.strata += line(average_draws(rows), "draws averaged", "sensitivity")
    return outcome


def synthetic_cells(rows: pd.DataFrame) -> dict[str, Any]:
    """The paper's figure on synthetic cells: how many cells have AUC(certificate) above 1/2, and their mean."""
    values = []
    for _, cell in rows.groupby("place"):
        weights = cell["weight"].to_numpy(float)[None]
        values.append(auc(cell["signal"].to_numpy(float), cell["fail"].to_numpy(bool), weights)[0])
    known = np.array([value for value in values if not np.isnan(value)])
    mean = float(known.mean()) if len(known) else float("nan")
    return {
        "synthetic_cells": len(known),
        "synthetic_cells_above_half": int((known > 0.5).sum()),
        "synthetic_cells_mean_auc": mean,
    }
