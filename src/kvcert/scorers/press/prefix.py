"""What the attention modules were given during the prefill: a press reads hidden states and rotary embeddings."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.scorers.base import Scorer


class Prefix:
    """Attention modules and their inputs so far, by layer.

    `hidden(layer)` is [1, S, hidden size], `embeddings()` the pair (cos, sin), each [1, S, head dimension].
    """

    def __init__(self, modules: list[torch.nn.Module]) -> None:
        self.modules = modules
        self._hidden: list[list[Tensor]] = [[] for _ in modules]
        self._rotary: list[tuple[Tensor, Tensor]] = []

    def note(self, layer: int, hidden: Tensor, embeddings: tuple[Tensor, Tensor]) -> None:
        """One forward pass of one layer over new tokens; the embeddings are the same for every layer."""
        self._hidden[layer].append(hidden)
        if layer == 0:
            self._rotary.append(embeddings)

    def hidden(self, layer: int) -> Tensor:
        """Inputs of a layer's attention, all tokens read so far."""
        return torch.cat(self._hidden[layer], 1)

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the rotary embedding, all tokens read so far."""
        cos, sin = zip(*self._rotary, strict=True)
        return torch.cat(cos, 1), torch.cat(sin, 1)


def recording(model: Any, scorers: Iterable[Scorer]) -> Any:
    """Context manager: while it is open, scorers that read the prefix see what `model`'s attention modules are given.

    Nothing is hooked when no scorer reads it. On leaving, the model is as it was.
    """
    readers = [scorer for scorer in scorers if scorer.reads_prefix]
    return _recording(model, readers) if readers else nullcontext()


@contextmanager
def _recording(model: Any, readers: list[Any]) -> Iterator[None]:
    decoder = model.model.language_model if hasattr(model.model, "language_model") else model.model
    layers = getattr(decoder, "layers", [])
    modules = [layer.self_attn for layer in layers if hasattr(layer, "self_attn")]
    if not modules or len(modules) < len(layers) or not hasattr(decoder, "rotary_emb"):
        raise KvcertError(
            f"scorer {readers[0].name}: {type(model).__name__} is not built as kvpress expects "
            "(model.model.layers[i].self_attn, model.model.rotary_emb); use a scorer of this project"
        )
    prefix = Prefix(modules)
    # A copy: some rotary embeddings rescale themselves when they are asked for positions beyond the prompt.
    rotary = copy.deepcopy(decoder.rotary_emb)
    given = [module for module in modules if not hasattr(module, "rotary_emb")]
    handles = []

    def hook(layer: int) -> Any:
        def note(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            hidden = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
            prefix.note(layer, hidden, kwargs["position_embeddings"])

        return note

    try:
        for layer, module in enumerate(modules):
            handles.append(module.register_forward_pre_hook(hook(layer), with_kwargs=True))
        for module in given:
            module.rotary_emb = rotary
        for scorer in readers:
            scorer.prefix = prefix
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module in given:
            if hasattr(module, "rotary_emb"):
                del module.rotary_emb
        for scorer in readers:
            scorer.prefix = None
