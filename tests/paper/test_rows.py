"""Rows of any policy, parameters and scorer are named for people and told apart in figures."""

from __future__ import annotations

import pandas as pd
import pytest

from kvcert.paper.figures.rows import MOST, NAMES, fewer, label, looks, named, ordered
from kvcert.paper.figures.style import POLICIES


def runs(*rows: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["policy", "scorer"])


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("poisson", "Poisson"),
        ("mixture[lam=0.3]", "mixture λ=0.3"),
        ("mixture[lam=0.3], h2o", "mixture λ=0.3, h2o"),
        ("adakv[safeguard=0.2]", "head budgets safeguard=0.2"),
        ("something[a=1,b=2], h2o", "something a=1,b=2, h2o"),
    ],
)
def test_labels(row: str, text: str) -> None:
    assert label(row) == text


def test_twelve_rows_have_twelve_looks() -> None:
    rows = [policy for policy in POLICIES if policy != "full"]
    rows += ["mixture[lam=0.3]", "poisson, h2o", "topk, h2o"]
    pairs = {(look["color"], look["marker"]) for look in looks(ordered(rows))}
    assert len(pairs) == len(rows) == 12
    assert len({look["marker"] for look in looks(rows)}) == 12
    assert set(POLICIES) == set(NAMES)


def test_policies_keep_their_look_and_their_order() -> None:
    rows = ordered(["lru", "random", "mixture[lam=0.3]", "unheard-of", "topk, snapkv", "poisson"])
    assert rows == ["poisson", "topk, snapkv", "random", "mixture[lam=0.3]", "lru", "unheard-of"]
    found = dict(zip(rows, looks(rows), strict=True))
    for row, policy in (("topk, snapkv", "topk"), ("mixture[lam=0.3]", "mixture"), ("lru", "lru")):
        assert (found[row]["color"], found[row]["marker"]) == POLICIES[policy][:2]


def test_the_scorer_is_named_only_where_there_are_several() -> None:
    free = named(runs(("full", "none"), ("topk", "snapkv"), ("topk", "h2o"), ("poisson", "snapkv")))
    assert list(free["row"]) == ["full", "topk, snapkv", "topk, h2o", "poisson"]


def test_too_many_rows_leave_those_of_the_primary_scorer() -> None:
    scorers = [f"s{i:02d}" for i in range(MOST + 5)]
    free = named(runs(("full", "none"), ("random", "none"), *(("topk", scorer) for scorer in scorers)))
    kept, left_out = fewer(free, "s03")
    assert set(kept["row"]) == {"full", "random", "topk, s03"}
    assert left_out == len(scorers) - 1
    assert set(fewer(free, None)[0]["row"]) == {"full", "random", "topk, s00"}
    few = free[free["scorer"].isin(["none", "s01", "s02"])]
    assert fewer(few, "s01")[1] == 0
