"""Scorers against obvious loops."""

import pytest
import torch

from kvcert import scorers
from kvcert.errors import KvcertError

CONSTANTS = {"window": 5, "pooling": 3}
H, K, N, S, D = 4, 2, 30, 36, 8


@pytest.fixture
def attention():
    g = torch.Generator().manual_seed(0)
    q, k = torch.randn(H, S, D, generator=g), torch.randn(K, S, D, generator=g)
    probabilities = torch.zeros(H, S, S)
    for h in range(H):
        for t in range(S):
            probabilities[h, t, : t + 1] = (k[h // 2, : t + 1] @ q[h, t] * 0.4).softmax(-1)
    return q, k, probabilities


def test_snapkv_is_pooled_window_attention(attention):
    q, k, probabilities = attention
    z = scorers.get("snapkv", CONSTANTS).score(0, q[:, -5:], k, N, 0.4)
    mean = probabilities[:, -5:, :N].view(K, 2, 5, N).mean((1, 2))
    padded = torch.nn.functional.pad(mean, (1, 1))
    expected = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
    assert torch.allclose(z, expected.double(), atol=1e-6)


def test_h2o_accumulates_over_chunks(attention):
    q, k, probabilities = attention
    scorer = scorers.get("h2o", CONSTANTS)
    for start, stop in ((0, 7), (7, 8), (8, S)):
        scorer.observe(0, q[:, start:stop], k[:, :stop], 0.4)
    expected = probabilities.view(K, 2, S, S).mean(1).sum(1)[:, :N]
    assert torch.allclose(scorer.score(0, q[:, -5:], k, N, 0.4), expected.double(), atol=1e-5)


def test_key_norm_is_ordinal(attention):
    q, k, _ = attention
    z = scorers.get("key_norm", CONSTANTS).score(0, q, k, N, 0.4)
    assert torch.allclose(z.sort(dim=-1).values, ((torch.arange(N) + 0.5) / N).double().expand(K, N))
    smallest = k[:, :N].norm(dim=-1).argmin(-1)
    assert torch.equal(z.argmax(-1), smallest)


@pytest.mark.parametrize("name", sorted(scorers.SCORERS))
def test_scores_are_finite_and_non_negative(name, attention):
    q, k, _ = attention
    k = k.clone()
    k[0, 3] = float("nan")
    scorer = scorers.get(name, CONSTANTS)
    scorer.observe(0, q, k, 0.4)
    z = scorer.score(0, q[:, -5:], k, N, 0.4, k)
    assert z.dtype == torch.float64
    assert z.shape == (K, N)
    assert bool(torch.isfinite(z).all())
    assert float(z.min()) >= 0


def test_unknown_scorer():
    with pytest.raises(KvcertError, match="unknown scorer"):
        scorers.get("nope", CONSTANTS)
