"""Scorers that see values or uses, against obvious loops."""

import pytest
import torch

from kvcert import scorers

CONSTANTS = {"window": 5, "pooling": 3}
H, K, N, S, D = 4, 2, 30, 36, 8


@pytest.fixture
def tensors():
    g = torch.Generator().manual_seed(0)
    return (
        torch.randn(H, S, D, generator=g),
        torch.randn(K, S, D, generator=g),
        torch.randn(K, S, D, generator=g),
    )


def test_last_used_is_the_last_strong_attention(tensors):
    q, k, _ = tensors
    scorer = scorers.get("last_used", CONSTANTS)
    scorer.block = 4
    for start, stop in ((0, 7), (7, 8), (8, S)):
        scorer.observe(0, q[:, start:stop], k[:, :stop], 0.4)
    last = [list(range(N)) for _ in range(K)]
    for head in range(K):
        for t in range(S):
            seen = [(k[head, : t + 1] @ q[h, t] * 0.4).softmax(-1) for h in (2 * head, 2 * head + 1)]
            mean = (seen[0] + seen[1]) / 2
            for i in range(min(t + 1, N)):
                if float(mean[i]) > 1 / (t + 1):
                    last[head][i] = t
    assert scorer.raw(0, q[:, -5:], k, N, 0.4).tolist() == last
    # Ordinal: the latest use ranks highest, among equals the later token.
    z = scorer.score(0, q[:, -5:], k, N, 0.4)
    assert z[0].argsort().tolist() == sorted(range(N), key=lambda i: (last[0][i], i))


def test_a_token_just_read_counts_as_used():
    q, k = torch.zeros(1, 6, 4), torch.zeros(1, 6, 4)  # even weights: nobody is above the mean
    scorer = scorers.get("last_used", CONSTANTS)
    scorer.observe(0, q, k, 1.0)
    assert scorer.raw(0, q, k, 6, 1.0).tolist() == [[0, 1, 2, 3, 4, 5]]


def test_value_norm_weighs_attention_by_the_value(tensors):
    q, k, v = tensors
    plain = scorers.get("snapkv", CONSTANTS).score(0, q[:, -5:], k, N, 0.4)
    found = scorers.get("value_norm", CONSTANTS)
    assert torch.allclose(found.score(0, q[:, -5:], k, N, 0.4, v), plain * v[:, :N].norm(dim=-1), rtol=1e-6)
    louder = v.clone()
    louder[:, 3] *= 100
    z = found.score(0, q[:, -5:], k, N, 0.4, louder)
    assert z.argmax(-1).tolist() == [3, 3]
    with pytest.raises(ValueError, match="needs the values"):
        found.score(0, q[:, -5:], k, N, 0.4)


@pytest.mark.parametrize("name", ["snapkv", "h2o", "key_norm", "last_used"])
def test_the_other_scorers_do_not_see_values(name, tensors):
    q, k, v = tensors
    scorer = scorers.get(name, CONSTANTS)
    scorer.observe(0, q, k, 0.4)
    assert torch.equal(scorer.score(0, q[:, -5:], k, N, 0.4, v), scorer.score(0, q[:, -5:], k, N, 0.4))
