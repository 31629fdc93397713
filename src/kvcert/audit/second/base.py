"""The bundle's rows as DuckDB tables: usable runs, the tasks in scope, evicted runs beside their full run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

#: What names an example in one setting.
UNIT = "model, task, length, example, setting"

#: Columns of `runs` that a statistic can depend on.
RUNS = (
    "run_id", "model", "task", "length", "example", "setting", "scorer", "policy", "budget", "draw", "regime", "valid",
    "identity", "answer", "score", "fail", "fail_below", "logp_mean", "logp_first6", "signal", "signal_guarded",
    "evicted_mass",
)  # fmt: skip

USABLE = """
create or replace table usable as
with kept as (
  select * exclude (fail), score < {line} as fail, task || '/' || example as cluster
  from runs
  where valid and isfinite({confidence}) and isfinite(logp_mean)
    and (regime = 'forced' or (score is not null and not isnan(score)))),
shape as (
  select coalesce(max(models) <= 1 and max(lengths) <= 1, true) as single from (
    select count(distinct model) as models, count(distinct length) as lengths from kept group by task))
select kept.*, case when single then task else model || '/' || task || '/' || length end as cell
from kept, shape
"""

POLICY = """
select * from usable where policy = '{policy}' and regime = '{regime}' and not identity
  and setting in ({settings}) and scorer = '{scorer}' and {budgets}
"""

EVICTED = """
create or replace table evicted as
with mine as ({policy}),
beside as (
  select mine.*, whole.score as full_score, whole.fail as full_fail, -mine.{confidence} as doubt,
    whole.score - mine.score as gain
  from mine join (select * from usable where policy = 'full') as whole using ({unit})
  where mine.cell in (select cell from cells) and ({signal}))
select *, 1.0 / count(*) over (partition by {unit}, budget) as weight from beside
"""


def opened(folder: Path, tables: tuple[str, ...]) -> duckdb.DuckDBPyConnection:
    """An in-memory database on one thread with the bundle's tables."""
    connection = duckdb.connect(":memory:", config={"threads": "1"})
    for table in tables:
        path = str(Path(folder) / f"{table}.parquet").replace("'", "''")
        columns = ", ".join(RUNS) if table == "runs" else "*"
        connection.execute(f"create table {table} as select {columns} from read_parquet('{path}')")
    return connection


def quoted(values: list[str]) -> str:
    """SQL list of strings."""
    return ", ".join("'" + str(value).replace("'", "''") + "'" for value in values) or "''"


class Scope:
    """One claim's scope over an open database: the SQL that the statistics start from."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        claim: dict[str, Any],
        common: dict[str, Any],
        scorer: str,
        fail_below: float | None = None,
    ) -> None:
        self.db, self.claim, self.common, self.scorer = connection, claim, common, scorer
        line = "fail_below" if fail_below is None else repr(float(fail_below))
        self.db.execute(USABLE.format(line=line, confidence=common["confidence"]))

    def policy(self, name: str, regime: str = "free") -> str:
        """Query for the runs of one policy with the primary scorer in which something was evicted."""
        scope = self.claim["scope"]
        settings = [*scope["settings"], *scope.get("secondary_settings", [])]
        listed = scope["budgets"]
        budgets = "true" if listed == "all" else f"budget in ({', '.join(repr(float(b)) for b in listed)})"
        return POLICY.format(
            policy=name, regime=regime, settings=quoted(settings), scorer=self.scorer, budgets=budgets
        )

    def evicted(self, signal_needed: bool = True) -> pd.DataFrame:
        """Certified runs with a full run in the tasks that stay, as table `evicted`; sorted by run."""
        scope, band = self.claim["scope"], self.common["task_filter"]
        low, high = max(band["low"], scope.get("smallest_full_mean", 0.0)), band["high"]
        chosen = f"policy = 'full' and setting in ({quoted(scope['settings'])})"
        kept = f"having fsum(score) / count(*) between {low!r} and {high!r}"
        if scope["tasks"] == "all":
            chosen, kept = "true", ""
        self.db.execute(
            f"create or replace table cells as select cell from usable where {chosen} group by cell {kept}"
        )
        signal = "mine.signal is not null and not isnan(mine.signal)" if signal_needed else "true"
        confidence = self.common["confidence"]
        own = self.policy(self.common["policy"])
        self.db.execute(EVICTED.format(policy=own, confidence=confidence, unit=UNIT, signal=signal))
        return self.frame("select * from evicted order by run_id")

    def frame(self, query: str) -> pd.DataFrame:
        """The answer to a query."""
        return self.db.execute(query).df()
