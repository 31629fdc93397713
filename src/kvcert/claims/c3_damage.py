"""C3, damage: question-aware eviction at 25-50 % does harm worth certifying."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Estimates, Plan, estimate
from kvcert.claims.c2_parity import KEEP
from kvcert.claims.frames import Study
from kvcert.claims.labels import evicted_runs
from kvcert.claims.means import weighted_means
from kvcert.claims.outcome import Outcome, each, stratum
from kvcert.claims.verdict import part

NAMES = ("drop", "drop_among_full_successes")


def examples(runs: pd.DataFrame) -> pd.DataFrame:
    """Draws, then budgets averaged within the example: `drop` = full - Poisson, and whether the full run passed."""
    by_budget = runs.groupby([*KEEP, "budget"], as_index=False).agg(
        drop=("gain", "mean"), runs=("gain", "size"), full_fail=("full_fail", "first")
    )
    return by_budget.groupby(KEEP, as_index=False).agg(
        drop=("drop", "mean"), runs=("runs", "sum"), full_fail=("full_fail", "first")
    )


def drops(rows: pd.DataFrame, plan: Plan) -> Estimates:
    """Mean drop over all rows and over those whose full run passed."""
    values = np.column_stack([rows["drop"], rows["drop"]]).astype(float).reshape(len(rows), 2)
    passed = ~rows["full_fail"].to_numpy(bool)
    return estimate(rows, weighted_means(values, np.column_stack([np.ones(len(rows)), passed])), NAMES, plan)


def score(study: Study, claim: dict[str, Any], plan: Plan) -> Outcome:
    """Score C3."""
    runs, counts = evicted_runs(study, claim, signal_needed=False)
    rows = examples(runs)
    found = drops(rows, plan)
    outcome = Outcome(n_runs=len(runs), n_clusters=found.clusters, redrawn=found.redrawn, counts=counts)
    if len(rows) == 0:
        outcome.not_run.append("no aware Poisson run at the registered budgets in a task inside the filter")
        return outcome
    outcome.parts += [part(name, claim["lines"][name], found, name, 1) for name in NAMES]
    outcome.need("clusters", found.clusters, claim["minimum"]["clusters"])

    def line(part_rows: pd.DataFrame, name: str, by: str) -> list[dict[str, Any]]:
        inner = drops(part_rows, plan)
        return [stratum(name, by, measure, inner, measure, part_rows) for measure in NAMES]

    by_budget = runs.groupby([*KEEP, "budget"], as_index=False).agg(
        drop=("gain", "mean"), full_fail=("full_fail", "first")
    )
    outcome.strata += each(by_budget, "budget", line) + each(rows, "cell", line)
    return outcome
