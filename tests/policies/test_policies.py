"""Every policy: how many tokens it keeps, which, and what it declares."""

import pytest
import torch

from kvcert import policies
from kvcert.errors import KvcertError
from kvcert.survey.philox import uniforms

CONSTANTS = {"n_sink": 4, "n_recent": 8, "rho": 0.5, "epsilon": 1e-6}
N, K = 100, 40


@pytest.fixture
def drawn():
    z = torch.rand(3, 2, N, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return z, uniforms(1, 2, torch.arange(N), 3, 2, draw=0)


@pytest.mark.parametrize("name", ["topk", "random", "streaming"])
def test_fixed_size_policies_keep_exactly_the_capacity(name, drawn):
    found = policies.get(name).select(drawn[0], K, CONSTANTS, drawn[1])
    assert bool((found.keep.sum(-1) == K).all())
    assert bool(found.keep[..., :4].all())
    assert bool(found.keep[..., -8:].all())
    assert bool((found.log_pi == 0).all())


def test_topk_keeps_the_best(drawn):
    keep = policies.get("topk").select(drawn[0], K, CONSTANTS, drawn[1]).keep
    middle, z = keep[..., 4:-8], drawn[0][..., 4:-8]
    assert float(z[middle].min()) >= 0
    assert all(z[i, j][middle[i, j]].min() > z[i, j][~middle[i, j]].max() for i in range(3) for j in range(2))


def test_streaming_keeps_sinks_and_the_last(drawn):
    keep = policies.get("streaming").select(drawn[0], K, CONSTANTS, drawn[1]).keep
    assert bool(keep[..., N - (K - 4) :].all())


def test_poisson_keeps_the_capacity_on_average():
    z = torch.rand(1, 1, N, generator=torch.Generator().manual_seed(0), dtype=torch.float64).expand(
        1, 2000, N
    )
    u = uniforms(1, 2, torch.arange(N), 1, 2000, draw=0)
    found = policies.get("poisson").select(z, K, CONSTANTS, u)
    sizes = found.keep.sum(-1).double()
    assert abs(float(sizes.mean()) - K) < 4 * float(sizes.std()) / 2000**0.5
    frequency = found.keep[0].double().mean(0)
    pi = found.log_pi[0, 0].double().exp()
    assert bool(((frequency - pi).abs() < 5 * (pi * (1 - pi) / 2000).sqrt() + 1e-9).all())


def test_random_is_uniform_over_the_tail():
    z = torch.rand(1, 2000, N, dtype=torch.float64)
    keep = (
        policies.get("random").select(z, K, CONSTANTS, uniforms(3, 2, torch.arange(N), 1, 2000, draw=0)).keep
    )
    frequency = keep[0, :, 4:-8].double().mean(0)
    share = (K - 12) / (N - 12)
    assert bool(((frequency - share).abs() < 5 * (share * (1 - share) / 2000) ** 0.5).all())


def test_ties_go_to_the_earlier_token():
    keep = (
        policies.get("topk")
        .select(torch.ones(1, 1, N), K, CONSTANTS, torch.zeros(1, 1, N, dtype=torch.int64))
        .keep
    )
    assert keep[0, 0].nonzero().flatten().tolist() == list(range(4 + K - 12)) + list(range(N - 8, N))


@pytest.mark.parametrize(
    ("budget", "match"), [(0.0, "outside"), (1.5, "outside"), (-1, "outside"), (0.1, "protected")]
)
def test_bad_budgets(budget, match):
    with pytest.raises(KvcertError, match=match):
        policies.capacity_of(budget, N, CONSTANTS)


def test_capacity_rounds_half_up_and_short_contexts_are_identities():
    assert policies.capacity_of(0.125, 764, CONSTANTS) == 96  # 95.5
    assert policies.capacity_of(1.0, 9, CONSTANTS) == 9


def test_unknown_policy_lists_the_known():
    with pytest.raises(KvcertError, match=r"unknown policy 'nope'; known: .*topk"):
        policies.get("nope")


def test_mixture_ends_at_uniform_and_at_poisson(drawn):
    uniform = policies.get("uniform").select(drawn[0], K, CONSTANTS, drawn[1])
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            policies.get("mixture", {"lam": 1.0}).select(drawn[0], K, CONSTANTS, drawn[1]),
            uniform,
            strict=True,
        )
    )
    poisson = policies.get("poisson").select(drawn[0], K, CONSTANTS, drawn[1])
    nearly = policies.get("mixture", {"lam": 1e-6}).select(drawn[0], K, CONSTANTS, drawn[1])
    assert torch.allclose(nearly.log_pi, poisson.log_pi, atol=1e-3)
    assert torch.equal(nearly.keep, poisson.keep)
