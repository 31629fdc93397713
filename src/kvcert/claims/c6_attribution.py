"""C6, attribution: among failures the certificate separates cache-induced from inherent; its rivals do it worse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.auc import auc, conditional_auc, pair_count
from kvcert.claims.bootstrap import Estimates, Plan, estimate
from kvcert.claims.curves import attribution_curves
from kvcert.claims.draws import average_draws
from kvcert.claims.frames import Study
from kvcert.claims.labels import add_rivals, evicted_runs, weigh
from kvcert.claims.outcome import Outcome, each, stratum

#: Signal of every contender, by its name in the claim's JSON; larger means "more likely cache-induced".
SIGNALS = {
    "certificate": "signal",
    "confidence": "doubt",
    "two_run": "two_run",
    "budget": "small_budget",
    "task": "task_rate",
    "evicted_mass": "mass",
    "topk_confidence": "topk_doubt",
    "guarded": "signal_guarded",
    "confidence_first6": "doubt_first6",
}
MAIN = ("certificate", "confidence", "two_run")
NAMES = tuple(
    f"{form}{rest}"
    for form in ("pooled", "conditional")
    for rest in ("", "_over_confidence", "_over_two_run")
)


def failures(study: Study, claim: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Failed runs with `induced` (the full run of the same example did not fail) and every contender's signal."""
    rows, counts = evicted_runs(study, claim)
    rows = add_rivals(rows[rows["fail"]], study, claim)
    counts["failures_without_two_run"] = int(rows["two_run"].isna().sum())
    rows = weigh(rows[rows["two_run"].notna()].reset_index(drop=True))
    rows["induced"] = ~rows["full_fail"].astype(bool)
    rows["doubt_first6"] = -rows["logp_first6"].astype(float)
    rows["signal_guarded"] = rows["signal_guarded"].astype(float)
    share = rows["weight"].mul(rows["induced"]).groupby(rows["cell"]).transform("sum")
    rows["task_rate"] = share / rows.groupby("cell")["weight"].transform("sum")
    return rows, counts


def both_forms(rows: pd.DataFrame, plan: Plan) -> Estimates:
    """Pooled and conditional AUC of the certificate and its margins over confidence and two-run, on the same runs."""
    signals = [rows[SIGNALS[name]].to_numpy(float) for name in MAIN]
    induced, base, place = (
        rows["induced"].to_numpy(bool),
        rows["weight"].to_numpy(float),
        rows["place"].to_numpy(str),
    )

    def statistic(weights: np.ndarray) -> np.ndarray:
        weights = weights * base
        one, two, three = (auc(signal, induced, weights) for signal in signals)
        mine, sure, runs = (conditional_auc(signal, induced, weights, place) for signal in signals)
        return np.column_stack([one, one - two, one - three, mine, mine - sure, mine - runs])

    return estimate(rows, statistic, NAMES, plan)


def contender(rows: pd.DataFrame, name: str, plan: Plan) -> Estimates:
    """Pooled and conditional AUC of one contender, on the runs on which it has a value."""
    signal, induced = rows[SIGNALS[name]].to_numpy(float), rows["induced"].to_numpy(bool)
    base, place = rows["weight"].to_numpy(float), rows["place"].to_numpy(str)

    def statistic(weights: np.ndarray) -> np.ndarray:
        weights = weights * base
        return np.column_stack(
            [auc(signal, induced, weights), conditional_auc(signal, induced, weights, place)]
        )

    return estimate(rows, statistic, ("pooled", "conditional"), plan)


def power(rows: pd.DataFrame, claim: dict[str, Any], outcome: Outcome) -> None:
    """Note what the registration asks for and these logs do not hold."""
    least, tasks = claim["minimum"], 0
    for _, cell in rows.groupby("cell"):
        classes = [cell[cell["induced"] == value]["cluster"].nunique() for value in (True, False)]
        tasks += min(classes) >= least["clusters_of_each_class"]
    pairs = pair_count(
        rows["induced"].to_numpy(bool), rows["weight"].to_numpy(float), rows["place"].to_numpy(str)
    )
    outcome.counts |= {
        "tasks_with_both_classes": tasks,
        "pairs": pairs,
        "induced": int(rows["induced"].sum()),
    }
    outcome.need("clusters", rows["cluster"].nunique(), least["clusters"])
    outcome.need(
        f"tasks with {least['clusters_of_each_class']} clusters of both classes", tasks, least["tasks"]
    )
    outcome.need("pairs inside one task x budget", pairs, least["pairs"])


def lines(rows: pd.DataFrame, name: str, by: str, plan: Plan) -> list[dict[str, Any]]:
    """Every contender's two AUCs on some rows; the measure is `pooled/certificate` and so on."""
    found = []
    for rival, column in SIGNALS.items():
        known = rows[rows[column].notna()]
        inner = contender(known, rival, plan)
        found += [
            stratum(name, by, f"{form}/{rival}", inner, form, known) for form in ("pooled", "conditional")
        ]
    return found


def score(study: Study, claim: dict[str, Any], plan: Plan) -> Outcome:
    """Score C6."""
    every, counts = failures(study, claim)
    primary = claim["scope"]["settings"]
    rows = every[every["setting"].isin(primary)].reset_index(drop=True)
    found = both_forms(rows, plan)
    outcome = Outcome(n_runs=len(rows), n_clusters=found.clusters, redrawn=found.redrawn, counts=counts)
    if len(rows) == 0:
        outcome.not_run.append("no failed run with a certificate and two draws in a task inside the filter")
    elif rows["induced"].all() or not rows["induced"].any():
        outcome.not_run.append(
            "all failures are " + ("cache-induced" if rows["induced"].all() else "inherent")
        )
    elif rows["signal"].nunique() == 1:
        outcome.not_run.append("the certificate is constant")
    if outcome.not_run:
        return outcome
    outcome.hold(claim, found)
    power(rows, claim, outcome)
    for setting in [*primary, *claim["scope"].get("secondary_settings", [])]:
        some = every[every["setting"] == setting].reset_index(drop=True)
        if len(some):
            outcome.strata += lines(some, setting, "setting", plan)
            outcome.curves[setting] = attribution_curves(some, SIGNALS)
    for by in ("cell", "budget"):
        outcome.strata += each(rows, by, lambda some, name, kind: lines(some, name, kind, plan))
    outcome.strata += averaged(rows, plan)
    return outcome


def averaged(rows: pd.DataFrame, plan: Plan) -> list[dict[str, Any]]:
    """The other reading of "draws averaged first", for the certificate and confidence alone."""
    means = average_draws(rows)
    means["induced"] = ~means["full_fail"].astype(bool)
    return [
        stratum("draws averaged", "sensitivity", f"{form}/{name}", contender(means, name, plan), form, means)
        for name in ("certificate", "confidence") for form in ("pooled", "conditional")
    ]  # fmt: skip
