"""C1, coverage: the step certificate covers the true step error at the nominal rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Estimates, Plan, estimate
from kvcert.claims.coverage import Coverage, measure_runs
from kvcert.claims.frames import Study
from kvcert.claims.labels import policy_runs
from kvcert.claims.means import weighted_means
from kvcert.claims.outcome import Outcome, stratum
from kvcert.claims.ranks import correlation, rank_moments, weighted_quantile
from kvcert.claims.verdict import part

UNIT = ["model", "task", "length", "example", "budget"]
NAMES = ("C1a", "C1b", "C1b guarded")


def shares(runs: pd.DataFrame, plan: Plan) -> Estimates:
    """C1a, C1b and C1b with the guarded radius: mean over examples of the mean over their runs."""
    values = runs[list(NAMES)].to_numpy(float)
    base = np.where(np.isnan(values), 0.0, 1.0)
    for column, name in enumerate(NAMES):
        known = runs[name].notna()
        size = known.groupby([runs[key] for key in UNIT]).transform("sum").to_numpy(float)
        base[:, column] /= np.maximum(size, 1.0)
    return estimate(runs, weighted_means(values, base), NAMES, plan)


def score(study: Study, claim: dict[str, Any], plan: Plan) -> Outcome:
    """Score C1."""
    runs = policy_runs(study, study.common["policy"], claim, claim["scope"]["regime"]).reset_index(drop=True)
    if len(runs) == 0:
        return Outcome(not_run=["no token-forced certified run"])
    found = measure_runs(study, runs)
    runs = found.runs
    outcome = Outcome(n_runs=len(runs), n_clusters=int(runs["cluster"].nunique()), counts=found.counts)
    budgets = sorted(runs["budget"].unique().tolist())
    for budget in budgets:
        some = runs[runs["budget"] == budget]
        inner = shares(some, plan)
        for name, line in claim["lines"].items():
            line = line | {"label": f"{line['label']}, budget {budget:g}"}
            outcome.parts.append(part(f"{name} at {budget:g}", line, inner, name, len(budgets), share=True))
        outcome.redrawn += inner.redrawn
        outcome.need(f"clusters at {budget:g}", inner.clusters, claim["minimum"]["clusters"])
        outcome.strata += by_group(some, f"{budget:g}", plan)
        outcome.strata += by_ess(found, some, f"{budget:g}", plan)
        outcome.curves[f"{budget:g}"] = tightness(found, some)
    for name, some in [
        *((f"{budget:g}", runs[runs["budget"] == budget]) for budget in budgets),
        ("pooled", runs),
    ]:
        outcome.strata += rank_correlation(found, some, name, plan)
    return outcome


def by_group(runs: pd.DataFrame, budget: str, plan: Plan) -> list[dict[str, Any]]:
    """Coverage at one budget: all, per setting, per task and per task and setting."""
    lines = []
    groups = [("all", "budget", runs)]
    groups += [(str(key), "budget x setting", some) for key, some in runs.groupby("setting")]
    groups += [(str(key), "budget x task", some) for key, some in runs.groupby("cell")]
    groups += [
        (f"{a}/{b}", "budget x task x setting", some) for (a, b), some in runs.groupby(["cell", "setting"])
    ]
    for name, by, some in groups:
        inner = shares(some, plan)
        label = budget if by == "budget" else f"{name}/{budget}"
        lines += [stratum(label, by, measure, inner, measure, some, share=True) for measure in NAMES]
    return lines


def by_ess(found: Coverage, runs: pd.DataFrame, budget: str, plan: Plan) -> list[dict[str, Any]]:
    """Per-head coverage, plain and guarded, by band of the shadow's effective sample size."""
    lines = []
    for band, name in enumerate(found.bands):
        index = runs["row"].to_numpy()
        units = found.heads.units[index, band]
        known = runs[units > 0]
        if len(known) == 0:
            continue
        values = np.column_stack([found.heads.covered[index, band], found.heads.guarded[index, band]])[
            units > 0
        ]
        shown = values / units[units > 0][:, None]
        some = known.assign(**{"C1a": np.nan, "C1b": shown[:, 0], "C1b guarded": shown[:, 1]})
        inner = shares(some, plan)
        for measure in NAMES[1:]:
            line = stratum(f"ESS {name}/{budget}", "budget x ess", measure, inner, measure, some, share=True)
            lines.append(line | {"band": name, "budget": float(budget), "n_heads": int(units.sum())})
    return lines


def tightness(found: Coverage, runs: pd.DataFrame) -> dict[str, Any]:
    """Sharpness (median certificate / error) and kappa_95 (the multiplier that reaches 95 %), panel and head."""
    weight = np.zeros(found.size)
    weight[runs["row"].to_numpy()] = 1.0 / runs.groupby(UNIT)["row"].transform("size").to_numpy()
    content: dict[str, Any] = {}
    for name, ratio, run in (
        ("panel", found.ratio, found.steps["run"].to_numpy()), ("head", found.heads.ratio, found.heads.ratio_run),
    ):  # fmt: skip
        inside = weight[run] > 0
        ratio, run = ratio[inside], run[inside]
        each = weight[run] / np.bincount(run, minlength=found.size)[run]
        middle = weighted_quantile(ratio, each, 0.5)
        content[name] = {
            "sharpness": 1 / middle if middle > 0 else float("nan"),
            "kappa95": weighted_quantile(ratio, each, 0.95),
            "n": len(ratio),
        }
    return content


def rank_correlation(found: Coverage, runs: pd.DataFrame, name: str, plan: Plan) -> list[dict[str, Any]]:
    """Spearman's correlation of panel certificate and panel error over all steps of the runs."""
    steps = found.steps[found.steps["run"].isin(runs["row"])]
    if len(steps) < 2:
        return []
    place = pd.Series(np.arange(len(runs)), index=runs["row"])
    moments = rank_moments(
        steps["certificate"].to_numpy(), steps["error"].to_numpy(), place[steps["run"]].to_numpy(), len(runs)
    )
    inner = estimate(runs, correlation(moments), ["rho"], plan)
    return [stratum(name, "budget", "rank correlation", inner, "rho", runs) | {"n_steps": len(steps)}]
