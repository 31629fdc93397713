"""AUC against scikit-learn and by hand; conditional form, gates, ranks and token F1."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import auc as area
from sklearn.metrics import roc_auc_score

from kvcert.claims.auc import auc, conditional_auc, pair_count, roc
from kvcert.claims.gating import collected
from kvcert.claims.labels import lexicographic
from kvcert.claims.ranks import correlation, rank_moments, weighted_quantile
from kvcert.claims.text import token_f1


@pytest.mark.parametrize("levels", [3, 10, 10_000])
@pytest.mark.parametrize("seed", range(3))
def test_auc_is_sklearns_with_ties_and_weights(levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, 300).astype(float)
    positive = rng.random(300) < 0.3
    weights = rng.random((4, 300)) * rng.integers(0, 3, (4, 300))
    expected = [roc_auc_score(positive, scores, sample_weight=row) for row in weights]
    np.testing.assert_allclose(auc(scores, positive, weights), expected, rtol=1e-12)


def test_auc_by_hand_and_not_reflected() -> None:
    # Pairs (positive, negative): (3,1) right, (3,3) tie, (2,1) right, (2,3) wrong: (1 + .5 + 1 + 0) / 4.
    scores, positive = np.array([3.0, 2.0, 1.0, 3.0]), np.array([True, True, False, False])
    assert auc(scores, positive, np.ones((1, 4)))[0] == 0.625
    assert auc(-scores, positive, np.ones((1, 4)))[0] == 0.375


def test_auc_takes_infinite_scores_and_refuses_to_invent_a_missing_class() -> None:
    scores = np.array([np.inf, np.inf, 1.0])
    assert auc(scores, np.array([True, False, False]), np.ones((1, 3)))[0] == 0.75
    assert np.isnan(auc(scores, np.array([True, True, True]), np.ones((1, 3)))[0])
    assert np.isnan(auc(scores, np.array([True, False, False]), np.array([[1.0, 0, 0]]))[0])
    assert np.isnan(auc(np.zeros(0), np.zeros(0, bool), np.ones((1, 0)))[0])


def test_conditional_auc_counts_pairs_inside_cells_only() -> None:
    # Cell a: one pair, right. Cell b: two pairs, one right and one wrong. Between cells all is wrong.
    scores = np.array([10.0, 9.0, 2.0, 1.0, 3.0])
    positive = np.array([True, False, True, False, False])
    cells = np.array(["a", "a", "b", "b", "b"])
    assert conditional_auc(scores, positive, np.ones((1, 5)), cells)[0] == pytest.approx(2 / 3)
    assert pair_count(positive, np.ones(5), cells) == 3
    assert np.isnan(conditional_auc(scores, positive, np.ones((1, 5)), np.arange(5).astype(str))[0])


def test_area_under_the_drawn_curve_is_the_auc() -> None:
    rng = np.random.default_rng(1)
    scores, positive, weights = rng.integers(0, 6, 80).astype(float), rng.random(80) < 0.4, rng.random(80)
    assert area(*roc(scores, positive, weights)) == pytest.approx(auc(scores, positive, weights[None])[0])


def test_gate_takes_exactly_its_share() -> None:
    signal, value, one = (
        np.array([5.0, 4.0, 3.0, 2.0, 1.0]),
        np.array([1.0, 10, 100, 1000, 10_000]),
        np.ones((1, 5)),
    )
    assert collected(signal, value, one, 0.4)[0] == 11
    assert collected(signal, value, one, 0.5)[0] == 61  # half of the boundary run
    assert collected(np.zeros(5), value, one, 0.2)[0] == pytest.approx(
        value.mean()
    )  # all tied: the expectation
    assert collected(signal, value, np.array([[2.0, 0, 1, 1, 0]]), 0.75)[0] == pytest.approx(102)


def test_rank_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 20, 100).astype(float)
    second, run = first + 5 * rng.standard_normal(100), rng.integers(0, 10, 100)
    first[3] = np.inf
    found = correlation(rank_moments(first, second, run, 10))(np.ones((1, 10)))
    assert found[0, 0] == pytest.approx(spearmanr(first, second).statistic)
    constant = correlation(rank_moments(np.ones(100), second, run, 10))(np.ones((1, 10)))
    assert np.isnan(constant[0, 0])


def test_weighted_quantile() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])
    assert [weighted_quantile(values, weights, level) for level in (0.25, 0.5, 0.75, 0.95)] == [1, 2, 2, 3]
    assert np.isnan(weighted_quantile(values[:0], weights[:0], 0.5))


def test_token_f1_and_its_tie_break() -> None:
    assert token_f1("The Paris!", "paris") == 1
    # "a" is an article: {b, c} against {b, c, d} share two of 2 + 3 tokens.
    assert token_f1("a b c", "b c d") == pytest.approx(4 / 5)
    assert token_f1("", "") == 1
    assert token_f1("x", "") == 0
    assert token_f1("red", "blue") == 0
    np.testing.assert_array_equal(
        lexicographic(np.array([1, 0, 1, 0.0]), np.array([2, 9, 1, 9.0])), [2, 0, 1, 0]
    )
