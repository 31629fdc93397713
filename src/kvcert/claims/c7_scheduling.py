"""C7, scheduling: recomputing the runs with the largest certificates with the full cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.auc import ratio
from kvcert.claims.bootstrap import Estimates, Plan, estimate
from kvcert.claims.frames import Study
from kvcert.claims.gating import collected
from kvcert.claims.labels import evicted_runs
from kvcert.claims.outcome import Outcome, each, stratum

GATES = ("certificate", "random", "confidence", "oracle")
NAMES = ("over_random", "over_confidence", *GATES, "points_over_random", "points_over_confidence")


def shares(rows: pd.DataFrame, fraction: float, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of the recoverable gain that each gate recovers, and its score gain per run; both (B, 4).

    Ranked within each budget, then averaged over the budgets that have something to recover.
    """
    share, points = [], []
    for index in rows.groupby("budget").indices.values():
        inner = weights[:, index]
        gain = rows["gain"].to_numpy(float)[index]
        ranks = (rows["signal"].to_numpy(float)[index], None, rows["doubt"].to_numpy(float)[index], gain)
        sums = [
            fraction * (inner @ gain) if rank is None else collected(rank, gain, inner, fraction)
            for rank in ranks
        ]
        recoverable = inner @ np.maximum(gain, 0.0)
        if (gain > 0).any():
            share.append(np.column_stack([ratio(value, recoverable) for value in sums]))
        points.append(np.column_stack([ratio(value, inner.sum(axis=1)) for value in sums]))
    nothing = np.full((len(weights), len(GATES)), np.nan)
    return (np.mean(share, axis=0) if share else nothing), (np.mean(points, axis=0) if points else nothing)


def recovered(rows: pd.DataFrame, fraction: float, plan: Plan) -> Estimates:
    """The registered differences, every gate's share, and points of accuracy above the two rivals."""
    base = rows["weight"].to_numpy(float)

    def statistic(weights: np.ndarray) -> np.ndarray:
        share, points = shares(rows, fraction, weights * base)
        mine = [share[:, 0] - share[:, 1], share[:, 0] - share[:, 2], *share.T]
        return np.column_stack([*mine, points[:, 0] - points[:, 1], points[:, 0] - points[:, 2]])

    return estimate(rows, statistic, NAMES, plan)


def score(study: Study, claim: dict[str, Any], plan: Plan) -> Outcome:
    """Score C7."""
    fraction = claim["scope"]["fraction"]
    rows, counts = evicted_runs(study, claim)
    found = recovered(rows, fraction, plan)
    outcome = Outcome(n_runs=len(rows), n_clusters=found.clusters, redrawn=found.redrawn, counts=counts)
    if len(rows) == 0:
        outcome.not_run.append("no certified streaming run in a task inside the filter")
    elif not (rows["gain"] > 0).any():
        outcome.not_run.append("recomputation gains nothing on any run: the recovered share is undefined")
    elif rows["signal"].nunique() == 1:
        outcome.not_run.append("the certificate is constant")
    if outcome.not_run:
        return outcome
    outcome.hold(claim, found)
    outcome.need("clusters", found.clusters, claim["minimum"]["clusters"])
    helped = rows[rows["gain"] > 0]["cluster"].nunique()
    outcome.need("clusters that recomputation helps", helped, claim["minimum"]["positives"])
    chance = found.value("random")
    outcome.counts["times_random"] = found.value("certificate") / chance if chance > 0 else float("nan")
    outcome.counts["mean_gain_per_run"] = float(np.average(rows["gain"], weights=rows["weight"]))

    def line(part_rows: pd.DataFrame, name: str, by: str) -> list[dict[str, Any]]:
        inner = recovered(part_rows, fraction, plan)
        return [stratum(name, by, measure, inner, measure, part_rows) for measure in NAMES]

    outcome.strata += line(rows, "all", "pooled") + each(rows, "budget", line) + each(rows, "cell", line)
    weights = rows["weight"].to_numpy(float)[None]
    curve = np.array([shares(rows, point, weights)[0][0] for point in claim["scope"]["curve"]])
    outcome.curves = {"fraction": claim["scope"]["curve"]} | dict(zip(GATES, curve.T.tolist(), strict=True))
    return outcome
