"""C2 and C3 a second time: paired score differences, draws and budgets averaged inside the example, by SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvcert.audit.second.base import UNIT, Scope
from kvcert.audit.second.claims import Claim, Statistics, clusters, split
from kvcert.audit.second.numbers import NAN

WHO = f"{UNIT}, cell, cluster"

PAIRS = f"""
create or replace table pairs as
with ours as (select {WHO}, budget, avg(score) as score, count(*) as runs from ({{policy}}) group by all),
theirs as (select {WHO}, budget, avg(score) as score, count(*) as runs from ({{rival}}) group by all)
select {WHO}, budget, ours.score - theirs.score as difference, ours.runs + theirs.runs as runs
from ours join theirs using ({WHO}, budget)
"""
DROPS = f"""
create or replace table pairs as
select {WHO}, budget, avg(gain) as difference, count(*) as runs, bool_or(full_fail) as full_fail
from evicted group by all
"""
EXAMPLES = f"""
select {WHO}, avg(difference) as difference, cast(sum(runs) as bigint) as runs{{more}}
from pairs group by all order by {UNIT}
"""


def parity_rows(scope: Scope) -> pd.DataFrame:
    """One row per example and setting."""
    mine, rival = (scope.policy(scope.common[key]) for key in ("policy", "rival_policy"))
    scope.db.execute(PAIRS.format(policy=mine, rival=rival))
    return scope.frame(EXAMPLES.format(more=""))


def damage_rows(scope: Scope) -> pd.DataFrame:
    """One row per example: mean drop, and whether its full run failed."""
    scope.evicted(signal_needed=False)
    scope.db.execute(DROPS)
    return scope.frame(EXAMPLES.format(more=", bool_or(full_fail) as full_fail"))


def mean(rows: pd.DataFrame) -> float:
    """Plain mean difference; NaN without rows."""
    return float(rows["difference"].sum() / len(rows)) if len(rows) else NAN


def parity(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """C2's only measure."""
    return {"difference": mean(rows)}


def damage(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """C3's two measures."""
    passed = rows[~rows["full_fail"].astype(bool)]
    return {"drop": mean(rows), "drop_among_full_successes": mean(passed)}


def _groups(*columns: str) -> Any:
    def groups(scope: Scope, rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
        yield from split(scope.frame(f"select * from pairs order by {UNIT}, budget"), "budget")
        for column in columns:
            yield from split(rows, column)

    return groups


def _minima(rows: pd.DataFrame, claim: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {"clusters": (clusters(rows), claim["minimum"]["clusters"])}


def _runs(scope: Scope, rows: pd.DataFrame) -> int:
    return int(rows["runs"].sum())


PARITY = Claim(
    parity_rows,
    parity,
    _groups("setting", "cell"),
    lambda rows, claim: {"parity": mean(rows)},
    _minima,
    n_runs=_runs,
)
DAMAGE = Claim(damage_rows, damage, _groups("cell"), damage, _minima, n_runs=_runs)
