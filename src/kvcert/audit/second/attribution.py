"""C6 a second time: failed runs, whether the cache did it, and what every contender says."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvcert.audit.second.base import UNIT, Scope
from kvcert.audit.second.claims import Claim, Key, Statistics, clusters, split, with_place
from kvcert.audit.second.numbers import auc, pairs_won
from kvcert.audit.second.prediction import AVERAGED

#: Contender -> its column; larger means "more likely cache-induced".
CONTENDERS = {
    "certificate": "signal", "confidence": "doubt", "two_run": "two_run", "budget": "small_budget", "task": "task_rate",
    "evicted_mass": "mass", "topk_confidence": "topk_doubt", "guarded": "signal_guarded", "confidence_first6": "doubt6",
}  # fmt: skip
TWO_DRAWS = f"""
with numbered as (
  select {UNIT}, budget, answer, logp_mean, row_number() over (partition by {UNIT}, budget order by draw) as place
  from ({{policy}}))
select {UNIT}, one.budget as budget, one.answer as first, two.answer as second, abs(one.logp_mean - two.logp_mean) as gap
from (select * from numbered where place = 1) as one join (select * from numbered where place = 2) as two
using ({UNIT}, budget)
"""
FAILURES = f"""
create or replace table failures as
with ranked as (select * exclude (gap, apart), dense_rank() over (order by apart, gap) as two_run from apart),
rival as (
  select {UNIT}, budget, arg_min({{confidence}}, draw) as topk from ({{topk}}) group by all),
rows as (
  select evicted.* exclude (weight), two_run, -budget as small_budget, evicted_mass as mass, -topk as topk_doubt,
    -logp_first6 as doubt6, not full_fail as induced
  from evicted join ranked using ({UNIT}, budget) left join rival using ({UNIT}, budget) where fail),
weighed as (select *, 1.0 / count(*) over (partition by {UNIT}, budget) as weight from rows)
select *, sum(weight * induced::int) over (partition by cell) / sum(weight) over (partition by cell) as task_rate
from weighed
"""


def words(text: str) -> list[str]:
    """What two answers are compared by: lower case, ASCII punctuation deleted, articles and spaces dropped."""
    bare = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"(?<!\w)(?:an?|the)(?!\w)", " ", bare).split()


def apart(first: str, second: str) -> float:
    """1 - F1 of the two bags of words."""
    one, two = words(first), words(second)
    if not one or not two:
        return 0.0 if one == two else 1.0
    rest, shared = list(two), 0
    for word in one:
        if word in rest:
            rest.remove(word)
            shared += 1
    return 1.0 - 2 * shared / (len(one) + len(two))


def rows_of(scope: Scope) -> pd.DataFrame:
    """Failed certified runs of every setting in scope, with every contender's signal."""
    scope.evicted()
    pairs = scope.frame(TWO_DRAWS.format(policy=scope.policy(scope.common["policy"])))
    pairs["apart"] = [apart(a, b) for a, b in zip(pairs["first"], pairs["second"], strict=True)]
    pairs["apart"] = pairs["apart"].astype(float)
    scope.db.register("two_draws", pairs.drop(columns=["first", "second"]))
    scope.db.execute("create or replace table apart as select * from two_draws")
    topk = scope.policy(scope.common["rival_policy"])
    scope.db.execute(FAILURES.format(confidence=scope.common["confidence"], topk=topk))
    return with_place(scope.frame("select * from failures order by run_id"))


def primary(rows: pd.DataFrame, claim: dict[str, Any]) -> pd.DataFrame:
    """The claim's own setting; the secondary one is beside."""
    return rows[rows["setting"].isin(claim["scope"]["settings"])].reset_index(drop=True)


def both(rows: pd.DataFrame, name: str) -> tuple[float, float]:
    """Pooled and conditional AUC of one contender where it has a value."""
    known = rows[rows[CONTENDERS[name]].notna()]
    signal, induced = known[CONTENDERS[name]].to_numpy(float), known["induced"].to_numpy(bool)
    weight = known["weight"].to_numpy(float)
    return auc(signal, induced, weight), auc(signal, induced, weight, known["block"].to_numpy(int))


def statistics(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """Every contender, both forms."""
    found = {}
    for name in CONTENDERS:
        found[f"pooled/{name}"], found[f"conditional/{name}"] = both(rows, name)
    return found


def parts(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """The six registered lines."""
    (a, b), (c, d), (e, f) = (both(rows, name) for name in ("certificate", "confidence", "two_run"))
    return {
        "pooled": a, "pooled_over_confidence": a - c, "pooled_over_two_run": a - e,
        "conditional": b, "conditional_over_confidence": b - d, "conditional_over_two_run": b - f,
    }  # fmt: skip


def groups(scope: Scope, rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """By setting over all; by task and budget in the claim's own setting."""
    yield from split(rows, "setting")
    mine = primary(rows, scope.claim)
    for by in ("cell", "budget"):
        yield from split(mine, by)


def averaged(scope: Scope, rows: pd.DataFrame) -> dict[Key, float]:
    """Draws averaged inside the example, for the certificate and confidence."""
    scope.db.register("chosen", primary(rows, scope.claim))
    means = with_place(scope.frame(AVERAGED.format(table="chosen")))
    means["induced"] = ~means["full_fail"].astype(bool)
    found: dict[Key, float] = {}
    for name in ("certificate", "confidence"):
        for form, value in zip(("pooled", "conditional"), both(means, name), strict=True):
            found["sensitivity", "draws averaged", f"{form}/{name}"] = value
    return found


def minima(rows: pd.DataFrame, claim: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Clusters, tasks that hold both classes, pairs."""
    least, tasks = claim["minimum"], 0
    for _, cell in rows.groupby("cell"):
        caused = cell["induced"].astype(bool)
        tasks += min(clusters(cell[caused]), clusters(cell[~caused])) >= least["clusters_of_each_class"]
    induced, weight = rows["induced"].to_numpy(bool), rows["weight"].to_numpy(float)
    pairs = pairs_won(weight, induced, weight, rows["block"].to_numpy(int))[1]
    return {
        "clusters": (clusters(rows), least["clusters"]),
        "tasks": (float(tasks), least["tasks"]),
        "pairs": (pairs, least["pairs"]),
    }


ATTRIBUTION = Claim(rows_of, statistics, groups, parts, minima, primary, averaged)
