"""The baselines: head budgets, the uncorrected draw, least recently used; and that the registered rows stay as they were."""

import hashlib

import pytest
import torch

from kvcert import policies
from kvcert.policies.topk import TopK
from kvcert.survey.philox import uniforms

CONSTANTS = {"n_sink": 4, "n_recent": 8, "rho": 0.5, "epsilon": 1e-6}
N, K = 100, 40


@pytest.fixture
def drawn():
    z = torch.rand(3, 2, N, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return z, uniforms(1, 2, torch.arange(N), 3, 2, draw=0)


def adakv(z, safeguard, capacity=K):
    return policies.get("adakv", {"safeguard": safeguard}).select(z, capacity, CONSTANTS, torch.zeros(0)).keep


@pytest.mark.parametrize("safeguard", [0.0, 0.2, 0.7])
def test_adakv_pools_a_layer_and_keeps_every_head_safe(safeguard):
    z = torch.rand(3, 4, N, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    z[:, 0] *= 1000  # one head outbids the others
    keep = adakv(z, safeguard)
    assert keep.sum((1, 2)).tolist() == [4 * K] * 3
    assert bool(keep[..., :4].all())
    assert bool(keep[..., -8:].all())
    least = 12 + int(safeguard * (K - 12))
    assert int(keep.sum(-1).min()) >= least
    assert bool((keep[:, 0].sum(-1) > K).all())
    # Obvious loop: the safe tokens of every head, then the best of the layer.
    for layer in range(3):
        safe = set()
        for head in range(4):
            ranked = sorted(range(4, N - 8), key=lambda i: (-float(z[layer, head, i]), i))
            safe |= {(head, i) for i in [*range(4), *range(N - 8, N), *ranked[: least - 12]]}
        rest = [(head, i) for head in range(4) for i in range(N) if (head, i) not in safe]
        rest.sort(key=lambda unit: -float(z[layer, unit[0], unit[1]]))
        expected = safe | set(rest[: 4 * K - len(safe)])
        assert {tuple(unit) for unit in keep[layer].nonzero().tolist()} == expected


def test_adakv_with_everything_safe_is_topk(drawn):
    assert torch.equal(
        adakv(drawn[0], 1.0), policies.get("topk").select(drawn[0], K, CONSTANTS, drawn[1]).keep
    )


def test_adakv_ties_and_whole_contexts():
    ones = torch.ones(1, 2, N)
    assert adakv(ones, 0.0).sum(-1).tolist() == [[2 * K - 12, 12]]  # the earlier head first
    assert bool(adakv(ones, 0.2, capacity=N).all())


def test_uncorrected_is_the_same_draw_without_the_offset(drawn):
    found = policies.get("uncorrected").select(drawn[0], K, CONSTANTS, drawn[1])
    poisson = policies.get("poisson").select(drawn[0], K, CONSTANTS, drawn[1])
    assert torch.equal(found.keep, poisson.keep)
    assert bool((poisson.log_pi < 0).any())
    assert not bool(found.log_pi.any())
    assert not bool(found.expected.any())


def test_lru_is_topk_on_its_own_score(drawn):
    assert issubclass(type(policies.get("lru")), TopK)
    found = policies.get("lru").select(drawn[0], K, CONSTANTS, drawn[1])
    assert torch.equal(found.keep, policies.get("topk").select(drawn[0], K, CONSTANTS, drawn[1]).keep)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("topk", "b131d6db537c0c0f9a0e65e8ba49a0a70db4f19d23a90f04f56be013e8ca3015"),
        ("poisson", "fdbef060adf0cb8c1afc392a2b3701457d11e761185e1769057e5e8a3cc448ba"),
    ],
)
def test_the_registered_policies_select_what_they_always_did(name, digest):
    """Hashes of selections made by the code that measured the registered run (before there were other policies)."""
    constants = {"n_sink": 4, "n_recent": 32, "rho": 0.5, "epsilon": 1e-6}
    z = uniforms(11, 5, torch.arange(400), 3, 2, draw=9).double() / 2**32
    z = z * z
    z = z * z
    z[0, 0] = 0
    z[1, 1, 60:] = 0
    u32 = uniforms(2607, 7, torch.arange(400), 3, 2, draw=0)
    found = hashlib.sha256()
    for capacity in (50, 100, 200, 400):
        found.update(policies.get(name).select(z, capacity, constants, u32).keep.numpy().tobytes())
    assert found.hexdigest() == digest
