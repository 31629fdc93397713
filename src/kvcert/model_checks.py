"""Which transformers models our cache and our greedy decoding can stand for, and where their answers end."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kvcert.errors import KvcertError

#: Names of tokens that end an answer, used where the tokenizer holds them as special tokens.
END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<end_of_turn>", "<|end|>")

#: Generation settings that change greedy decoding, with the values that leave it alone.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "repetition_penalty": (None, 1, 1.0),
    "encoder_repetition_penalty": (None, 1, 1.0),
    "no_repeat_ngram_size": (None, 0),
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "num_beams": (None, 1),
    "penalty_alpha": (None, 0, 0.0),
    "guidance_scale": (None, 1, 1.0),
    "forced_bos_token_id": (None,),
    "forced_eos_token_id": (None,),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
    "bad_words_ids": (None, []),
    "sequence_bias": (None, {}, []),
    "exponential_decay_length_penalty": (None,),
    "watermarking_config": (None,),
}


def check_layers(name: str, config: Any) -> None:
    """Refuse every layer whose cache is not one key and one value per past token."""
    kinds = {str(kind) for kind in getattr(config, "layer_types", None) or ["full_attention"]}
    window = getattr(config, "sliding_window", None)
    sliding = window is not None and getattr(config, "use_sliding_window", True)
    if sliding or "sliding_attention" in kinds:
        raise KvcertError(
            f"model {name}: uses a sliding window ({window} tokens); only full attention is supported"
        )
    if other := kinds - {"full_attention", "attention"}:
        raise KvcertError(
            f"model {name}: has {', '.join(sorted(other))} layers; only full attention is supported"
        )
    recurrent = any(
        getattr(config, key, None)
        for key in ("mamba_d_state", "ssm_cfg", "state_size", "linear_num_key_heads")
    )
    if recurrent or any(word in config.model_type for word in ("mamba", "rwkv", "recurrent")):
        raise KvcertError(
            f"model {name}: {config.model_type} keeps a recurrent state; only full attention is supported"
        )
    if not getattr(config, "num_attention_heads", None) or not getattr(
        config, "max_position_embeddings", None
    ):
        raise KvcertError(
            f"model {name}: {config.model_type} states no attention heads or no window; unsupported"
        )


def check_greedy(name: str, generation: Any, ignored: Collection[str] = ()) -> None:
    """Refuse generation settings under which the model's own greedy answer is not the arg max of its logits.

    `ignored` are settings that the configuration leaves aside on purpose (`study.models[].ignore_generation`).
    """
    for key, neutral in _NEUTRAL.items():
        value = getattr(generation, key, None)
        if value not in neutral and key not in ignored:
            raise KvcertError(
                f"model {name}: generation_config sets {key}={value}, which changes greedy decoding; "
                f"name it in study.models[].ignore_generation to leave it aside, or use a local copy (path) without it"
            )


def stop_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """End tokens named by generation_config, config and tokenizer, and well-known end markers of the vocabulary."""
    found: set[int] = set()
    for value in (model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id):
        found.update(value if isinstance(value, (list, tuple)) else [] if value is None else [value])
    special = tokenizer.get_added_vocab()
    found.update(special[token] for token in END_TOKENS if token in special)
    if not found:
        raise KvcertError("model: neither its configuration nor its tokenizer names an end token")
    return frozenset(int(token) for token in found)
