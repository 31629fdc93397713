"""A history compressed at every turn, on a tiny model: one turn is the plain streaming run, and no row sees what is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.cache.test_exactness import CONSTANTS, loaded, prompt, spec
from tests.conftest import make_tiny_model

from kvcert.cache.thinned import Shadow
from kvcert.errors import KvcertError
from kvcert.policies import POLICIES
from kvcert.prompts import Prompt
from kvcert.runner.episode import run_episode, thin_row
from kvcert.runner.example import ExampleRuns, Row, prefill, run_example
from kvcert.runner.history import History
from kvcert.turns import POLICIES as MULTI_TURN
from kvcert.turns import check_row

TURNS = (40, 80, 120)


@pytest.fixture(scope="module")
def model():
    return loaded(make_tiny_model("llama", attn="kvcert"))


def staged(*stages: int) -> Prompt:
    p = prompt(stages[-1] + 8, 8)
    return replace(p, stages=stages)


def given(**changes: Any) -> dict[str, Any]:
    return spec(task={"name": "agent_memory"}, **changes)


def by_key(found: ExampleRuns) -> dict[str, Row]:
    return {f"{row.setting} {sorted(row.spec.items())}": row for row in found.rows}


def same(one: Row, other: Row) -> None:
    """Bit for bit: selection, tokens, log-probabilities, and everything the panel measured."""
    assert all(torch.equal(x, y) for x, y in zip(one.selection, other.selection, strict=True))
    assert (one.capacity, one.evicted_mass) == (other.capacity, other.evicted_mass)
    for a, b in ((one.free, other.free), (one.forced, other.forced)):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert (a.tokens, a.logp, a.entropy) == (b.tokens, b.logp, b.entropy)
            assert repr(a.figures) == repr(b.figures)  # NaN where nothing was evicted
            assert len(a.heads) == len(b.heads)
            for left, right in zip(a.heads, b.heads, strict=True):
                assert all((left[name] == right[name]).all() for name in left)


@torch.inference_mode()
def test_one_turn_is_the_streaming_run_bit_for_bit(model):
    p = staged(64)
    plain = replace(p, stages=())
    found = run_episode(given(), model, p)
    for row in (row for row in found.rows if row.setting == "streaming"):
        alone = run_example(given(rows=[spec()["rows"][0], row.spec], settings=["streaming"]), model, plain)
        assert alone.full.tokens == found.full.tokens
        same(row, alone.rows[0])
    aware = run_example(given(settings=["aware"]), model, plain)
    expected = by_key(aware)
    for key, row in by_key(found).items():
        if key.startswith("aware"):
            same(row, expected[key])


@torch.inference_mode()
def test_everything_kept_is_the_full_cache(model):
    rows = [{"policy": p, "budget": 1.0, "draw": 0, "scorer": "snapkv"} for p in ("full", "topk", "poisson")]
    found = run_episode(given(rows=rows, settings=["streaming"]), model, staged(*TURNS))
    assert len(found.rows) == 2
    for row in found.rows:
        assert row.free is not None
        assert row.free.tokens == found.full.tokens
        assert torch.allclose(torch.tensor(row.free.logp), torch.tensor(found.full.logp), atol=1e-5)
        assert bool(row.selection.keep.all())
        assert row.evicted_mass == 0
        for head in row.free.heads:
            assert (head["variance"] == 0).all()
            assert head["error"].max() < 1e-5


@torch.inference_mode()
def test_what_a_thinned_row_holds(model):
    found = run_episode(given(settings=["streaming"]), model, staged(*TURNS))
    assert {row.spec["policy"] for row in found.rows} == set(MULTI_TURN) - {"full"}
    assert set(MULTI_TURN) <= set(POLICIES)
    for row in found.rows:
        keep, log_pi = row.selection.keep, row.selection.log_pi
        assert row.capacity == int(row.spec["budget"] * TURNS[-1] + 0.5)
        assert bool(keep[..., : int(CONSTANTS["n_sink"])].all())
        assert bool(keep[..., -int(CONSTANTS["n_recent"]) :].all())
        assert row.free is not None
        assert all(error > 0 for error in row.free.figures["error"])
        if not row.certified:
            assert bool((keep.sum(-1) == row.capacity).all())
            assert not bool(log_pi.any())
            continue
        assert row.forced is not None
        assert row.forced.tokens == found.full.tokens
        assert bool((log_pi.exp() >= 0.999 * CONSTANTS["epsilon"]).all())
        # What was dropped was sampled at some stage.
        assert bool((log_pi[~keep] < 0).all())
        assert abs(float(keep.sum(-1).double().mean()) - row.capacity) < 0.25 * row.capacity
        assert all(value > 0 for value in row.free.figures["certificate"])


@torch.inference_mode()
def test_same_draw_in_any_order_and_alone(model):
    p = staged(*TURNS)
    rows = spec()["rows"]
    together = by_key(run_episode(given(), model, p))
    turned = by_key(run_episode(given(rows=rows[::-1], settings=["streaming", "aware"]), model, p))
    assert together.keys() == turned.keys()
    for key, row in together.items():
        assert torch.equal(row.selection.keep, turned[key].selection.keep)
        if row.setting == "streaming":
            same(row, turned[key])
    sampled = next(row for row in together.values() if row.setting == "streaming" and row.certified)
    alone = run_episode(given(rows=[rows[0], sampled.spec], settings=["streaming"]), model, p).rows[0]
    same(sampled, alone)


@torch.inference_mode()
def test_what_is_gone_leaves_no_trace_in_later_turns(model, monkeypatch):
    """Keys and values are overwritten the moment they are evicted: the same tokens stay, with the same probabilities."""
    p, study = staged(*TURNS), given(settings=["streaming"])
    row = {"policy": "poisson", "budget": 0.25, "draw": 0, "scorer": "snapkv"}
    cache, scores, ids = prefill(study, model, p, "sdpa")

    def selection(shadow: Shadow):
        return thin_row(study, model, p, ids, shadow, row, scores["streaming"]["snapkv"], "torch").selection

    before = selection(Shadow(cache, TURNS[0], TURNS[-1]))
    poisoned = Shadow(cache, TURNS[0], TURNS[-1])
    compress = History.compress

    def and_poison(self, z, capacity, u32):
        chosen = compress(self, z, capacity, u32)
        for layer, gone in enumerate(~chosen.keep):
            for tensors in (poisoned.keys, poisoned.values):
                tensors[layer][0, :, : gone.shape[-1]][gone] = 1e4
        return chosen

    monkeypatch.setattr(History, "compress", and_poison)
    after = selection(poisoned)
    assert all(torch.equal(x, y) for x, y in zip(before, after, strict=True))
    assert float(poisoned.keys[0].max()) == 1e4


@torch.inference_mode()
def test_the_shadow_is_the_rows_own(model):
    """The first turn is shared; later ones are read on the compressed cache and differ from the second layer on."""
    p, study = staged(*TURNS), given(settings=["streaming"])
    row = {"policy": "topk", "budget": 0.25, "draw": 0, "scorer": "snapkv"}
    cache, scores, ids = prefill(study, model, p, "sdpa")
    shadow = Shadow(cache, TURNS[0], TURNS[-1])
    thin_row(study, model, p, ids, shadow, row, scores["streaming"]["snapkv"], "torch")
    assert shadow.end == TURNS[-1]
    first, later = slice(0, TURNS[0]), slice(TURNS[0], TURNS[-1])
    assert torch.equal(shadow.keys[1][:, :, first], cache.keys[1][:, :, first])
    assert torch.allclose(shadow.values[0][:, :, later], cache.values[0][:, :, later], atol=1e-6)
    assert not torch.allclose(shadow.values[1][:, :, later], cache.values[1][:, :, later], atol=1e-3)


@torch.inference_mode()
def test_a_staged_prompt_is_not_taken_for_a_plain_one(model):
    with pytest.raises(ValueError, match="run_episode"):
        run_example(given(), model, staged(*TURNS))


def test_rows_that_cannot_be_thinned_are_refused() -> None:
    with pytest.raises(
        KvcertError, match=r"^config: study.rows\[3\].policy: agent_memory compresses .* mixture"
    ):
        check_row("config: study.rows[3]", "agent_memory", {"policy": "mixture"}, "snapkv")
    with pytest.raises(KvcertError, match=r"rows\[1\].scorer: .*scorer h2o does not support; use snapkv$"):
        check_row("config: study.rows[1]", "agent_memory", {"policy": "topk", "scorer": "h2o"}, "snapkv")
    with pytest.raises(KvcertError, match="scorer key_norm"):
        check_row("config: study.rows[1]", "agent_memory", {"policy": "random"}, "key_norm")
    for policy in MULTI_TURN:
        check_row("config: study.rows[0]", "agent_memory", {"policy": policy}, "snapkv")


@torch.inference_mode()
def test_a_policy_that_takes_back_what_is_gone_is_caught(model, monkeypatch):
    monkeypatch.setattr(
        POLICIES["streaming"], "select", lambda self, z, *rest: POLICIES["full"]().select(z, *rest)
    )
    rows = [spec()["rows"][0], {"policy": "streaming", "budget": 0.5, "draw": 0, "scorer": "none"}]
    history = History(rows[1], CONSTANTS)
    history.grow(2, 2, 40, torch.device("cpu"))
    history.alive[..., 7] = False
    with pytest.raises(KvcertError, match="policy streaming: chose a token that an earlier turn has evicted"):
        history.compress(
            torch.ones(2, 2, 40, dtype=torch.float64), 20, torch.zeros(2, 2, 40, dtype=torch.int64)
        )
