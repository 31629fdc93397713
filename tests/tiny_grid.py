"""A grid small enough for unit tests: a random two-layer model behind the real tokenizer, real texts, real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as tf

from kvcert import config as configuration

ROOT = Path(__file__).resolve().parents[1]


def save_tiny_model(folder: Path, tokenizer: Any, *, poison: bool = False, window: int = 1024) -> Path:
    """Write a random Llama (2 layers, 4 heads, 2 KV heads) with the given tokenizer; `poison` puts NaN in its head."""
    settings = tf.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=window,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
        initializer_range=0.15,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = tf.LlamaForCausalLM(settings)
    if poison:
        model.lm_head.weight.data[7] = float("nan")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_config(model: Path, results: Path, cache: Path, **study: Any) -> dict[str, Any]:
    """A resolved configuration: two tasks, two examples each, five rows, both settings."""
    base = configuration.load(ROOT / "config" / "config.yaml", ROOT / "config" / "smoke.yaml")
    base["study"] |= {
        "models": [{"name": "tiny", "path": str(model), "dtype": "float32"}],
        "tasks": [
            {"name": "niah", "length": 320, "examples": 2, "fail_below": 0.5, "params": {}},
            {"name": "facts", "length": 320, "examples": 2, "fail_below": 0.5, "params": {}},
        ],
        "rows": [
            {"policy": "full"},
            {"policy": "topk", "budgets": [0.25]},
            {"policy": "poisson", "budgets": [0.25, 0.5], "draws": 2},
        ],
        "max_new_tokens": 8,
    } | study
    base["run"] |= {
        "results": str(results),
        "figures": str(results) + "-figures",
        "cache": str(cache),
        "trace_examples": 1,
    }
    return configuration.resolve(base)
