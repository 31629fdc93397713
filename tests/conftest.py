"""Shared fixtures: the prepared cache, the real model (loaded once), and tiny random models of four families."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def base_config() -> dict[str, Any]:
    """The committed default configuration, as written (not resolved)."""
    return yaml.safe_load((ROOT / "config" / "config.yaml").read_text())


@pytest.fixture(scope="session")
def cache(base_config: dict[str, Any]) -> Path:
    """The cache with the default model and the texts, prepared once; `KVCERT_CACHE` names another folder."""
    from kvcert.prepare import prepare_all

    folder = Path(os.environ.get("KVCERT_CACHE", ROOT / ".kvcert"))
    prepare_all(
        {"study": base_config["study"], "run": base_config["run"] | {"cache": str(folder)}},
        say=lambda line: None,
    )
    return folder


@pytest.fixture(scope="session")
def texts(cache: Path) -> Path:
    """Folder of the prepared texts."""
    return cache / "texts"


@pytest.fixture(scope="session")
def load_smollm(base_config: dict[str, Any], cache: Path) -> Callable[..., Any]:
    """`load_smollm(attn="sdpa")`: the default model with one attention implementation, each loaded once."""
    from kvcert.models import load

    loaded: dict[str, Any] = {}

    def get(attn: str = "kvcert") -> Any:
        if attn not in loaded:
            loaded[attn] = load(base_config["study"]["models"][0], cache, attn=attn)
        return loaded[attn]

    return get


@pytest.fixture(scope="session")
def smollm(load_smollm: Callable[..., Any]) -> Any:
    """The default model under our attention function (a `kvcert.models.LoadedModel`)."""
    return load_smollm("kvcert")


@pytest.fixture(scope="session")
def tokenizer(base_config: dict[str, Any], cache: Path) -> Any:
    """The default model's tokenizer alone."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(cache / "models" / base_config["study"]["models"][0]["name"]))


@pytest.fixture(scope="session")
def tiny_model() -> Callable[..., Any]:
    """`tiny_model(kind, attn=…, layers=2, heads=4, kv_heads=2, seed=0)`: a random float32 model of family `kind`.

    `kind` is llama, qwen2, qwen3 or mistral; hidden size 64, vocabulary 128, 512 positions, end token 0.
    """
    return make_tiny_model


def make_tiny_model(
    kind: str,
    *,
    attn: str = "sdpa",
    layers: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    seed: int = 0,
    **extra: Any,
) -> Any:
    """See the fixture `tiny_model`; importable for tests that parametrise over kinds."""
    import torch
    import transformers as tf

    if attn == "kvcert":
        import kvcert.attention  # noqa: F401
    config_class = {
        "llama": tf.LlamaConfig,
        "qwen2": tf.Qwen2Config,
        "qwen3": tf.Qwen3Config,
        "mistral": tf.MistralConfig,
    }[kind]
    settings: dict[str, Any] = {
        "vocab_size": 128,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": 64 // heads,
        "max_position_embeddings": 512,
        "bos_token_id": 1,
        "eos_token_id": 0,
        "pad_token_id": 0,
        "tie_word_embeddings": False,
        "initializer_range": 0.15,
    }
    if kind == "mistral":
        settings["sliding_window"] = None
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = tf.AutoModelForCausalLM.from_config(
            config_class(**(settings | extra)), attn_implementation=attn
        )
    return model.to(torch.float32).eval().requires_grad_(False)
