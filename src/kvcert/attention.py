"""The one hook into transformers: an attention function named `kvcert`, and the forward call that carries a cache to it.

Model code is never patched. The model hands unknown keyword arguments down to the attention function, so the cache
travels as `kvcert_cache` and its `attend` does the work. No mask function is registered for the name: transformers
then builds no mask, and our own attention is causal by position (bottom-right).
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from kvcert.errors import KvcertError

NAME = "kvcert"


def kvcert_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    *,
    scaling: float,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention of new tokens through our cache. query [R, H, T, D], key and value [R, K, T, D] (new tokens only)."""
    cache = kwargs.get("kvcert_cache")
    if cache is None:
        raise KvcertError(
            "attention 'kvcert' needs a kvcert cache: call kvcert.attention.forward, not model(...)"
        )
    if attention_mask is not None:
        raise KvcertError("attention 'kvcert' takes no mask: prompts are never padded")
    return cache.attend(module, query, scaling), None


AttentionInterface.register(NAME, kvcert_attention)


def _cache_keyword(model: torch.nn.Module) -> str:
    """`cache` where the model's forward has such a parameter (transformers from about 5.20 on), else the older name."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def forward(model: torch.nn.Module, cache: Any, ids: Tensor, position: int, keep: int = 1) -> Tensor:
    """Feed tokens whose first has absolute position `position`; logits of the last `keep` tokens (0: all).

    Parameters
    ----------
    ids : int64 [R, T]. All rows share positions.

    Returns
    -------
    float32 [R, keep or T, vocabulary].
    """
    rows, steps = ids.shape
    before = cache.get_seq_length()
    positions = torch.arange(position, position + steps, device=ids.device).expand(rows, -1)
    output = model(
        input_ids=ids,
        position_ids=positions,
        use_cache=True,
        logits_to_keep=keep,
        kvcert_cache=cache,
        **{_cache_keyword(model): cache},
    )
    # A wrong keyword is swallowed in silence and the model fills a cache of its own: hence this check.
    if cache.get_seq_length() != before + steps:
        raise KvcertError(
            "the model did not fill our cache: this version of transformers passes caches another way"
        )
    return output.logits.float()
