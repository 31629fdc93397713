"""C5 and C7 a second time: what gates collect, run by run from the largest certificate down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from kvcert.audit.second.base import UNIT, Scope
from kvcert.audit.second.claims import Claim, Key, Statistics, clusters, split, with_place
from kvcert.audit.second.numbers import NAN, divided, gate

RAISED = f"""
select low.*, high.score - low.score as raised, 1.0 / count(*) over (partition by {UNIT}, low.budget) as share
from (select * exclude (weight) from evicted where budget = {{low!r}}) as low
join (select {UNIT}, draw, score from evicted where budget = {{high!r}}) as high using ({UNIT}, draw)
order by run_id
"""


def escalation_rows(scope: Scope) -> pd.DataFrame:
    """Runs at the low budget with the score that the same draw has at the high one."""
    scope.evicted()
    low, high = (float(edge(scope.claim["scope"]["budgets"])) for edge in (min, max))
    return with_place(scope.frame(RAISED.format(low=low, high=high)).rename(columns={"share": "weight"}))


def escalation(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """Score gain per run of every gate."""
    signal, doubt, raised, weight = (
        rows[name].to_numpy(float) for name in ("signal", "doubt", "raised", "weight")
    )
    fraction, total = claim["scope"]["fraction"], float(weight.sum())
    mine = divided(gate(signal, raised, weight, fraction), total)
    chance = divided(fraction * float(np.dot(weight, raised)), total)
    theirs = divided(gate(doubt, raised, weight, fraction), total)
    best = divided(gate(raised, raised, weight, fraction), total)
    return {
        "over_random": mine - chance, "over_confidence": mine - theirs, "certificate": mine, "random": chance,
        "confidence": theirs, "oracle": best,
    }  # fmt: skip


def scheduling_rows(scope: Scope) -> pd.DataFrame:
    """Certified streaming runs."""
    return with_place(scope.evicted())


def scheduling(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """Recovered share of every gate, within budgets and then averaged; points of accuracy above the two rivals."""
    shares: dict[str, list[float]] = {name: [] for name in ("certificate", "random", "confidence", "oracle")}
    points: dict[str, list[float]] = {name: [] for name in shares}
    fraction = claim["scope"]["fraction"]
    for _, some in rows.groupby("budget"):
        gain, weight = some["gain"].to_numpy(float), some["weight"].to_numpy(float)
        ranks = {"certificate": some["signal"], "confidence": some["doubt"], "oracle": some["gain"]}
        sums = {name: gate(rank.to_numpy(float), gain, weight, fraction) for name, rank in ranks.items()}
        sums["random"] = fraction * float(np.dot(weight, gain))
        most = float(np.dot(weight, np.where(gain > 0, gain, 0.0)))
        for name, value in sums.items():
            points[name].append(divided(value, float(weight.sum())))
            if most > 0:
                shares[name].append(value / most)
    found = {name: float(np.mean(values)) if values else NAN for name, values in shares.items()}
    point = {name: float(np.mean(values)) if values else NAN for name, values in points.items()}
    return {
        "over_random": found["certificate"] - found["random"],
        "over_confidence": found["certificate"] - found["confidence"],
        **found,
        "points_over_random": point["certificate"] - point["random"],
        "points_over_confidence": point["certificate"] - point["confidence"],
    }


def curve(scope: Scope, rows: pd.DataFrame) -> dict[Key, float]:
    """What the figure draws: every gate's share at every registered fraction."""
    found: dict[Key, float] = {}
    for fraction in scope.claim["scope"]["curve"] if len(rows) else ():
        shares = scheduling(rows, {"scope": {"fraction": fraction}})
        for name in ("certificate", "random", "confidence", "oracle"):
            found["curve", f"{fraction:g}", name] = shares[name]
    return found


def _groups(*columns: str) -> Any:
    def groups(scope: Scope, rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
        if len(rows):
            yield "pooled", "all", rows
            for column in columns:
                yield from split(rows, column)

    return groups


def _minima(column: str, what: str) -> Any:
    def minima(rows: pd.DataFrame, claim: dict[str, Any]) -> dict[str, tuple[float, float]]:
        least = claim["minimum"]
        return {
            "clusters": (clusters(rows), least["clusters"]),
            what: (clusters(rows[rows[column] > 0]), least["positives"]),
        }

    return minima


def _parts(statistics: Any) -> Any:
    def parts(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
        found = statistics(rows, claim)
        return {name: found[name] for name in claim["lines"]}

    return parts


ESCALATION = Claim(
    escalation_rows, escalation, _groups("setting", "cell"), _parts(escalation),
    _minima("raised", "clusters that a larger budget helps"),
)  # fmt: skip
SCHEDULING = Claim(
    scheduling_rows, scheduling, _groups("budget", "cell"), _parts(scheduling),
    _minima("gain", "clusters that recomputation helps"), extra=curve,
)  # fmt: skip
