"""C5, escalation: a larger budget for the runs with the largest certificates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Estimates, Plan, estimate
from kvcert.claims.frames import UNIT, Study
from kvcert.claims.gating import collected
from kvcert.claims.labels import evicted_runs, weigh
from kvcert.claims.outcome import Outcome, each, stratum

NAMES = ("over_random", "over_confidence", "certificate", "random", "confidence", "oracle")


def escalations(runs: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    """Runs at the low budget with `raised` = score at the high budget - score at the low one, same draw."""
    key = [*UNIT, "draw"]
    upper = runs[runs["budget"] == high][[*key, "score", "seconds_prefill", "seconds_decode"]]
    rows = runs[runs["budget"] == low].merge(upper, on=key, suffixes=("", "_high"), validate="one_to_one")
    return weigh(rows.assign(raised=rows["score_high"] - rows["score"]))


def gains(rows: pd.DataFrame, fraction: float, plan: Plan) -> Estimates:
    """Score gain per run of each gate at the same fraction, and the two registered differences."""
    signal, doubt = rows["signal"].to_numpy(float), rows["doubt"].to_numpy(float)
    raised, base = rows["raised"].to_numpy(float), rows["weight"].to_numpy(float)

    def statistic(weights: np.ndarray) -> np.ndarray:
        weights = weights * base
        total = weights.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mine = collected(signal, raised, weights, fraction) / total
            theirs = collected(doubt, raised, weights, fraction) / total
            chance = fraction * (weights @ raised) / total
            best = collected(raised, raised, weights, fraction) / total
        return np.column_stack([mine - chance, mine - theirs, mine, chance, theirs, best])

    return estimate(rows, statistic, NAMES, plan)


def score(study: Study, claim: dict[str, Any], plan: Plan) -> Outcome:
    """Score C5."""
    low, high = min(claim["scope"]["budgets"]), max(claim["scope"]["budgets"])
    fraction = claim["scope"]["fraction"]
    runs, counts = evicted_runs(study, claim)
    rows = escalations(runs, low, high)
    found = gains(rows, fraction, plan)
    outcome = Outcome(n_runs=len(rows), n_clusters=found.clusters, redrawn=found.redrawn, counts=counts)
    if len(rows) == 0:
        outcome.not_run.append(
            f"no certified run has both budgets {low:g} and {high:g} in a task inside the filter"
        )
    elif rows["signal"].nunique() == 1:
        outcome.not_run.append("the certificate is constant")
    if outcome.not_run:
        return outcome
    outcome.hold(claim, found)
    outcome.need("clusters", found.clusters, claim["minimum"]["clusters"])
    helped = rows[rows["raised"] > 0]["cluster"].nunique()
    outcome.need("clusters that a larger budget helps", helped, claim["minimum"]["positives"])
    outcome.counts |= cost(rows, low, high, fraction)

    def line(part_rows: pd.DataFrame, name: str, by: str) -> list[dict[str, Any]]:
        inner = gains(part_rows, fraction, plan)
        return [stratum(name, by, measure, inner, measure, part_rows) for measure in NAMES]

    outcome.strata += line(rows, "all", "pooled") + each(rows, "setting", line) + each(rows, "cell", line)
    return outcome


def cost(rows: pd.DataFrame, low: float, high: float, fraction: float) -> dict[str, float]:
    """What any gate at this fraction spends per run: budget, prefills and seconds (a fresh prefill each time)."""
    first = float((rows["seconds_prefill"] + rows["seconds_decode"]).mean())
    again = float((rows["seconds_prefill_high"] + rows["seconds_decode_high"]).mean())
    return {
        "mean_budget": low + fraction * (high - low), "prefills_per_run": 1 + fraction,
        "seconds_per_run_without": first, "seconds_per_run_with": first + fraction * again,
    }  # fmt: skip
