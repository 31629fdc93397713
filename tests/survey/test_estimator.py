"""Exactness by enumeration of every sample, Monte Carlo where only asymptotics hold, and the certificate's blind spots."""

import itertools
import math

import pytest
import torch

from kvcert.survey.hajek import bernstein_radius, hajek_certificate
from kvcert.survey.linearised import linearised_variance, single_sum_estimate, softmax_mean
from kvcert.survey.thinning import compose

D64 = torch.float64


def population(n, seed, d=3):
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, generator=g, dtype=D64)
    pi = 0.1 + 0.85 * torch.rand(n, generator=g, dtype=D64)
    pi[0] = 1.0
    return logits, pi, torch.randn(n, d, generator=g, dtype=D64)


def every_sample(pi):
    """All 2**n inclusion patterns [2**n, n] and their probabilities [2**n]."""
    kept = torch.tensor(list(itertools.product([False, True], repeat=len(pi))))
    return kept, torch.where(kept, pi, 1 - pi).prod(-1)


@pytest.mark.parametrize("n", [2, 5, 10])
def test_horvitz_thompson_totals_are_exact(n):
    logits, pi, values = population(n, n)
    a = logits.exp()
    kept, probability = every_sample(pi)
    assert float(probability.sum()) == pytest.approx(1, abs=1e-12)
    weight = torch.where(kept, a / pi, 0.0)
    assert float(probability @ weight.sum(-1)) == pytest.approx(float(a.sum()), rel=1e-12)
    assert torch.allclose(probability @ (weight @ values), a @ values, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 10])
def test_variance_estimator_is_exact_with_true_centre_and_normaliser(n):
    logits, pi, values = population(n, 100 + n)
    a = logits.exp()
    kept, probability = every_sample(pi)
    o, total = softmax_mean(a, values), a.sum()
    estimate = single_sum_estimate(a, pi, values, kept, o, total.expand(len(kept)))
    exact = linearised_variance(a, pi, values)
    assert float(probability @ estimate) == pytest.approx(float(exact), rel=1e-12)
    # The same number as the variance of the linearised error over all samples.
    error = torch.where(kept, a / pi, 0.0) / total @ (values - o)
    assert float(probability @ error.square().sum(-1)) == pytest.approx(float(exact), rel=1e-12)


def test_plug_in_equals_the_certificate():
    logits, pi, values = population(40, 1)
    kept = torch.rand(40, generator=torch.Generator().manual_seed(5)) < pi
    found = hajek_certificate(logits[kept], pi[kept].log(), values[kept])
    weight = logits.exp() / pi
    normaliser = weight[kept].sum()
    assert torch.allclose(found.out, softmax_mean(weight[kept], values[kept]))
    plug_in = single_sum_estimate(logits.exp(), pi, values, kept, found.out, normaliser)
    assert float(found.variance) == pytest.approx(float(plug_in), rel=1e-10)


def test_hajek_by_monte_carlo():
    logits, _, values = population(400, 2)
    pi = (0.15 + 0.5 * torch.rand(400, generator=torch.Generator().manual_seed(3), dtype=D64)).clamp_max(1)
    kept = torch.rand(4000, 400, generator=torch.Generator().manual_seed(4)) < pi
    found = hajek_certificate(
        logits.expand(4000, -1).masked_fill(~kept, -math.inf), pi.log(), values.expand(4000, -1, -1)
    )
    error = found.out - softmax_mean(logits.exp(), values)
    squared = error.square().sum(-1)
    standard = squared.std() / 4000**0.5
    assert abs(float(squared.mean() - linearised_variance(logits.exp(), pi, values))) < 0.1 * float(
        squared.mean()
    ) + 4 * float(standard)
    # The plug-in V_hat is biased low, by a known order; the Bernstein radius covers.
    assert 0.8 < float(found.variance.mean() / squared.mean()) < 1.02
    assert float((squared.sqrt() <= found.radius).double().mean()) > 0.95


def test_pi_one_is_plain_softmax_with_no_variance():
    logits, _, values = population(30, 9)
    found = hajek_certificate(logits, torch.zeros(30, dtype=D64), values)
    assert torch.allclose(found.out, logits.softmax(-1) @ values)
    assert float(found.variance) == float(found.radius) == float(found.bound) == float(found.guarded) == 0


def test_bernstein_radius_by_hand():
    # V = 0: r = 2 B L / 3; B = 0: r = sqrt(2 V L).
    log_term = math.log(40)
    zero, one = torch.zeros((), dtype=D64), torch.ones((), dtype=D64)
    assert float(bernstein_radius(zero, one, 0.05)) == pytest.approx(2 * log_term / 3)
    assert float(bernstein_radius(one, zero, 0.05)) == pytest.approx(math.sqrt(2 * log_term))


def test_bound_covers_the_exact_range():
    logits, pi, values = population(60, 11)
    centre = values.mean(0)
    found = hajek_certificate(logits, pi.log(), values, centre)
    p = (logits - pi.log()).softmax(-1)
    exact = (p * (values - found.out).norm(dim=-1))[pi < 1].max()
    assert float(found.bound) >= float(exact)


def test_self_masking_is_seen_by_the_guarded_radius_only():
    """A heavy token drawn at a low probability: p -> 1, the plain radius collapses, the guarded one covers."""
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(50, generator=g, dtype=D64) * 0.1
    logits[0] = 3.0
    values = torch.randn(50, 8, generator=g, dtype=D64)
    values[0] += 5.0
    pi = torch.ones(50, dtype=D64)
    pi[0] = 1e-4
    # The centre is the mean of the retained tail: here the heavy token alone.
    found = hajek_certificate(logits, pi.log(), values, values[0])
    error = float((found.out - softmax_mean(logits.exp(), values)).norm())
    assert float(found.p_max) > 0.99
    assert float(found.ess) < 1.02
    assert error > 10 * float(found.radius)
    assert error < float(found.guarded)


def test_a_missed_token_leaves_no_trace():
    """Theorem 1 in small: change the evicted values and nothing that is retained moves, while the error grows."""
    logits, pi, values = population(30, 5)
    kept = torch.ones(30, dtype=torch.bool)
    kept[7] = False
    changed = values.clone()
    changed[7] *= 1000
    before = hajek_certificate(logits[kept], pi[kept].log(), values[kept])
    after = hajek_certificate(logits[kept], pi[kept].log(), changed[kept])
    assert all(torch.equal(x, y) for x, y in zip(before, after, strict=True))
    error = [(before.out - softmax_mean(logits.exp(), v)).norm() for v in (values, changed)]
    assert error[1] > 100 * error[0]


def test_two_stage_thinning_by_enumeration():
    """Totals and the (1 - Pi) / Pi**2 terms stay unbiased when the stages multiply."""
    logits, pi, values = population(4, 8)
    a = logits.exp()
    second = torch.tensor([0.4, 0.9, 0.5, 0.7], dtype=D64)
    log_pi, used = compose(pi.log(), second, 1e-6)
    assert torch.allclose(log_pi.exp(), pi * second)
    assert torch.allclose(used, second)
    kept1, probability1 = every_sample(pi)
    kept2, probability2 = every_sample(second)
    kept = (kept1[:, None] & kept2).reshape(-1, 4)
    probability = (probability1[:, None] * probability2).reshape(-1)
    cumulative = log_pi.exp()
    assert float(probability @ torch.where(kept, a / cumulative, 0.0).sum(-1)) == pytest.approx(
        float(a.sum()), rel=1e-12
    )
    o, total = softmax_mean(a, values), a.sum()
    estimate = single_sum_estimate(a, cumulative, values, kept, o, total.expand(len(kept)))
    assert float(probability @ estimate) == pytest.approx(
        float(linearised_variance(a, cumulative, values)), rel=1e-12
    )


def test_the_floor_holds_for_the_cumulative_probability():
    log_pi = torch.tensor([1e-4, 1.0, 1e-6], dtype=D64).log()
    composed, used = compose(log_pi, torch.tensor([1e-4, 1e-4, 0.5], dtype=D64), 1e-6)
    assert torch.allclose(composed.exp(), torch.tensor([1e-6, 1e-4, 1e-6], dtype=D64))
    assert torch.allclose(used, torch.tensor([1e-2, 1e-4, 1.0], dtype=D64))
