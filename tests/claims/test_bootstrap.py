"""The cluster bootstrap: reproducible, within strata, redrawn where undefined, exact at 0 and 1; and the verdict rule."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from kvcert.claims.auc import auc
from kvcert.claims.bootstrap import Estimates, Plan, estimate, exact_bound, resample
from kvcert.claims.means import weighted_means
from kvcert.claims.verdict import CARRIED, Part, agreement, decide

ROWS = pd.DataFrame(
    {"stratum": list("aaabbbbb"), "cluster": ["a1", "a1", "a2", "b1", "b2", "b3", "b4", "b5"]}
)
VALUES = np.arange(8.0)[:, None]


def mean(seed: int) -> Estimates:
    return estimate(ROWS, weighted_means(VALUES, np.ones_like(VALUES)), ["mean"], Plan(0.95, 2000, seed))


def test_same_seed_same_interval_and_another_seed_another() -> None:
    assert np.array_equal(mean(1).samples, mean(1).samples)
    assert not np.array_equal(mean(1).samples, mean(2).samples)
    assert mean(1).value("mean") == 3.5
    assert mean(1).clusters == 7


def test_clusters_are_drawn_whole_and_within_their_stratum() -> None:
    counts = resample(np.array(list("aabbbbb")), 500, np.random.default_rng(0))
    assert (counts[:, :2].sum(axis=1) == 2).all()
    assert (counts[:, 2:].sum(axis=1) == 5).all()
    seen: list[np.ndarray] = []

    def spy(weights: np.ndarray) -> np.ndarray:
        seen.append(weights)
        return weights.sum(axis=1, keepdims=True)

    estimate(ROWS, spy, ["n"], Plan(0.95, 100, 0))
    assert all(np.array_equal(weights[:, 0], weights[:, 1]) for weights in seen)


def test_interval_has_about_the_classical_width() -> None:
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"stratum": "a", "cluster": np.arange(400)})
    values = rng.standard_normal((400, 1))
    found = estimate(rows, weighted_means(values, np.ones_like(values)), ["mean"], Plan(0.95, 4000, 0))
    assert found.error("mean") == pytest.approx(values.std() / 20, rel=0.05)
    low, high = found.interval("mean")
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.08)


def test_one_class_resamples_are_redrawn_and_counted() -> None:
    positive = np.array([True] + [False] * 7)
    rows = pd.DataFrame({"stratum": "a", "cluster": np.arange(8)})
    found = estimate(rows, lambda w: auc(np.arange(8.0), positive, w)[:, None], ["auc"], Plan(0.95, 2000, 0))
    # The single positive is missed by (7/8)^8 = 34 % of the resamples; redrawing repeats that chance.
    assert found.redrawn / (2000 + found.redrawn) == pytest.approx((7 / 8) ** 8, abs=0.03)
    assert not np.isnan(found.samples).any()


def test_a_single_cluster_has_no_interval_and_no_rows_have_no_value() -> None:
    one = estimate(ROWS[:2], weighted_means(VALUES[:2], np.ones((2, 1))), ["mean"], Plan(0.95, 100, 0))
    assert one.value("mean") == 0.5
    assert np.isnan(one.interval("mean")).all()
    assert np.isnan(one.error("mean"))
    none = estimate(ROWS[:0], weighted_means(VALUES[:0], np.ones((0, 1))), ["mean"], Plan(0.95, 100, 0))
    assert np.isnan(none.value("mean"))


@pytest.mark.parametrize("clusters", [5, 30, 150])
def test_share_at_0_or_1_has_the_exact_binomial_bound(clusters: int) -> None:
    for value in (0.0, 1.0):
        exact = binomtest(int(value * clusters), clusters).proportion_ci(0.95, "exact")
        assert exact_bound(value, clusters, 0.95) == pytest.approx((exact.low, exact.high))
    rows = pd.DataFrame({"stratum": "a", "cluster": np.arange(clusters)})
    found = estimate(
        rows, weighted_means(np.ones((clusters, 1)), np.ones((clusters, 1))), ["s"], Plan(0.95, 50, 0)
    )
    assert found.interval("s") == (1.0, 1.0)
    assert found.interval("s", share=True)[0] < 1.0


GOOD = Part("p", "a number", 0.8, 0.75, 0.85, 0.7, ">=", "decides", True, 0.74, 0.86)


def changed(**values: Any) -> Part:
    return dataclasses.replace(GOOD, **values)


def test_verdict_rule() -> None:
    bad = changed(
        name="bad",
        value=0.6,
        ci_low=0.5,
        ci_high=0.65,
        passed=False,
        bonferroni_low=0.45,
        bonferroni_high=0.69,
    )
    assert decide([GOOD], [], []).verdict == "survived"
    assert decide([GOOD], [], []).decisive
    assert not decide([changed(ci_low=0.69)], [], []).decisive
    assert decide([GOOD, bad], [], []).verdict == "killed"
    assert decide([GOOD, bad], [], []).decisive
    assert not decide([GOOD, dataclasses.replace(bad, bonferroni_high=0.71)], [], []).decisive
    assert decide([GOOD, bad], [], []).nearest is bad
    assert decide([GOOD, dataclasses.replace(bad, kind=CARRIED)], [], []).verdict == CARRIED
    assert decide([bad, dataclasses.replace(bad, kind=CARRIED)], [], []).verdict == "killed"
    assert decide([GOOD, dataclasses.replace(bad, role="beside")], [], []).verdict == "survived"
    assert decide([bad], ["few"], []).verdict == "underpowered"
    assert not decide([bad], ["few"], []).decisive
    assert decide([bad], ["few"], ["none"]).verdict == "not-run"
    undefined = decide([GOOD, changed(name="u", value=float("nan"), passed=None)], [], [])
    assert undefined.verdict == "not-run"
    assert "u is undefined" in undefined.reasons[0]
    assert decide([], [], []).verdict == "not-run"


def test_an_interval_of_no_width_is_never_decisive() -> None:
    assert not decide([changed(ci_low=0.8, ci_high=0.8)], [], []).decisive


@pytest.mark.parametrize(
    ("verdict", "paper", "agrees"),
    [
        ("survived", "survived", True),
        (CARRIED, "killed", True),
        (CARRIED, "survived", False),
        ("underpowered", "killed", None),
        ("not-run", "survived", None),
    ],
)
def test_agreement(verdict: str, paper: str, agrees: bool | None) -> None:
    assert agreement(verdict, paper) is agrees
