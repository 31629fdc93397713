"""Prompts of the grid, read whole by the model: the snapshot that exhibits alter, compress and hold against the truth."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kvcert import models, scorers
from kvcert.attention import forward
from kvcert.cache.context import ContextCache
from kvcert.errors import KvcertError
from kvcert.grid import Spec, shards
from kvcert.kernels import resolve_backend
from kvcert.models import LoadedModel
from kvcert.policies import capacity_of
from kvcert.prompts import Prompt
from kvcert.runner.example import example_hash
from kvcert.runner.shard import load_examples
from kvcert.survey.philox import uniforms


@dataclass(frozen=True)
class Reading:
    """One prompt on the full cache, before its last token.

    `queries` holds, per setting, every layer's last `window` queries at the moment of compression; `seen` the tokens read
    by then (the context, or everything but the last prompt token).
    """

    spec: Spec
    model: LoadedModel
    prompt: Prompt
    example: int
    context: ContextCache
    ids: Tensor
    queries: dict[str, list[Tensor]]
    seen: dict[str, int]
    backend: str

    @property
    def n(self) -> int:
        """Context tokens."""
        return self.prompt.n_context

    @property
    def names(self) -> dict[str, Any]:
        """What identifies the example in rows."""
        return {
            "task": self.spec["task"]["name"],
            "length": self.spec["task"]["length"],
            "example": self.example,
        }

    def capacity(self, budget: float) -> int:
        """Tokens kept per KV head at a budget."""
        return capacity_of(budget, self.n, self.spec["constants"])

    def scores(self, setting: str, scorer: str, context: ContextCache | None = None) -> Tensor:
        """z, float64 [layers, KV heads, n], from the snapshot (or an altered one) and the queries of that moment.

        Raises
        ------
        KvcertError for a scorer that must see every query of the prefill.
        """
        context, found = context or self.context, scorers.get(scorer, self.spec["constants"])
        if found.accumulates:
            raise KvcertError(
                f"exhibits compute scores anew from a snapshot's last queries; scorer {scorer} needs all of them: "
                "use a grid whose study.scorer is another"
            )
        keys = [k[0, :, : self.seen[setting]] for k in context.keys]
        pairs = enumerate(zip(self.queries[setting], keys, strict=True))
        return torch.stack([found.score(layer, q, k, self.n, context.scale) for layer, (q, k) in pairs])

    def uniforms(self, draw: int = 0) -> Tensor:
        """The study's own 32-bit uniforms of this example, int64 [layers, KV heads, n]."""
        hashed = example_hash(self.spec["model"]["name"], self.prompt.sha256)
        shape = (self.model.n_layers, self.model.n_kv_heads)
        return uniforms(self.spec["seed"], hashed, torch.arange(self.n, device=self.ids.device), *shape, draw)

    def with_values(self, values: list[Tensor]) -> ContextCache:
        """The snapshot with other values; keys and everything else are shared."""
        other = copy.copy(self.context)
        other.values = values
        return other


def readings(config: dict[str, Any], count: int, room: int) -> Iterator[Reading]:
    """The first `count` examples of every task of the grid, read by its first model; `room` slots for an answer."""
    run, first = config["run"], config["study"]["models"][0]
    model = models.load(first, Path(run["cache"]), device=run["device"])
    backend = resolve_backend(run["backend"], run["device"])
    for spec in shards(config):
        if spec["model"]["name"] != first["name"] or spec["examples"][0] != 0:
            continue
        some = spec | {"examples": spec["examples"][:count]}
        for example, prompt in load_examples(some, model, Path(run["cache"])):
            yield read(some, model, prompt, example.index, room, backend, run["attn_implementation"])


def read(
    spec: Spec, model: LoadedModel, prompt: Prompt, example: int, room: int, backend: str, implementation: str
) -> Reading:
    """Read context and question on the full cache; keep the queries of both moments."""
    n, size = prompt.n_context, len(prompt.ids)
    ids = torch.tensor([prompt.ids], device=next(model.model.parameters()).device)
    cache = ContextCache(model, size + room, int(spec["constants"]["window"]), {}, implementation)
    forward(model.model, cache, ids[:, :n], 0)
    queries = {"streaming": _queries(cache)}
    if size - 1 > n:
        forward(model.model, cache, ids[:, n : size - 1], n)
    queries["aware"] = _queries(cache)
    kept = {setting: queries[setting] for setting in spec["settings"]}
    return Reading(
        spec, model, prompt, example, cache, ids, kept, {"streaming": n, "aware": size - 1}, backend
    )


def _queries(cache: ContextCache) -> list[Tensor]:
    return [q.clone() for q in cache.queries if q is not None]
