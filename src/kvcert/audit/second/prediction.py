"""C4 a second time: AUC of the certificate and of low confidence for failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvcert.audit.second.base import UNIT, Scope
from kvcert.audit.second.claims import Claim, Statistics, clusters, split, with_place
from kvcert.audit.second.numbers import auc

#: The other reading of "draws averaged first": one row per example, setting and budget.
AVERAGED = f"""
select *, score < fail_below as fail, 1.0 as weight from (
  select {UNIT}, cell, cluster, budget, avg(signal) as signal, avg(doubt) as doubt, avg(score) as score,
    min(fail_below) as fail_below, bool_or(full_fail) as full_fail
  from {{table}} group by all) order by {UNIT}, budget
"""


def rows_of(scope: Scope) -> pd.DataFrame:
    """Certified runs."""
    return with_place(scope.evicted())


def statistics(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """The four AUCs and their two differences."""
    fail, weight = rows["fail"].to_numpy(bool), rows["weight"].to_numpy(float)
    block = rows["block"].to_numpy(int)
    signal, doubt = rows["signal"].to_numpy(float), rows["doubt"].to_numpy(float)
    one, two = auc(signal, fail, weight), auc(doubt, fail, weight)
    three, four = auc(signal, fail, weight, block), auc(doubt, fail, weight, block)
    return {
        "pooled": one - two, "conditional": three - four, "certificate": one, "confidence": two,
        "certificate_conditional": three, "confidence_conditional": four,
    }  # fmt: skip


def groups(scope: Scope, rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Every stratum of C4."""
    if len(rows) == 0:
        return
    yield "pooled", "all", rows
    for by in ("setting", "budget", "cell", "place"):
        yield from split(rows, by)
    synthetic = rows[rows["task"].isin(scope.common["synthetic_tasks"])]
    if len(synthetic):
        yield "kind", "synthetic tasks", synthetic
    yield "sensitivity", "draws averaged", with_place(scope.frame(AVERAGED.format(table="evicted")))


def parts(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """The registered lines."""
    found = statistics(rows, claim)
    return {name: found[name] for name in claim["lines"]}


def minima(rows: pd.DataFrame, claim: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Registered minima: what there is, and what is asked for."""
    least, fail = claim["minimum"], rows["fail"].astype(bool)
    return {
        "clusters": (clusters(rows), least["clusters"]),
        "clusters with a failure": (clusters(rows[fail]), least["positives"]),
        "clusters with a success": (clusters(rows[~fail]), least["positives"]),
    }


PREDICTION = Claim(rows_of, statistics, groups, parts, minima)
