"""All runs of a multi-turn example: the history of every streaming row is compressed at the end of every turn."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from kvcert.attention import forward
from kvcert.cache.thinned import Shadow, TurnCache
from kvcert.grid import Spec
from kvcert.models import LoadedModel
from kvcert.policies import Selection, capacity_of
from kvcert.prompts import Prompt
from kvcert.runner.decoding import decode_full
from kvcert.runner.example import ExampleRuns, Row, example_hash, prefill, run_rows, select_rows
from kvcert.runner.history import History
from kvcert.runner.panel import Panel
from kvcert.scorers.snapkv import SnapKV
from kvcert.survey.philox import uniforms
from kvcert.turns import check_row


def run_episode(
    spec: Spec,
    model: LoadedModel,
    prompt: Prompt,
    *,
    backend: str = "auto",
    implementation: str = "sdpa",
    stop: tuple[str, ...] = (),
) -> ExampleRuns:
    """The sibling of `run_example` for a prompt with `stages`.

    The full run reads the history turn by turn and evicts nothing. A streaming row compresses it at the end of every
    turn and reads the next turn on what is left; its truth is its own shadow. The aware setting knows one compression
    only, after the question. Rows of the streaming setting are run one after the other: each has keys and values of its
    own for every token after the first turn.
    """
    started = time.perf_counter()
    cache, scores, ids = prefill(spec, model, prompt, implementation)
    prefilled = time.perf_counter()
    last, position, limit = int(ids[0, -1]), len(prompt.ids) - 1, spec["max_new_tokens"]
    full = decode_full(model, cache, last, position, limit, stop)
    rows: list[Row] = []
    if "streaming" in spec["settings"]:
        first = scores["streaming"][spec["scorer"]]
        for row in (row for row in spec["rows"] if row["policy"] != "full"):
            check_row("study.rows", spec["task"]["name"], row, spec["scorer"])
            shadow = Shadow(cache, prompt.stages[0], prompt.n_context)
            rows.append(thin_row(spec, model, prompt, ids, shadow, row, first, backend))
            run_rows(spec, model, shadow, ids, prompt.n_context, rows[-1:], full, backend, stop)
    if "aware" in spec["settings"]:
        aware = select_rows(spec, model, prompt, {"aware": scores["aware"]})
        if aware:
            run_rows(spec, model, cache, ids, prompt.n_context, aware, full, backend, stop)
        rows += aware
    chosen = [row.selection for row in rows]
    panel = Panel(model, cache, prompt.n_context, chosen, spec["constants"]) if rows else None
    finished = time.perf_counter()
    # The streaming score belongs to the end of the first turn: no trace of the whole context.
    kept = {setting: found for setting, found in scores.items() if setting == "aware"}
    return ExampleRuns(
        prompt.n_context, full, rows, panel, kept, cache, prefilled - started, finished - prefilled
    )


def thin_row(
    spec: Spec,
    model: LoadedModel,
    prompt: Prompt,
    ids: Tensor,
    shadow: Shadow,
    row: dict[str, Any],
    first: Tensor,
    backend: str,
) -> Row:
    """Compress at the end of every turn and read the next one on what is left; the row's selection after the last.

    `first` is z at the end of the first turn, float64 [layers, KV heads, n]; later scores come from the row's retained
    tokens and the newest turn's queries. `shadow` is filled on the way.
    """
    constants, device = spec["constants"], ids.device
    history = History(row, constants)
    layers, heads, _ = first.shape
    scorer, key = SnapKV(constants), example_hash(spec["model"]["name"], prompt.sha256)
    window, delta = int(constants["window"]), constants["delta"]

    def compress(stage: int, n: int, z: Tensor) -> tuple[int, Selection]:
        capacity, positions = capacity_of(row["budget"], n, constants), torch.arange(n, device=device)
        u32 = uniforms(spec["seed"], key, positions, layers, heads, row["draw"], stage)
        return capacity, history.compress(z, capacity, u32)

    history.grow(layers, heads, prompt.stages[0], device)
    capacity, chosen = compress(0, prompt.stages[0], first)
    for stage, (n, end) in enumerate(pairwise(prompt.stages), 1):
        turn = TurnCache(window, shadow, [chosen], end - n, backend, delta)
        forward(model.model, turn, ids[:, n:end], n)
        shadow.extend(turn)
        history.grow(layers, heads, end, device)
        capacity, chosen = compress(stage, end, scores_of(scorer, history, turn, shadow))
    return Row("streaming", row, capacity, chosen, float(history.lost.mean()))


def scores_of(scorer: SnapKV, history: History, turn: TurnCache, shadow: Shadow) -> Tensor:
    """z, float64 [layers, KV heads, n], from the retained tokens and the queries of the turn that was just read."""
    rows = [
        scorer.thinned(
            queries,
            shadow.keys[layer][0, :, : shadow.end],
            history.log_pi[layer],
            history.alive[layer],
            shadow.scale,
        )
        for layer, queries in enumerate(turn.queries)
    ]
    return torch.stack(rows)
