"""The design: sums, bounds, proportionality, the corner cases, and that batch and order change no bit."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from kvcert.survey.inclusion import capped_probabilities, poisson_design, poisson_draw, tree_sum
from kvcert.survey.philox import uniforms

CONSTANTS = {"n_sink": 2, "n_recent": 3, "rho": 0.5, "epsilon": 1e-6}
SCORES = hnp.arrays("float64", st.integers(20, 60), elements=st.floats(0, 1e6, allow_subnormal=False))


@given(SCORES, st.data())
@settings(max_examples=150, deadline=None)
def test_root_bounds_and_order(z, data):
    z = torch.from_numpy(z)
    n = len(z)
    m = data.draw(st.integers(1, n - 1))
    pi = capped_probabilities(z, torch.ones(n, dtype=torch.bool), torch.tensor(float(m)), 1e-6)
    assert bool(((pi >= 0) & (pi <= 1)).all())
    assert float(pi.sum()) == pytest.approx(m, rel=1e-6, abs=n * 2e-6)
    order = z.argsort()
    assert bool((pi[order].diff() >= 0).all())


def test_proportional_below_the_cap():
    z = torch.tensor([1.0, 2.0, 3.0, 4.0, 1000.0], dtype=torch.float64)
    pi = capped_probabilities(z, torch.ones(5, dtype=torch.bool), torch.tensor(2.0), 1e-6)
    # 1000 is capped at 1; the others share the remaining 1 in proportion 1:2:3:4.
    assert torch.allclose(pi, torch.tensor([0.1, 0.2, 0.3, 0.4, 1.0], dtype=torch.float64), atol=1e-12)


def test_few_positive_scores_leave_a_uniform_remainder():
    z = torch.zeros(10, dtype=torch.float64)
    z[3] = 5.0
    pi = capped_probabilities(z, torch.ones(10, dtype=torch.bool), torch.tensor(4.0), 1e-6)
    assert float(pi[3]) == 1.0
    assert torch.allclose(pi[z == 0], torch.full((9,), 3 / 9, dtype=torch.float64))


def test_all_zero_scores_are_uniform():
    design = poisson_design(torch.zeros(50), 15, **CONSTANTS)
    # C0 = 5, top slice 5, m = 5 over a tail of 40.
    assert int(design.tail.sum()) == 40
    assert torch.allclose(design.pi[design.tail], torch.full((40,), 5 / 40, dtype=torch.float64), atol=2**-32)


def test_capacity_over_the_context_keeps_all():
    design = poisson_design(torch.rand(3, 12), 12, **CONSTANTS)
    assert bool((design.pi == 1).all())
    assert not bool(design.tail.any())
    assert bool((design.log_pi == 0).all())


def test_capacity_below_the_protected_tokens_is_refused():
    with pytest.raises(ValueError, match="protected"):
        poisson_design(torch.rand(50), 5, **CONSTANTS)


def test_expected_total_is_the_capacity():
    z = torch.rand(4, 3, 400, dtype=torch.float64) ** 8
    design = poisson_design(z, 100, **CONSTANTS)
    assert torch.allclose(design.pi.sum(-1), torch.full((4, 3), 100.0, dtype=torch.float64), atol=1e-5)
    assert torch.allclose(design.expected, design.pi.masked_fill(~design.tail, 0).sum(-1))


@given(st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_same_bits_in_any_batch(seed):
    z = torch.rand(6, 2, 97, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) ** 5
    whole = poisson_design(z, 30, **CONSTANTS)
    for row in (0, 3, 5):
        assert torch.equal(poisson_design(z[row], 30, **CONSTANTS).threshold, whole.threshold[row])
    assert torch.equal(poisson_design(z.flip(0), 30, **CONSTANTS).threshold, whole.threshold.flip(0))


def test_tree_sum_is_a_sum():
    x = torch.rand(5, 37, dtype=torch.float64)
    assert torch.allclose(tree_sum(x), x.sum(-1), rtol=1e-14)


def test_draws_of_one_example_are_nested_over_budgets():
    z = torch.rand(2, 2, 300, dtype=torch.float64) ** 4
    u = uniforms(1, 2, torch.arange(300), 2, 2, draw=0)
    kept = [poisson_draw(poisson_design(z, k, **CONSTANTS), u) for k in (40, 80, 160)]
    assert bool((kept[0] <= kept[1]).all())
    assert bool((kept[1] <= kept[2]).all())


def test_thresholds_are_the_true_probabilities():
    design = poisson_design(torch.rand(200, dtype=torch.float64) ** 9, 30, **CONSTANTS)
    below = torch.full_like(design.threshold, 2**32 - 1)
    assert torch.equal(poisson_draw(design, below), design.threshold == 2**32)
    assert bool(poisson_draw(design, design.threshold - 1).all())
    assert not bool(poisson_draw(design, design.threshold)[design.tail].any())
