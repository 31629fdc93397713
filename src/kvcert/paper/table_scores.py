"""Tables of the scored claims: verdicts, attribution with its rivals, failures by kind."""

from __future__ import annotations

import pandas as pd

from kvcert.paper.claims_json import strata
from kvcert.paper.console import mark, short_title
from kvcert.paper.logs import Logs
from kvcert.paper.render import Table

VERDICTS = (
    "claim", "title", "statistic", "part", "value", "ci_low", "ci_high", "n_runs", "n_clusters", "threshold", "verdict",
    "decisive", "paper_value", "paper_number", "paper_verdict", "agrees",
)  # fmt: skip
VERDICT_TITLES = {
    "claim": "claim", "title": "what", "part": "nearest line", "value": "value", "ci_low": "low", "ci_high": "high",
    "threshold": "line",
    "n_runs": "runs", "n_clusters": "examples", "verdict": "verdict", "decisive": "decisive", "paper_value": "paper",
    "paper_verdict": "paper's verdict", "agrees": "agrees",
}  # fmt: skip


def verdicts(logs: Logs) -> Table:
    """One row per scored claim: the columns of results/verdicts.csv, the nearest line's name and the paper's number."""
    rows = [{name: claim.get(name) for name in VERDICTS} for claim in logs.claims.values()]
    frame = pd.DataFrame(rows, columns=list(VERDICTS))
    for name in ("value", "ci_low", "ci_high", "threshold", "paper_number"):
        frame[name] = pd.to_numeric(frame[name], errors="coerce")
    for name in ("n_runs", "n_clusters"):
        frame[name] = frame[name].astype("Int64")
    titles = [short_title(claim) for claim in logs.claims.values()]
    return Table(frame, VERDICT_TITLES, people=frame.assign(verdict=frame["verdict"].map(mark), title=titles))


ATTRIBUTION = {
    "by": "by", "group": "where", "form": "form", "signal": "signal", "auc": "AUC", "low": "low", "high": "high",
    "runs": "failures", "examples": "examples",
}  # fmt: skip


def attribution(logs: Logs) -> Table:
    """AUC of the certificate and its rivals, pooled and conditional, as C6 scored them.

    The CSV also holds the rows by task and by budget, and the sensitivity to averaging draws.
    """
    frame = strata(logs.claims.get("C6"))
    split = [str(measure).split("/", 1) for measure in frame["measure"]]
    frame["form"], frame["signal"] = [pieces[0] for pieces in split], [pieces[-1] for pieces in split]
    titles = {"name": "group", "mean": "auc", "n_runs": "runs", "n_clusters": "examples"}
    frame = frame.rename(columns=titles)[list(ATTRIBUTION)]
    for name in ("runs", "examples"):
        frame[name] = frame[name].astype("Int64")
    shown = {key: title for key, title in ATTRIBUTION.items() if key != "by"} | {"group": "setting"}
    return Table(frame, shown, people=frame[frame["by"] == "setting"])


def failures(logs: Logs) -> Table:
    """Valid free Poisson runs by task, setting and budget: failed, cache-induced, inherent.

    A failure is cache-induced when the full-cache run of the same example and setting did not fail.
    """
    keys = ["model", "task", "length", "setting"]
    free = logs.free[logs.free["fail"].notna()]
    full = (
        free[free["policy"] == "full"].set_index([*keys, "example"])["fail"].astype(bool).rename("full_fail")
    )
    runs = (
        free[free["policy"] == "poisson"]
        .join(full, on=[*keys, "example"], how="inner")
        .reset_index(drop=True)
    )
    fail, inherent = runs["fail"].astype(bool), runs["full_fail"].astype(bool)
    runs = runs.assign(
        failed=fail, cache_induced=fail & ~inherent, inherent=fail & inherent, full_failed=inherent
    )
    groups = runs.groupby([*keys, "budget"], observed=True, sort=True)
    counted = ["failed", "cache_induced", "inherent", "full_failed"]
    frame = groups[counted].sum().astype(int).assign(runs=groups.size()).reset_index()
    frame = frame[[*keys, "budget", "runs", *counted]]
    titles = {name: name for name in (*keys, "budget", "runs", "failed", "inherent")}
    return Table(frame, titles | {"cache_induced": "cache-induced"}, {"budget": -1})
