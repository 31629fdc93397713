"""The defensive mixture: an independent float64 solution, its two ends, the exact size and the bound it is made for."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from kvcert.survey.inclusion import capped_probabilities, certainty_set, defensive_mixture, poisson_design

CONSTANTS = {"n_sink": 2, "n_recent": 3, "rho": 0.5, "epsilon": 1e-6}
SCORES = hnp.arrays("float64", st.integers(20, 60), elements=st.floats(0, 1e6, allow_subnormal=False))


def water_filling(g: np.ndarray, m: float) -> np.ndarray:
    """pi = min(1, c g) with sum m, without a bisection: cap the largest, share what is left, repeat."""
    order, pi = np.argsort(-g), np.empty_like(g)
    for capped in range(len(g) + 1):
        rest = order[capped:]
        c = (m - capped) / g[rest].sum() if len(rest) else 0.0
        if not len(rest) or c * g[rest[0]] <= 1:
            pi[order[:capped]], pi[rest] = 1.0, c * g[rest]
            return pi
    raise AssertionError("no number of capped tokens solves it")


@pytest.mark.parametrize("lam", [0.01, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("m", [1.0, 7.5, 30.0])
def test_equals_water_filling(lam, m):
    z = np.random.Generator(np.random.Philox(3)).random(60) ** 9
    tail = np.arange(60) % 6 != 0
    g = (1 - lam) * z[tail] / z[tail].sum() + lam / tail.sum()
    t = torch.from_numpy(tail)
    mixed = defensive_mixture(torch.from_numpy(z), t, lam)
    assert np.allclose(mixed[t].numpy(), g, rtol=1e-13)
    assert not bool(mixed[~t].any())
    pi = capped_probabilities(mixed, t, torch.tensor(m), 1e-9)
    assert np.allclose(pi[t].numpy(), water_filling(g, m), rtol=1e-11, atol=0)


@given(SCORES, st.floats(1e-6, 1.0), st.floats(0.01, 0.99))
@settings(max_examples=200, deadline=None)
def test_exact_size_and_the_bound(z, lam, share):
    """sum pi = m up to the floor's own mass; pi >= lam (m/|T| - eps), >= lam m/|T| where no probability is at the floor."""
    z, epsilon = torch.from_numpy(z), 1e-6
    n = len(z)
    m = share * n
    everything = torch.ones(n, dtype=torch.bool)
    mixed = defensive_mixture(z, everything, lam)
    assert float(mixed.sum()) == pytest.approx(1.0, rel=1e-12)
    pi = capped_probabilities(mixed, everything, torch.tensor(m, dtype=torch.float64), epsilon)
    assert float(pi.sum()) == pytest.approx(m, rel=1e-10)
    assert float(pi.min()) >= max(epsilon, lam * (m / n - epsilon)) * (1 - 1e-10)
    if lam * m / n >= (1 + lam) * epsilon:
        assert float(pi.min()) > epsilon
        assert float(pi.min()) >= lam * m / n * (1 - 1e-10)
        # Any weights a: a / pi <= a |T| / (lam m) below the cap, = a at it.
        a = torch.linspace(1.0, 2.0, n, dtype=torch.float64)
        assert bool((a / pi <= torch.where(pi < 1, a * n / (lam * m), a) * (1 + 1e-10)).all())


@given(SCORES)
@settings(max_examples=60, deadline=None)
def test_lam_one_is_the_uniform_tail(z):
    capacity = 5 + len(z) // 3
    design = poisson_design(torch.from_numpy(z), capacity, **CONSTANTS, lam=1.0)
    size = int(design.tail.sum())
    m = capacity - (len(z) - size)
    assert torch.allclose(design.pi[design.tail], torch.tensor(m / size).double(), atol=2**-31)
    # Uniform only over the tail: the certainty set is that of the score.
    assert torch.equal(~design.tail, certainty_set(torch.from_numpy(z), capacity, 2, 3, 0.5))


def test_lam_to_zero_is_the_registered_design():
    z = torch.rand(4, 3, 300, generator=torch.Generator().manual_seed(1), dtype=torch.float64) ** 7
    z[0, 0, 40:] = 0.0  # few positive scores: these for certain, the rest uniform, in the limit too
    z[0, 1] = 0.0
    plain = poisson_design(z, 90, **CONSTANTS)
    gaps = [
        float((poisson_design(z, 90, **CONSTANTS, lam=lam).pi - plain.pi).abs().max())
        for lam in (1e-3, 1e-6, 1e-9)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-6


def test_same_bits_in_any_batch():
    z = torch.rand(6, 97, generator=torch.Generator().manual_seed(2), dtype=torch.float64) ** 5
    whole = poisson_design(z, 30, **CONSTANTS, lam=0.3)
    for row in range(6):
        assert torch.equal(poisson_design(z[row], 30, **CONSTANTS, lam=0.3).threshold, whole.threshold[row])


def test_huge_and_tiny_scores():
    z = torch.full((50,), 1e300, dtype=torch.float64)
    z[::2] = 1e-300
    design = poisson_design(z, 20, **CONSTANTS, lam=0.2)
    assert float(design.pi.sum()) == pytest.approx(20, abs=1e-6)
    m, size = float(design.expected.max()), int(design.tail.sum())
    assert float(design.pi.min()) >= 0.2 * m / size - 2**-31
