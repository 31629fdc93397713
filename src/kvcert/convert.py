"""A GGUF file turned once into a safetensors folder: dequantised weights, a tokenizer built from the file, and configs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError

#: Special tokens that end a turn or a text in the models whose GGUF files we convert.
END_TOKENS = ("<|im_end|>", "<|endoftext|>")


def convert_gguf(gguf: Path, target: Path) -> None:
    """Write `gguf` as a transformers folder (safetensors, config, generation_config, tokenizer) into `target`.

    The weights are dequantised to float32: they are the values of the quantised file, not of the original checkpoint.
    Newer transformers refuses to save a model that carries a quantisation config, so the model is rebuilt from its
    config and state dict first.

    Raises
    ------
    KvcertError
        The file holds a tokenizer other than byte-level BPE with the `smollm` pre-tokenizer, the only kind verified here.
    """
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    fields = _fields(gguf)
    tokenizer = build_tokenizer(fields)
    loaded = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32)
    settings = loaded.config.to_dict()
    for key in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        settings.pop(key, None)
    config = type(loaded.config).from_dict(settings)
    model: Any = type(loaded)(config)
    model.float()
    model.load_state_dict(loaded.state_dict())
    ends = [fields["tokenizer.ggml.tokens"].index(token) for token in END_TOKENS]
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=ends,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=False,
    )
    model.save_pretrained(str(target))
    tokenizer.save_pretrained(str(target))


def build_tokenizer(fields: dict[str, Any]) -> Any:
    """Fast tokenizer from GGUF metadata.

    transformers guesses a Llama tokenizer from the architecture name, with foreign special tokens beyond the embedding
    table and without the digit splitting of SmolLM; hence the explicit build: digits one by one, then byte-level BPE,
    no token added on its own.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    kind = (fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise KvcertError(
            f"GGUF tokenizer {kind[0]}/{kind[1]}: only gpt2/smollm is converted; name the model by hub or path"
        )
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    core = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    core.decoder = decoders.ByteLevel()
    control = [
        token for token, type_ in zip(tokens, fields["tokenizer.ggml.token_type"], strict=True) if type_ == 3
    ]
    core.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    named = {
        f"{name}_token": tokens[fields[f"tokenizer.ggml.{key}_token_id"]]
        for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
    }
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        chat_template=fields["tokenizer.chat_template"],
        model_max_length=int(fields["llama.context_length"]),
        clean_up_tokenization_spaces=False,
        additional_special_tokens=[token for token in control if token not in named.values()],
        **named,
    )


def _fields(gguf: Path) -> dict[str, Any]:
    """Metadata of a GGUF file as plain values."""
    from gguf import GGUFReader

    return {name: field.contents() for name, field in GGUFReader(str(gguf)).fields.items()}
