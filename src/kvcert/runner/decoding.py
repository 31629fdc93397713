"""Greedy decoding of one cache (the full run) and of all retained rows as one batch; the forced pass."""

from __future__ import annotations

import torch
from torch import Tensor

from kvcert.attention import forward
from kvcert.cache.context import ContextCache
from kvcert.cache.retained import RetainedCache
from kvcert.models import LoadedModel
from kvcert.runner.answer import ended
from kvcert.runner.panel import Panel
from kvcert.runner.record import Trail, distribution


def decode_full(
    model: LoadedModel, cache: ContextCache, last: int, position: int, limit: int, stop: tuple[str, ...] = ()
) -> Trail:
    """Greedy answer on the whole cache. `last` is the held-back prompt token at absolute `position`."""
    trail, token = Trail(), last
    device = cache.keys[0].device
    for step in range(limit):
        logits = forward(model.model, cache, torch.tensor([[token]], device=device), position + step)[:, -1]
        tokens, logp, entropy, finite = distribution(logits)
        if not bool(finite):
            trail.broken = f"non-finite logits at step {step + 1}"
        token = int(tokens)
        trail.add(token, float(logp), float(entropy))
        if trail.broken or ended(model, trail.tokens, stop):
            break
    return trail


def _record(panel: Panel, trails: list[Trail], certified: list[bool], steps: list[int]) -> None:
    """Move what the panel measured in its last pass into the rows' trails; `steps[row]` steps of each are real."""
    taken = panel.collect()
    figures = {name: value.cpu().numpy() for name, value in panel.step_figures(taken).items()}
    arrays = {name: value.cpu().numpy() for name, value in taken.items()}
    for row, trail in enumerate(trails):
        for step in range(steps[row]):
            trail.add_figures(figures, row, step)
            if certified[row]:
                trail.add_heads(arrays, row, step)


def decode_rows(
    model: LoadedModel,
    cache: RetainedCache,
    panel: Panel,
    certified: list[bool],
    last: int,
    position: int,
    limit: int,
    stop: tuple[str, ...] = (),
) -> list[Trail]:
    """Greedy answers of every row of `cache`, decoded together; finished rows leave once half the batch is done."""
    trails = [Trail() for _ in certified]
    active = list(range(len(trails)))  # batch row -> trail
    done = [False] * len(trails)
    device = cache.keys[0].device
    tokens = torch.full((len(trails), 1), last, device=device)
    for step in range(limit):
        cache.listener, cache.certified = panel.listen, frozenset(panel.layers)
        logits = forward(model.model, cache, tokens, position + step)[:, -1]
        chosen, logp, entropy, finite = distribution(logits)
        rows = [trails[i] for i in active]
        _record(panel, rows, [certified[i] for i in active], [0 if done[i] else 1 for i in active])
        for row, i in enumerate(active):
            if done[i]:
                continue
            token = int(chosen[row])
            trails[i].add(token, float(logp[row]), float(entropy[row]))
            if not bool(finite[row]):
                trails[i].broken = f"non-finite logits at step {step + 1}"
            done[i] = trails[i].broken is not None or ended(model, trails[i].tokens, stop)
        left = [row for row, i in enumerate(active) if not done[i]]
        if not left:
            break
        if 2 * len(left) <= len(active):
            index = torch.tensor(left, device=device)
            cache, chosen = cache.take(index), chosen[index]
            panel = Panel(
                panel.model, panel.context, panel.n, [panel.selections[row] for row in left], panel.constants
            )
            active = [active[row] for row in left]
        tokens = chosen[:, None]
    return trails


def force_rows(
    model: LoadedModel, cache: RetainedCache, panel: Panel, last: int, position: int, answer: list[int]
) -> list[Trail]:
    """One forward pass of the fixed tokens `last, answer[:-1]` over every row; trails score the tokens of `answer`."""
    rows, device = cache.keys[0].shape[0], cache.keys[0].device
    fed = torch.tensor([last, *answer[:-1]], device=device).expand(rows, -1)
    cache.listener, cache.certified = panel.listen, frozenset(panel.layers)
    logits = forward(model.model, cache, fed, position, keep=0)
    target: Tensor = torch.tensor(answer, device=device).expand(rows, -1)
    _, logp, entropy, finite = distribution(logits, target)
    trails = [Trail() for _ in range(rows)]
    for row, trail in enumerate(trails):
        for step, token in enumerate(answer):
            trail.add(token, float(logp[row, step]), float(entropy[row, step]))
        if not bool(finite[row].all()):
            trail.broken = "non-finite logits in the forced pass"
    _record(panel, trails, [True] * rows, [len(answer)] * rows)
    return trails
