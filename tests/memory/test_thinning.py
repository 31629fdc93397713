"""Two and more stages: exact by enumeration where the second design depends on the first draw, Monte Carlo at size."""

from __future__ import annotations

import itertools

import pytest
import torch

from kvcert.survey.inclusion import TWO32, Design, poisson_design
from kvcert.survey.linearised import single_sum_estimate, softmax_mean
from kvcert.survey.philox import uniforms
from kvcert.survey.thinning import thin

D64 = torch.float64
NEVER = 2**32


def fixed(pi: torch.Tensor) -> Design:
    """A design with given probabilities, rounded down to multiples of 2**-32."""
    threshold = (pi * TWO32).floor().to(torch.int64)
    tail = threshold < NEVER
    return Design(threshold, tail, torch.where(tail, threshold.double(), 0.0).sum(-1) / TWO32)


def patterns(alive: torch.Tensor) -> torch.Tensor:
    """Uniforms that keep each subset of the tokens that are alive: 0 keeps, 2**32 never does."""
    choices = [(0, NEVER) if there else (NEVER,) for there in alive.tolist()]
    return torch.tensor(list(itertools.product(*choices)))


def outcomes(z: torch.Tensor, first: torch.Tensor, capacity: int):
    """Every (probability, Thinned, entered certainty late) of two stages whose second design depends on the first draw."""
    n, whole = len(z), torch.ones(len(z), dtype=torch.bool)
    design = fixed(first)
    for u in patterns(whole):
        one = thin(design, torch.zeros(n, dtype=D64), whole, u, 1e-6)
        p1 = float(torch.where(one.keep, design.pi, 1 - design.pi).prod())
        if p1 == 0:
            continue
        # The second score looks at the first sample: what is left is weighed by a / Pi.
        score = torch.where(one.keep, z / one.log_pi.exp(), 0.0)
        second = poisson_design(score, capacity, n_sink=0, n_recent=0, rho=0.5, epsilon=1e-6, alive=one.keep)
        for v in patterns(one.keep):
            two = thin(second, one.log_pi, one.keep, v, 1e-6)
            p2 = float(torch.where(one.keep, torch.where(two.keep, second.pi, 1 - second.pi), 1.0).prod())
            if p2 > 0:
                yield p1 * p2, two, one.keep & (second.threshold == NEVER)


def population(n: int):
    g = torch.Generator().manual_seed(n)
    a = torch.randn(n, generator=g, dtype=D64).exp()
    first = 0.3 + 0.6 * torch.rand(n, generator=g, dtype=D64)
    first[0] = 1.0
    return a, first, torch.randn(n, 3, generator=g, dtype=D64)


@pytest.mark.parametrize("n", [4, 6])
def test_two_adaptive_stages_are_exact(n: int) -> None:
    """Totals, and V_hat with the true centre and normaliser, although the second design depends on the first draw."""
    a, first, values = population(n)
    o, whole = softmax_mean(a, values), a.sum()
    total, vector, variance, estimate, without, mass = 0.0, torch.zeros(3, dtype=D64), 0.0, 0.0, 0.0, 0.0
    for p, two, late in outcomes(a, first, 3):
        pi = two.log_pi.exp()
        w = torch.where(two.keep, a / pi, 0.0)
        mass += p
        total += p * float(w.sum())
        vector += p * (w @ values)
        variance += p * float((w / whole @ (values - o)).square().sum())
        estimate += p * float(single_sum_estimate(a, pi, values, two.keep, o, whole))
        without += p * float(single_sum_estimate(a, pi, values, two.keep & ~late, o, whole))
    assert mass == pytest.approx(1, abs=1e-12)
    assert total == pytest.approx(float(whole), rel=1e-10)
    assert torch.allclose(vector, a @ values, rtol=1e-10)
    assert estimate == pytest.approx(variance, rel=1e-10)
    # Leaving out what entered the certainty set at the second stage would understate it.
    assert without < 0.9 * variance


def test_totals_at_size_and_the_reused_uniform() -> None:
    """3 Monte Carlo standard errors over 2,000 draws; one uniform at both stages doubles a total at pi = 1/2."""
    n, draws = 300, 2000
    a = torch.randn(n, generator=torch.Generator().manual_seed(1), dtype=D64).exp()
    half = fixed(torch.full((draws, 1, n), 0.5, dtype=D64))
    new, all_alive = torch.zeros(draws, 1, n, dtype=D64), torch.ones(draws, 1, n, dtype=torch.bool)
    u = [uniforms(7, 99, torch.arange(n), draws, 1, 0, stage) for stage in (0, 1)]
    one = thin(half, new, all_alive, u[0], 1e-6)

    def totals(second: torch.Tensor, design: Design) -> torch.Tensor:
        two = thin(design, one.log_pi, one.keep, second, 1e-6)
        return torch.where(two.keep, a / two.log_pi.exp(), 0.0).sum(-1)[:, 0]

    truth = float(a.sum())
    fresh, reused = totals(u[1], half), totals(u[0], half)
    assert abs(float(fresh.mean()) - truth) < 3 * float(fresh.std()) / draws**0.5
    assert float(reused.mean()) == pytest.approx(2 * truth, rel=0.02)
    # The project's own second design, given the first draw.
    score = torch.where(one.keep, a * 2, 0.0)
    own = poisson_design(score, 90, n_sink=4, n_recent=16, rho=0.5, epsilon=1e-6, alive=one.keep)
    adaptive = totals(u[1], own)
    assert abs(float(adaptive.mean()) - truth) < 3 * float(adaptive.std()) / draws**0.5
    two = thin(own, one.log_pi, one.keep, u[1], 1e-6)
    realised = (two.keep & (two.log_pi < 0)).sum(-1).double()
    assert (
        abs(float((realised - two.expected).mean())) < 3 * float((realised - two.expected).std()) / draws**0.5
    )


def test_without_dead_tokens_nothing_changes_by_a_bit() -> None:
    z = torch.rand(5, 2, 211, generator=torch.Generator().manual_seed(3), dtype=D64) ** 6
    options = {"n_sink": 4, "n_recent": 16, "rho": 0.5, "epsilon": 1e-6}
    for capacity in (40, 100, 211):
        plain = poisson_design(z, capacity, **options)
        masked = poisson_design(z, capacity, alive=torch.ones_like(z, dtype=torch.bool), **options)
        assert all(torch.equal(x, y) for x, y in zip(plain, masked, strict=True))
        stage = thin(
            plain, torch.zeros_like(z), torch.ones_like(z, dtype=torch.bool), plain.threshold - 1, 1e-6
        )
        assert torch.equal(stage.log_pi.float(), plain.log_pi)
        assert torch.equal(stage.expected, plain.expected)
        assert bool(stage.keep.all())


def test_dead_tokens_are_no_candidates() -> None:
    g = torch.Generator().manual_seed(4)
    z = torch.rand(3, 2, 200, generator=g, dtype=D64)
    alive = torch.rand(3, 2, 200, generator=g) < 0.6
    alive[..., :4] = alive[..., -16:] = True
    design = poisson_design(z, 70, n_sink=4, n_recent=16, rho=0.5, epsilon=1e-6, alive=alive)
    assert bool((design.threshold[~alive] == 0).all())
    assert not bool((design.tail & ~alive).any())
    assert torch.allclose(design.pi.sum(-1), torch.tensor(70.0, dtype=D64), atol=1e-5)
    # Scores of the dead do not matter.
    other = poisson_design(
        torch.where(alive, z, 1e9), 70, n_sink=4, n_recent=16, rho=0.5, epsilon=1e-6, alive=alive
    )
    assert torch.equal(design.threshold, other.threshold)
    # Fewer are left than the capacity allows: all stay.
    kept = poisson_design(z, 190, n_sink=4, n_recent=16, rho=0.5, epsilon=1e-6, alive=alive)
    assert torch.equal(kept.threshold == NEVER, alive)


def test_the_cumulative_probability_never_falls_below_the_floor() -> None:
    """Eight stages over scores of twelve orders of magnitude; whoever is drawn stays above, and Pi only falls."""
    g, epsilon = torch.Generator().manual_seed(5), 1e-3
    n = 400
    z = 10 ** (-12 * torch.rand(4, 3, n, generator=g, dtype=D64))
    alive, log_pi = torch.ones(4, 3, n, dtype=torch.bool), torch.zeros(4, 3, n, dtype=D64)
    least = int(epsilon * TWO32) / TWO32
    floored = 0
    for stage in range(8):
        design = poisson_design(
            z, 200 - 20 * stage, n_sink=2, n_recent=4, rho=0.2, epsilon=epsilon, alive=alive
        )
        u = torch.randint(0, NEVER, (4, 3, n), generator=g)
        # Let the improbable through at every other stage, so that small products come about.
        found = thin(design, log_pi, alive, u // 4096 if stage % 2 == 0 else u, epsilon)
        assert bool((found.log_pi <= log_pi).all())
        assert bool((found.log_pi.exp() >= least * (1 - 1e-12)).all())
        assert torch.equal(found.log_pi[~alive], log_pi[~alive])
        floored += int((found.log_pi.exp() < least * 1.001).sum())
        alive, log_pi = found.keep, found.log_pi
    assert floored > 0
