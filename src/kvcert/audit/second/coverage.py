"""C1 a second time: covered steps and covered (layer, head, step), counted by SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from kvcert.audit.second.base import Scope
from kvcert.audit.second.claims import Claim, Key, Statistics, clusters, split
from kvcert.audit.second.numbers import NAN, spearman

MEASURES = ("C1a", "C1b", "C1b guarded")
BANDS = ("<=2", "2-4", "4-8", "8-16", "16-32", ">32")
#: A step or pair counts when something was evicted and both numbers are numbers.
COUNTS = """
create or replace table mine as {policy};
create or replace table used_steps as
  select run_id, cast(certificate as double) as certificate, cast(error as double) as error
  from steps semi join mine using (run_id)
  where units > 0 and isfinite(error) and certificate is not null and not isnan(certificate);
create or replace table used_heads as
  select run_id, band, error <= radius as covered, wide
  from heads join counts using (run) semi join mine using (run_id)
  where isfinite(error) and not isnan(radius);
create or replace table by_run as
  select mine.*, C1a, C1b, "C1b guarded"
  from mine
  join (select run_id, avg((error <= certificate)::int) as C1a from used_steps group by run_id) using (run_id)
  left join (select run_id, avg(covered::int) as C1b, avg(wide::int) as "C1b guarded" from used_heads group by run_id)
    using (run_id)
"""
#: The runs of an example at one budget are averaged first: its number.
UNITS = "dense_rank() over (order by model, task, length, example, budget) - 1"
BY_BAND = f"""
select {UNITS} as unit, by_run.* exclude (C1a, C1b, "C1b guarded"), null::double as C1a, one.C1b, one."C1b guarded"
from by_run join (
  select run_id, avg(covered::int) as C1b, avg(wide::int) as "C1b guarded" from used_heads where band = {{band}}
  group by run_id) as one using (run_id) where budget = {{budget!r}}
"""


def rows_of(scope: Scope) -> pd.DataFrame:
    """One row per forced certified run with a usable step."""
    own = scope.policy(scope.common["policy"], scope.claim["scope"]["regime"])
    scope.db.execute(COUNTS.format(policy=own))
    return scope.frame(f"select *, {UNITS} as unit from by_run order by run_id")


def statistics(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """Shares averaged over the runs of an example, then over examples."""
    found, unit = {}, rows["unit"].to_numpy(int)
    for measure in MEASURES:
        value = rows[measure].to_numpy(float)
        known = ~np.isnan(value)
        size = np.bincount(unit[known])
        means = np.bincount(unit[known], value[known])[size > 0] / size[size > 0]
        found[measure] = float(means.sum() / len(means)) if len(means) else NAN
    return found


def groups(scope: Scope, rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Budgets, and settings and tasks inside them."""
    for _, name, some in split(rows, "budget"):
        yield "budget", name, some
        for by, column in (("budget x setting", "setting"), ("budget x task", "cell")):
            for _, inner, part in split(some, column):
                yield by, f"{inner}/{name}", part
        for (cell, setting), part in some.groupby(["cell", "setting"]):
            yield "budget x task x setting", f"{cell}/{setting}/{name}", part


def beside(scope: Scope, rows: pd.DataFrame) -> dict[Key, float]:
    """Bands of the effective sample size, and the rank correlation of certificate and error."""
    found: dict[Key, float] = {}
    for budget in sorted(rows["budget"].unique().tolist()):
        for number, band in enumerate(BANDS):
            some = scope.frame(BY_BAND.format(band=number, budget=budget))
            if len(some):
                shares = statistics(some, scope.claim)
                for measure in MEASURES[1:]:
                    found["budget x ess", f"ESS {band}/{budget:g}", measure] = shares[measure]
    steps = scope.frame(
        "select budget, certificate, used_steps.error as error from used_steps join by_run using (run_id)"
    )
    for name, some in [("pooled", steps), *((f"{b:g}", part) for b, part in steps.groupby("budget"))]:
        rho = spearman(some["certificate"].to_numpy(), some["error"].to_numpy())
        found["budget", name, "rank correlation"] = rho
    return found


def parts(rows: pd.DataFrame, claim: dict[str, Any]) -> Statistics:
    """Every registered line at every budget."""
    found: Statistics = {}
    for _, name, some in split(rows, "budget"):
        shares = statistics(some, claim)
        found |= {f"{line} at {name}": shares[line] for line in claim["lines"]}
    return found


def minima(rows: pd.DataFrame, claim: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Clusters at every budget."""
    least = claim["minimum"]["clusters"]
    return {f"clusters at {name}": (clusters(some), least) for _, name, some in split(rows, "budget")}


COVERAGE = Claim(
    rows_of, statistics, groups, parts, minima, extra=beside, tables=("runs", "steps", "heads", "counts")
)
