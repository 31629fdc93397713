"""The hook changes nothing it should not: exact against transformers, against a batch of one, in any order, in chunks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.conftest import make_tiny_model

from kvcert.attention import forward
from kvcert.cache.context import ContextCache
from kvcert.models import LoadedModel
from kvcert.prompts import Prompt
from kvcert.runner.decoding import decode_full
from kvcert.runner.example import run_example
from kvcert.scorers import get as get_scorer

KINDS = ("llama", "qwen2", "qwen3", "mistral")
CONSTANTS: dict[str, Any] = {
    "n_sink": 2,
    "n_recent": 6,
    "window": 6,
    "pooling": 3,
    "rho": 0.5,
    "epsilon": 1e-6,
    "delta": 0.05,
    "floor": 0.05,
    "m_min": 2,
    "panel_layers": 2,
    "signal_steps": 6,
}


def spec(**changes: Any) -> dict[str, Any]:
    rows = [{"policy": "full", "budget": 1.0, "draw": 0, "scorer": "none"}]
    rows += [{"policy": "topk", "budget": b, "draw": 0, "scorer": "snapkv"} for b in (0.25, 0.5)]
    rows += [
        {"policy": "poisson", "budget": b, "draw": d, "scorer": "snapkv"} for b in (0.25, 0.5) for d in (0, 1)
    ]
    rows += [{"policy": p, "budget": 0.25, "draw": 0, "scorer": "none"} for p in ("random", "streaming")]
    base = {
        "seed": 5,
        "model": {"name": "tiny"},
        "settings": ["aware", "streaming"],
        "scorer": "snapkv",
        "rows": rows,
        "forced": True,
        "max_new_tokens": 5,
        "constants": CONSTANTS,
    }
    return base | changes


def loaded(model: torch.nn.Module) -> LoadedModel:
    config = model.config
    return LoadedModel(
        model=model,
        tokenizer=None,
        name="tiny",
        revision="none",
        stop_ids=frozenset({0}),
        n_layers=config.num_hidden_layers,
        n_heads=config.num_attention_heads,
        n_kv_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        window=512,
    )


def prompt(length: int = 72, question: int = 8, seed: int = 1) -> Prompt:
    ids = torch.randint(2, 128, (length,), generator=torch.Generator().manual_seed(seed)).tolist()
    return Prompt(ids=tuple(ids), n_context=length - question, text="", sha256=f"{seed:064x}")


def reference(
    model: torch.nn.Module, ids: list[int], steps: int, stop: frozenset[int] = frozenset({0})
) -> tuple[list[int], torch.Tensor]:
    """Greedy tokens and their logits from transformers alone, without any cache."""
    tokens, logits = list(ids), []
    for _ in range(steps):
        row = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1].float()
        logits.append(row)
        tokens.append(int(row.argmax()))
        if tokens[-1] in stop:
            break
    return tokens[len(ids) :], torch.stack(logits)


def full_logits(model: LoadedModel, p: Prompt, answer: list[int], chunks: list[int]) -> torch.Tensor:
    cache = ContextCache(model, 600, 6, {"snapkv": get_scorer("snapkv", CONSTANTS)})
    ids, start = torch.tensor([list(p.ids) + answer[:-1]]), 0
    for stop in chunks:
        forward(model.model, cache, ids[:, start:stop], start)
        start = stop
    return forward(model.model, cache, ids[:, start:], start, keep=0)[0]


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_full_equals_transformers(kind):
    expected, logits = reference(make_tiny_model(kind), list(prompt().ids), 6)
    model = loaded(make_tiny_model(kind, attn="kvcert"))
    trail = decode_full_of(model, prompt(), 6)
    assert trail.tokens == expected
    found = full_logits(model, prompt(), expected, [64, 71])
    assert torch.allclose(found, logits, atol=1e-5)


def decode_full_of(model: LoadedModel, p: Prompt, limit: int):
    cache = ContextCache(model, len(p.ids) + limit, 6, {"snapkv": get_scorer("snapkv", CONSTANTS)})
    ids = torch.tensor([p.ids])
    forward(model.model, cache, ids[:, : p.n_context], 0)
    forward(model.model, cache, ids[:, p.n_context : -1], p.n_context)
    return decode_full(model, cache, p.ids[-1], len(p.ids) - 1, limit)


@torch.inference_mode()
def test_full_equals_transformers_on_the_real_model(smollm, load_smollm):
    text = "The quick brown fox jumps over the lazy dog. " * 12 + "The quick"
    ids = smollm.tokenizer(text)["input_ids"]
    expected, logits = reference(load_smollm("sdpa").model, ids, 8, smollm.stop_ids)
    assert len(expected) > 4
    p = Prompt(ids=tuple(ids), n_context=len(ids) - 9, text=text, sha256="0" * 64)
    found = full_logits(smollm, p, expected, [p.n_context, len(ids) - 1])
    assert torch.allclose(found, logits, atol=5e-4)
    assert decode_full_of(smollm, p, 8).tokens == expected


@torch.inference_mode()
def test_chunked_prefill_equals_one_shot():
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    once, chunked = (full_logits(model, prompt(), [3, 4, 5], chunks) for chunks in ([71], [1, 2, 20, 55, 71]))
    assert torch.allclose(once, chunked, atol=1e-5)


@pytest.mark.parametrize("backend", ["torch", "auto"])
@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_everything_kept_equals_full(kind, backend):
    """pi = 1 everywhere: same tokens, no variance, no error, and the run is an identity."""
    rows = [{"policy": p, "budget": 1.0, "draw": 0, "scorer": "snapkv"} for p in ("full", "topk", "poisson")]
    found = run_example(
        spec(rows=rows), loaded(make_tiny_model(kind, attn="kvcert")), prompt(), backend=backend
    )
    for row in found.rows:
        assert row.free is not None
        assert row.free.tokens == found.full.tokens
        assert torch.allclose(torch.tensor(row.free.logp), torch.tensor(found.full.logp), atol=1e-5)
        if row.certified:
            assert all((h["variance"] == 0).all() and (h["radius"] == 0).all() for h in row.free.heads)
            assert all(h["error"].max() < 1e-5 for h in row.free.heads)
            assert row.free.figures["units"] == [0] * len(row.free.tokens)


@torch.inference_mode()
def test_a_batch_of_rows_equals_one_row_at_a_time():
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    together = run_example(spec(), model, prompt())
    for row in together.rows:
        alone = run_example(
            spec(rows=[spec()["rows"][0], row.spec], settings=[row.setting]), model, prompt()
        ).rows[0]
        assert torch.equal(alone.selection.keep, row.selection.keep)
        assert alone.free is not None
        assert row.free is not None
        assert alone.free.tokens == row.free.tokens
        assert torch.allclose(torch.tensor(alone.free.logp), torch.tensor(row.free.logp), atol=1e-4)
        assert torch.allclose(
            torch.tensor(alone.free.figures["error"]), torch.tensor(row.free.figures["error"]), atol=1e-4
        )


@torch.inference_mode()
def test_each_row_is_kept_by_its_own_scorer():
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    rows = [spec()["rows"][0]]
    rows += [{"policy": "topk", "budget": 0.5, "draw": 0, "scorer": s} for s in ("snapkv", "h2o", "key_norm")]
    together = run_example(spec(rows=rows, settings=["aware"]), model, prompt())
    kept = [row.selection.keep for row in together.rows]
    assert not torch.equal(kept[0], kept[1])
    assert not torch.equal(kept[1], kept[2])
    for row in rows[1:]:
        alone = run_example(
            spec(rows=[rows[0], row], scorer=row["scorer"], settings=["aware"]), model, prompt()
        )
        other = next(r for r in together.rows if r.spec["scorer"] == row["scorer"])
        assert torch.equal(alone.rows[0].selection.keep, other.selection.keep)


@torch.inference_mode()
def test_same_draw_for_any_batch_order():
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    rows = spec()["rows"]
    kept = [
        {
            (r.setting, *sorted(map(str, r.spec.items()))): r.selection.keep
            for r in run_example(s, model, prompt()).rows
        }
        for s in (spec(), spec(rows=rows[::-1]), spec(settings=["streaming", "aware"]))
    ]
    for other in kept[1:]:
        assert all(torch.equal(kept[0][key], other[key]) for key in kept[0])


@torch.inference_mode()
def test_the_forced_pass_equals_step_by_step():
    """When a free run happens to give the full run's answer, its steps are those of the forced pass."""
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    compared = 0
    for seed in range(4):
        found = run_example(spec(), model, prompt(seed=seed))
        for row in found.rows:
            if not row.certified or row.forced is None or row.free is None:
                continue
            same = 1
            while same < len(found.full.tokens) and row.free.tokens[:same] == found.full.tokens[:same]:
                same += 1
            for name in ("certificate", "error"):
                free, forced = row.free.figures[name][:same], row.forced.figures[name][:same]
                assert torch.allclose(torch.tensor(free), torch.tensor(forced), atol=1e-4)
            compared += same
    assert compared > 24


@torch.inference_mode()
def test_error_is_measured_against_this_runs_own_truth():
    """The shadow's truth of the first step equals the full run's attention output when the question saw the full cache."""
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    found = run_example(spec(settings=["aware"]), model, prompt())
    for row in found.rows:
        assert row.free is not None
        errors = torch.tensor(row.free.figures["error"])
        assert bool((errors > 0).all())
        assert bool((errors < 20).all())


def test_a_forward_without_our_cache_is_refused():
    model = make_tiny_model("llama", attn="kvcert")
    with pytest.raises(Exception, match="kvcert cache"):
        model(input_ids=torch.tensor([[1, 2, 3]]))


def test_cache_length_is_checked_and_never_falsy():
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    cache = ContextCache(model, 8, 4, {"snapkv": get_scorer("snapkv", CONSTANTS)})
    assert cache
    assert cache.get_seq_length() == 0
    forward(model.model, cache, torch.tensor([[1, 2, 3]]), 0)
    cache.crop(-1)
    assert cache.get_seq_length() == 2
    with pytest.raises(ValueError, match="negative"):
        cache.crop(1)
    with pytest.raises(IndexError, match="slots"):
        forward(model.model, cache, torch.ones(1, 9, dtype=torch.long), 2)
