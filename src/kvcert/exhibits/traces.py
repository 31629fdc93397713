"""The recorded attention of `results/traces`, as float64 arrays: what X2 and X5 are measured on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.grid import Spec, shards
from kvcert.policies import capacity_of, design_of
from kvcert.runner import trace
from kvcert.survey.inclusion import Design
from kvcert.tasks.stream import Stream

#: What names a traced example, in this order; (model, task, length, example) is also the cluster of the intervals.
KEY = ("model", "task", "length", "example")


@dataclass(frozen=True)
class Trace:
    """One traced example.

    Attributes
    ----------
    key : its name, with the fields of `KEY`.
    layers : numbers of the panel's layers.
    keys, values : float64 [layers, KV heads, n, d], the context's.
    queries : float64 [layers, KV heads, steps, d], of the first query head of each KV head (the registered panel).
    scores : float64 [layers, KV heads, n] by setting, the primary scorer's.
    """

    key: dict[str, Any]
    layers: list[int]
    keys: Tensor
    values: Tensor
    queries: Tensor
    scores: dict[str, Tensor]

    @property
    def n(self) -> int:
        """Context tokens."""
        return self.keys.shape[2]

    @property
    def heads(self) -> list[tuple[int, int]]:
        """Every (index of the layer in `layers`, KV head)."""
        return [(i, k) for i in range(self.keys.shape[0]) for k in range(self.keys.shape[1])]

    def logits(self, steps: list[int]) -> Tensor:
        """s_i = q·k_i / √d, [layers, KV heads, steps, n]."""
        return self.queries[:, :, steps] @ self.keys.transpose(-1, -2) * self.keys.shape[-1] ** -0.5

    def steps(self, count: int) -> list[int]:
        """At most `count` evenly spaced decode steps, the first and the last included."""
        return spaced(self.queries.shape[2], count)

    def stream(self, *purpose: object) -> Stream:
        """Random choices that depend on the example's name and on what they are for."""
        return Stream(*purpose, *self.key.values())


def spaced(size: int, count: int) -> list[int]:
    """At most `count` evenly spaced numbers of 0..size-1, first and last included."""
    if count >= size:
        return list(range(size))
    return [round(i * (size - 1) / (count - 1)) for i in range(count)] if count > 1 else [0]


def design(trace: Trace, setting: str, budget: float, constants: dict[str, float]) -> tuple[Design, int]:
    """The registered Poisson design of every (layer, KV head) from the recorded score, and K, its capacity."""
    capacity = capacity_of(budget, trace.n, constants)
    return design_of(trace.scores[setting], capacity, constants), capacity


def read(config: dict[str, Any], most: int) -> Iterator[Trace]:
    """The traced examples of every model, at most `most` each, evenly spaced over its shards.

    Raises
    ------
    KvcertError when a shard's trace is missing or cannot be read, or no example was traced.
    """
    folder, found = Path(config["run"]["results"]), 0
    for model in config["study"]["models"]:
        names = [
            (spec, example)
            for spec in shards(config)
            if spec["model"]["name"] == model["name"]
            for example in _examples(trace.path(folder, spec["shard"]))
        ]
        for at in spaced(len(names), most):
            found += 1
            yield _load(*names[at], folder)
    if not found:
        raise KvcertError(
            f"{folder / 'traces'}: no example was traced; set run.trace_examples to 1 and run the grid"
        )


def _examples(path: Path) -> list[int]:
    """Numbers of the examples in a shard's trace; none where the shard evicted nothing."""
    try:
        with safe_open(path, "pt") as file:
            return sorted(int(name.split("/")[0]) for name in file.keys() if name.endswith("/keys"))  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise KvcertError(
            f"{path}: no readable trace ({error}); run the grid with run.trace_examples of at least 1"
        ) from None


def _load(spec: Spec, example: int, folder: Path) -> Trace:
    path, scorer = trace.path(folder, spec["shard"]), spec["scorer"]
    with safe_open(path, "pt") as file:

        def take(name: str) -> Tensor:
            return file.get_tensor(f"{example}/{name}").double()

        values, queries = take("values"), take("queries")
        per = queries.shape[1] // values.shape[1]
        return Trace(
            dict(
                zip(
                    KEY,
                    (spec["model"]["name"], spec["task"]["name"], spec["task"]["length"], example),
                    strict=True,
                )
            ),
            [int(layer) for layer in take("layers")],
            take("keys"),
            values,
            queries[:, ::per],
            {setting: take(f"score.{setting}.{scorer}") for setting in spec["settings"]},
        )
