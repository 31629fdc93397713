"""Free-running certified runs with what the claims compare them to: the full run, the second draw, top-k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.frames import UNIT, Study
from kvcert.claims.text import token_f1


def task_filter(study: Study, claim: dict[str, Any]) -> tuple[set[str], dict[str, float]]:
    """Cells (model, task, length) in a claim's scope, and the full-cache means of those that it leaves out."""
    full = study.runs[
        (study.runs["policy"] == "full") & study.runs["setting"].isin(claim["scope"]["settings"])
    ]
    means = full.groupby("cell")["score"].mean()
    if claim["scope"]["tasks"] == "all":
        return set(study.runs["cell"]), {}
    band = study.common["task_filter"]
    low = max(band["low"], claim["scope"].get("smallest_full_mean", 0.0))
    inside = (means >= low) & (means <= band["high"])
    return set(means.index[inside]), {str(name): float(value) for name, value in means[~inside].items()}


def policy_runs(study: Study, policy: str, claim: dict[str, Any], regime: str = "free") -> pd.DataFrame:
    """Runs of one policy with the primary scorer in a claim's scope in which something was evicted."""
    runs, scope = study.runs, claim["scope"]
    settings = scope["settings"] + scope.get("secondary_settings", [])
    keep = (runs["policy"] == policy) & (runs["regime"] == regime) & ~runs["identity"].astype(bool)
    keep &= runs["setting"].isin(settings) & runs["scorer"].eq(study.scorer)
    if scope["budgets"] != "all":
        keep &= runs["budget"].isin(scope["budgets"])
    return runs[keep]


def evicted_runs(
    study: Study, claim: dict[str, Any], signal_needed: bool = True
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """One row per certified run: `signal`, `doubt` (minus confidence), `fail`, `gain`, `full_fail`, `weight`.

    `weight` is 1 / (draws of that example at that budget): an example counts once. Runs without a
    certificate or without a valid full run leave, and are counted in the second value.
    """
    cells, left = task_filter(study, claim)
    runs = policy_runs(study, study.common["policy"], claim)
    runs = runs[runs["cell"].isin(cells)]
    full = study.runs[study.runs["policy"] == "full"][[*UNIT, "score", "fail"]]
    full = full.rename(columns={"score": "full_score", "fail": "full_fail"})
    rows = runs.merge(full, on=UNIT, how="left", validate="many_to_one")
    signal = rows["signal"].astype(float)
    with_signal, with_full = signal.notna(), rows["full_score"].notna()
    counts = {
        "invalid_runs": study.invalid,
        "runs_without_certificate": int((~with_signal).sum()),
        "runs_without_full_run": int((~with_full).sum()),
        "tasks_left_out": left,
    }
    rows = rows[(with_signal | (not signal_needed)) & with_full].reset_index(drop=True)
    rows["signal"] = rows["signal"].astype(float)
    rows["doubt"] = -rows[study.common["confidence"]].astype(float)
    rows["fail"], rows["full_fail"] = rows["fail"].astype(bool), rows["full_fail"].astype(bool)
    rows["gain"] = rows["full_score"] - rows["score"]
    rows["place"] = rows["cell"] + "/" + rows["budget"].map("{:g}".format)
    return weigh(rows), counts


def weigh(rows: pd.DataFrame) -> pd.DataFrame:
    """Set `weight` to 1 / (rows of the same unit and budget): draws share the weight of their example."""
    return rows.assign(weight=1.0 / rows.groupby([*UNIT, "budget"])["run_id"].transform("size"))


def add_rivals(rows: pd.DataFrame, study: Study, claim: dict[str, Any]) -> pd.DataFrame:
    """Add C6's rivals: `two_run`, `small_budget`, `mass`, `topk_doubt`; NaN where a rival has no value."""
    key = [*UNIT, "budget"]
    draws = policy_runs(study, study.common["policy"], claim).sort_values("draw")
    pairs = draws.groupby(key).agg(answers=("answer", list), logps=("logp_mean", list)).reset_index()
    pairs = pairs[pairs["answers"].map(len) >= 2]
    disagreement = pairs["answers"].map(lambda texts: 1.0 - token_f1(texts[0], texts[1]))
    gap = pairs["logps"].map(lambda values: abs(values[0] - values[1]))
    pairs = pairs[key].assign(two_run=lexicographic(disagreement.to_numpy(float), gap.to_numpy(float)))
    topk = policy_runs(study, study.common["rival_policy"], claim)
    topk = topk[[*key, study.common["confidence"]]].drop_duplicates(key)
    rows = rows.merge(pairs, on=key, how="left", validate="many_to_one")
    rows = rows.merge(topk.rename(columns={study.common["confidence"]: "topk_logp"}), on=key, how="left")
    return rows.assign(
        topk_doubt=-rows["topk_logp"].astype(float),
        mass=rows["evicted_mass"].astype(float),
        small_budget=-rows["budget"],
    )


def lexicographic(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(n,) ranks, as floats, that order by `first` and, where it ties, by `second`; equal pairs share a rank."""
    if len(first) == 0:
        return np.zeros(0)
    _, inverse = np.unique(np.column_stack([first, second]), axis=0, return_inverse=True)
    return inverse.reshape(-1).astype(float)
