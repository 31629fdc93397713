"""C2, parity: the Poisson design costs no accuracy against deterministic top-k at the same budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Estimates, Plan, estimate
from kvcert.claims.frames import UNIT, Study
from kvcert.claims.labels import policy_runs
from kvcert.claims.means import weighted_means
from kvcert.claims.outcome import Outcome, each, stratum
from kvcert.claims.verdict import part

KEEP = [*UNIT, "cell", "stratum", "cluster"]


def pairs(study: Study, claim: dict[str, Any]) -> pd.DataFrame:
    """One row per example, setting and budget: `difference` = Poisson (draws averaged) - top-k."""
    key = [*KEEP, "budget"]
    sides = [
        policy_runs(study, study.common[name], claim)
        .groupby(key, as_index=False)
        .agg(score=("score", "mean"), runs=("score", "size"))
        for name in ("policy", "rival_policy")
    ]
    both = sides[0].merge(sides[1], on=key, suffixes=("_poisson", "_topk"))
    both["difference"] = both["score_poisson"] - both["score_topk"]
    both["runs"] = both["runs_poisson"] + both["runs_topk"]
    return both


def examples(both: pd.DataFrame) -> pd.DataFrame:
    """Budgets averaged within the example and setting: one row each."""
    return both.groupby(KEEP, as_index=False).agg(difference=("difference", "mean"), runs=("runs", "sum"))


def mean_difference(rows: pd.DataFrame, plan: Plan) -> Estimates:
    """Mean of `difference` over rows, with its cluster bootstrap."""
    values = rows[["difference"]].to_numpy(float)
    return estimate(rows, weighted_means(values, np.ones_like(values)), ["difference"], plan)


def score(study: Study, claim: dict[str, Any], plan: Plan) -> Outcome:
    """Score C2."""
    both = pairs(study, claim)
    rows = examples(both)
    found = mean_difference(rows, plan)
    outcome = Outcome(n_runs=int(rows["runs"].sum()), n_clusters=found.clusters, redrawn=found.redrawn)
    if len(rows) == 0:
        outcome.not_run.append("no example has a Poisson and a top-k run at the same budget")
        return outcome
    outcome.parts.append(part("parity", claim["lines"]["parity"], found, "difference", 1))
    standard_error = found.error("difference")
    outcome.counts |= {"invalid_runs": study.invalid, "standard_error": standard_error}
    outcome.need("clusters", found.clusters, claim["minimum"]["clusters"])
    limit = claim["minimum"]["largest_standard_error"]
    if not standard_error <= limit:
        outcome.underpowered.append(f"standard error: {standard_error:.4f}, registered maximum {limit:g}")

    def line(part_rows: pd.DataFrame, name: str, by: str) -> list[dict[str, Any]]:
        return [stratum(name, by, "difference", mean_difference(part_rows, plan), "difference", part_rows)]

    outcome.strata += each(both, "budget", line) + each(rows, "setting", line) + each(rows, "cell", line)
    return outcome
