"""One claim computed a second time: its rows, its registered lines, every stratum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kvcert.audit.second.base import Scope, opened

Statistics = dict[str, float]
#: (by, name, measure)
Key = tuple[str, str, str]


@dataclass
class Claim:
    """How one claim is computed: rows by SQL, statistics of any subset of them, strata, registered minima."""

    rows: Callable[[Scope], pd.DataFrame]
    statistics: Callable[[pd.DataFrame, dict[str, Any]], Statistics]
    groups: Callable[[Scope, pd.DataFrame], Iterator[tuple[str, str, pd.DataFrame]]]
    parts: Callable[[pd.DataFrame, dict[str, Any]], Statistics]
    minima: Callable[[pd.DataFrame, dict[str, Any]], dict[str, tuple[float, float]]]
    primary: Callable[[pd.DataFrame, dict[str, Any]], pd.DataFrame] = lambda rows, claim: rows
    extra: Callable[[Scope, pd.DataFrame], dict[Key, float]] = lambda scope, rows: {}
    n_runs: Callable[[Scope, pd.DataFrame], int] = lambda scope, rows: len(rows)
    tables: tuple[str, ...] = ("runs",)


@dataclass
class Computed:
    """What the second computation found."""

    name: str
    rows: pd.DataFrame
    primary: pd.DataFrame
    parts: Statistics
    n_runs: int
    n_clusters: int
    strata: dict[Key, float] = field(default_factory=dict)
    minima: dict[str, tuple[float, float]] = field(default_factory=dict)
    fail_below: dict[str, Statistics] = field(default_factory=dict)


def claim_of(name: str) -> Claim:
    """The second computation of `C1` … `C7`."""
    from kvcert.audit.second import attribution, coverage, gates, means, prediction

    return {
        "C1": coverage.COVERAGE, "C2": means.PARITY, "C3": means.DAMAGE, "C4": prediction.PREDICTION,
        "C5": gates.ESCALATION, "C6": attribution.ATTRIBUTION, "C7": gates.SCHEDULING,
    }[name]  # fmt: skip


def compute(
    folder: Path, name: str, claims: dict[str, Any], scorer: str, fail_below: Sequence[float] = ()
) -> Computed:
    """Compute claim `name` from the Parquet files in `folder`.

    Parameters
    ----------
    folder : with `runs.parquet` (for C1 also `steps`, `heads`, `counts`).
    claims : the registration, as `kvcert.registry.load_claims` gives it.
    scorer : the study's primary importance score.
    fail_below : failure thresholds to try for every task instead of the registered ones (sensitivity).
    """
    how, claim = claim_of(name), claims["claims"][name]
    with opened(folder, how.tables) as connection:
        scope = Scope(connection, claim, claims["common"], scorer)
        rows = how.rows(scope)
        primary = how.primary(rows, claim)
        clusters = primary["cluster"].nunique() if len(primary) else 0
        found = Computed(
            name, rows, primary, how.parts(primary, claim), how.n_runs(scope, primary), int(clusters)
        )
        for by, label, some in how.groups(scope, rows):
            for measure, value in how.statistics(some, claim).items():
                found.strata[by, label, measure] = value
        found.strata |= how.extra(scope, rows)
        found.minima = how.minima(primary, claim)
        for line in fail_below:
            moved = how.rows(Scope(connection, claim, claims["common"], scorer, line))
            found.fail_below[f"{line:g}"] = how.parts(how.primary(moved, claim), claim)
    return found


def label(value: Any) -> str:
    """A stratum's name: `0.125`, `niah`."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def split(rows: pd.DataFrame, by: str) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """(by, name, rows) for every value of a column."""
    for value in sorted(rows[by].unique().tolist()):
        yield by, label(value), rows[rows[by] == value]


def with_place(rows: pd.DataFrame) -> pd.DataFrame:
    """Add `place`, the label of (cell, budget), and `block`, its number."""
    place = [f"{cell}/{budget:g}" for cell, budget in zip(rows["cell"], rows["budget"], strict=True)]
    return rows.assign(place=place, block=np.unique(np.array(place, dtype=object), return_inverse=True)[1])


def clusters(rows: pd.DataFrame) -> float:
    """How many examples the rows come from."""
    return float(rows["cluster"].nunique())
