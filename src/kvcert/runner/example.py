"""All runs of one example from one prefill."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from kvcert import policies, scorers
from kvcert.attention import forward
from kvcert.cache.context import ContextCache
from kvcert.cache.retained import RetainedCache
from kvcert.cache.thinned import Shadow
from kvcert.grid import CERTIFIED, Spec
from kvcert.models import LoadedModel
from kvcert.policies import Selection, capacity_of
from kvcert.prompts import Prompt
from kvcert.runner.decoding import decode_full, decode_rows, force_rows
from kvcert.runner.panel import Panel
from kvcert.runner.record import Trail
from kvcert.scorers.press import recording
from kvcert.survey.philox import uniforms

#: z by setting and scorer, each float64 [layers, KV heads, n].
Scores = dict[str, dict[str, Tensor]]


@dataclass
class Row:
    """One way of keeping the cache in one setting, with what it keeps and how its runs went."""

    setting: str
    spec: dict[str, Any]
    capacity: int
    selection: Selection
    evicted_mass: float
    free: Trail | None = None
    forced: Trail | None = None

    @property
    def certified(self) -> bool:
        """True when the row's inclusion probabilities are known."""
        return self.spec["policy"] in CERTIFIED


@dataclass
class ExampleRuns:
    """Everything measured on one example."""

    n: int
    full: Trail
    rows: list[Row]
    panel: Panel | None
    scores: Scores
    context: ContextCache
    seconds_prefill: float
    seconds_decode: float


def example_hash(model: str, prompt_sha256: str) -> int:
    """32-bit hash of model and example, the third word of the draw's counter."""
    return int.from_bytes(hashlib.sha256(f"{model}\n{prompt_sha256}".encode()).digest()[:4], "little")


def select_rows(spec: Spec, model: LoadedModel, prompt: Prompt, scores: Scores) -> list[Row]:
    """What every evicted row of every setting keeps, by the score of its own scorer.

    Certified rows of the first setting come last and those of the second first, so that they lie side by side in the
    batch and the forced pass can take them as one slice.
    """
    n, constants = prompt.n_context, spec["constants"]
    primary = next(iter(scores.values()))[spec["scorer"]]
    layers, heads, _ = primary.shape
    positions = torch.arange(n, device=primary.device)
    seed_hash = example_hash(spec["model"]["name"], prompt.sha256)
    draws = {
        draw: uniforms(spec["seed"], seed_hash, positions, layers, heads, draw)
        for draw in {row["draw"] for row in spec["rows"]}
    }
    rows = []
    for setting, by_scorer in scores.items():
        for row in spec["rows"]:
            if row["policy"] == "full":
                continue
            z = by_scorer.get(row["scorer"], by_scorer[spec["scorer"]])
            capacity = capacity_of(row["budget"], n, constants)
            chosen = policies.get(row["policy"], row.get("params")).select(
                z, capacity, constants, draws[row["draw"]]
            )
            lost = float(((z * ~chosen.keep).sum(-1) / z.sum(-1).clamp_min(1e-300)).mean())
            rows.append(Row(setting, row, capacity, chosen, lost))
    first = next(iter(scores))
    return sorted(rows, key=lambda row: (row.setting != first, row.certified != (row.setting != first)))


def run_example(
    spec: Spec,
    model: LoadedModel,
    prompt: Prompt,
    *,
    backend: str = "auto",
    implementation: str = "sdpa",
    stop: tuple[str, ...] = (),
) -> ExampleRuns:
    """Prefill once, then every (setting, policy, budget, draw) of the shard, free-running and forced.

    The last prompt token is held back and decoded on the compressed cache. An answer ends with an end token, or with one
    of the texts in `stop`. A prompt with `stages` is for `kvcert.runner.episode`.
    """
    if prompt.stages:
        raise ValueError("a prompt with stages is compressed at every turn: call run_episode")
    started = time.perf_counter()
    cache, scores, ids = prefill(spec, model, prompt, implementation)
    prefilled = time.perf_counter()

    n, last, position = prompt.n_context, int(ids[0, -1]), len(prompt.ids) - 1
    full = decode_full(model, cache, last, position, spec["max_new_tokens"], stop)
    rows = select_rows(spec, model, prompt, scores)
    panel = run_rows(spec, model, cache, ids, n, rows, full, backend, stop) if rows else None
    finished = time.perf_counter()
    return ExampleRuns(n, full, rows, panel, scores, cache, prefilled - started, finished - prefilled)


def prefill(
    spec: Spec, model: LoadedModel, prompt: Prompt, implementation: str
) -> tuple[ContextCache, Scores, Tensor]:
    """The full cache of all prompt tokens but the last, the scores of the settings, and the prompt's ids [1, size].

    The context is read first (its scores are those of the streaming setting), then the question on the full cache
    (scores of the aware setting). A context in turns is read turn by turn; its streaming scores are those at the end of
    the first one.
    """
    device = next(model.model.parameters()).device
    ids = torch.tensor([prompt.ids], device=device)
    n, size, limit = prompt.n_context, len(prompt.ids), spec["max_new_tokens"]
    constants = spec["constants"]
    used = {spec["scorer"]} | {row["scorer"] for row in spec["rows"]} - {"none"}
    wanted = {name: scorers.get(name, constants) for name in sorted(used)}
    cache = ContextCache(model, size + limit, int(constants["window"]), wanted, implementation)
    stops = prompt.stages or (n,)
    with recording(model.model, wanted.values()):
        forward(model.model, cache, ids[:, : stops[0]], 0)
        scores = {"streaming": cache.scores(stops[0])}
        for start, end in pairwise(stops):
            forward(model.model, cache, ids[:, start:end], start)
        if size - 1 > n:
            forward(model.model, cache, ids[:, n : size - 1], n)
        scores["aware"] = cache.scores(n)
    cache.observing = False
    return cache, {setting: scores[setting] for setting in spec["settings"]}, ids


def run_rows(
    spec: Spec,
    model: LoadedModel,
    cache: ContextCache | Shadow,
    ids: Tensor,
    n: int,
    rows: list[Row],
    full: Trail,
    backend: str,
    stop: tuple[str, ...],
) -> Panel:
    """Compress, read the question where the setting says so, force, decode; fills the rows' trails.

    `cache` holds every context token of the rows: the full cache, or the shadow of one row.
    """
    size, limit, constants = ids.shape[1], spec["max_new_tokens"], spec["constants"]
    last, position = int(ids[0, -1]), size - 1
    chosen = [row.selection for row in rows]
    retained = RetainedCache(cache, chosen, size - 1 - n + limit, backend, constants["delta"])
    for setting in spec["settings"]:
        members = [i for i, row in enumerate(rows) if row.setting == setting]
        if not members or size - 1 == n:
            continue
        part = retained.take(slice(members[0], members[-1] + 1))
        if setting == "aware":
            part.append_from(cache, n, size - 1)
        else:
            forward(model.model, part, ids[:, n : size - 1].expand(len(members), -1), n)
    retained.end = retained.width + size - 1 - n

    certified = [i for i, row in enumerate(rows) if row.certified]
    if spec["forced"] and certified and full.broken is None:
        block = slice(certified[0], certified[-1] + 1)
        panel = Panel(model, cache, n, chosen[block], constants)
        for i, trail in zip(
            certified,
            force_rows(model, retained.take(block), panel, last, position, full.tokens),
            strict=True,
        ):
            rows[i].forced = trail
    panel = Panel(model, cache, n, chosen, constants)
    trails = decode_rows(model, retained, panel, [row.certified for row in rows], last, position, limit, stop)
    for row, trail in zip(rows, trails, strict=True):
        row.free = trail
    return panel
