"""Tokenizers without a model: byte-level, with and without a BOS of its own and a chat template."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def tokens_of() -> Callable[..., Any]:
    """`tokens_of(adds_bos=…, **options)`: a byte-level tokenizer without merges; `<s>` and `</s>` are special."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    def make(adds_bos: bool = False, **options: Any) -> Any:
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        vocabulary = {char: i for i, char in enumerate(["<s>", "</s>", *alphabet])}
        core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        core.decoder = decoders.ByteLevel()
        if adds_bos:
            core.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
        return PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", eos_token="</s>", **options)

    return make
