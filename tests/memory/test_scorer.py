"""The window score of what is left: the plain score where nothing was evicted, and blind to what was."""

from __future__ import annotations

import torch

from kvcert.scorers import SCORERS, get
from kvcert.turns import SCORERS as MULTI_TURN

CONSTANTS = {"window": 6, "pooling": 5}
SCALE = 0.25


def made(n: int = 60):
    g = torch.Generator().manual_seed(0)
    return torch.randn(4, 9, 16, generator=g), torch.randn(2, n, 16, generator=g), g


def test_with_everything_alive_it_is_the_plain_score() -> None:
    queries, keys, _ = made()
    scorer = get("snapkv", CONSTANTS)
    whole, new = torch.ones(2, 60, dtype=torch.bool), torch.zeros(2, 60, dtype=torch.float64)
    assert torch.equal(
        scorer.thinned(queries, keys, new, whole, SCALE), scorer.score(0, queries, keys, 60, SCALE)
    )


def test_evicted_keys_leave_no_trace_and_have_no_score() -> None:
    queries, keys, g = made()
    scorer = get("snapkv", CONSTANTS)
    alive = torch.rand(2, 60, generator=g) < 0.5
    alive[:, -9:] = True
    log_pi = -torch.rand(2, 60, generator=g, dtype=torch.float64)
    z = scorer.thinned(queries, keys, log_pi, alive, SCALE)
    changed = torch.where(alive[..., None], keys, 1e4)
    assert torch.equal(scorer.thinned(queries, changed, log_pi.masked_fill(~alive, -9.0), alive, SCALE), z)
    assert bool((z[~alive] == 0).all())
    assert bool((z[alive] > 0).all())


def test_the_offset_is_the_hajek_weight() -> None:
    """One query, no pooling: p_i = (a_i / Pi_i) / sum over what is left."""
    queries, keys, g = made(12)
    scorer = get("snapkv", {"window": 1, "pooling": 1})
    alive = torch.rand(2, 12, generator=g) < 0.7
    alive[:, -1] = True
    log_pi = -torch.rand(2, 12, generator=g, dtype=torch.float64)
    z = scorer.thinned(queries, keys, log_pi, alive, SCALE)
    for group in range(2):
        logits = queries[2 * group : 2 * group + 2, -1].double() @ keys[group].double().T * SCALE
        w = torch.where(alive[group], (logits - log_pi[group]).exp(), 0.0)
        assert torch.allclose(z[group], (w / w.sum(-1, keepdim=True)).mean(0), atol=1e-6)


def test_the_list_of_scorers_is_the_truth() -> None:
    assert {name for name, scorer in SCORERS.items() if "thinned" in vars(scorer)} == set(MULTI_TURN)
