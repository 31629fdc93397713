"""Decode on a compressed snapshot, with a hash over everything that a user of it could see, and the truth beside it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from kvcert.attention import forward
from kvcert.cache.context import ContextCache
from kvcert.cache.retained import RetainedCache
from kvcert.exhibits.material import Reading
from kvcert.kernels import Decoded
from kvcert.policies import Selection
from kvcert.runner.panel import Panel


class Digest:
    """SHA-256 of tensors in the order in which they come."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, *tensors: Tensor | None) -> None:
        """Shape, type and bytes of each; None is left out."""
        for x in tensors:
            if x is not None:
                self._sha.update(f"{tuple(x.shape)} {x.dtype}".encode())
                self._sha.update(x.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())

    def text(self) -> str:
        """Hexadecimal digest."""
        return self._sha.hexdigest()


@dataclass(frozen=True)
class Case:
    """One way to compress: the (altered) snapshot, what is kept of it, and the scores z that chose it, in one setting."""

    setting: str
    snapshot: ContextCache
    selection: Selection
    scores: Tensor


@dataclass(frozen=True)
class Seen:
    """One run: its hash, its tokens, and what the panel measured.

    `heads` [panel layers, H, steps] and `figures` (panel means, [steps]) are as `runner.panel.Panel` gives them;
    `member` bool [panel layers, H] marks the registered panel's pairs with something evicted; `layers` numbers its layers.
    """

    sha256: str
    tokens: list[int]
    heads: dict[str, Tensor]
    figures: dict[str, Tensor]
    member: Tensor
    layers: list[int]


class Witness:
    """What is seen of one row: a digest of all that is retained or put out, and the truth on that row's own snapshot."""

    def __init__(self, reading: Reading, case: Case) -> None:
        self.digest, self.tokens = Digest(), list[int]()
        self.panel = Panel(
            reading.model, case.snapshot, reading.n, [case.selection], reading.spec["constants"]
        )
        self.taken: list[dict[str, Tensor]] = []
        self.digest.add(*reading.queries[case.setting])
        self.digest.add(*(z[keep] for z, keep in zip(case.scores, case.selection.keep, strict=True)))

    def listen(self, layer: int, truth: bool, q: Tensor, decoded: Decoded, *own: Tensor) -> None:
        """One layer's queries, output and certificate, all of one row."""
        self.digest.add(q, *decoded)
        if truth and layer in self.panel.layers:
            self.panel.listen(layer, q, decoded, *own)

    def step(self, logits: Tensor) -> None:
        """One decoded token; logits [vocabulary]."""
        self.digest.add(logits)
        self.taken.append(self.panel.collect())
        self.tokens.append(int(logits.argmax()))

    def finish(self, cache: RetainedCache, row: int) -> Seen:
        """Hash the row's keys, values, positions and log pi; padding before `begin` is nobody's."""
        slot = torch.arange(cache.end, device=cache.begin.device)
        for layer, (keys, values) in enumerate(zip(cache.keys, cache.values, strict=True)):
            used = slot >= cache.begin[layer, row][:, None]
            self.digest.add(keys[row, :, : cache.end][used], values[row, :, : cache.end][used])
            self.digest.add(cache.log_pi[layer, row, :, : cache.end][used])
            self.digest.add(cache.positions[layer, row][used[:, : cache.width]])
        panel, figures = self.panel, [self.panel.step_figures(x) for x in self.taken]
        return Seen(
            self.digest.text(),
            self.tokens,
            {name: torch.cat([x[name][:, 0] for x in self.taken], -1) for name in self.taken[0]},
            {name: torch.cat([x[name][0] for x in figures], -1) for name in figures[0]},
            (panel.evicted[:, 0] > 0) & panel.first,
            panel.layers,
        )


def compress(reading: Reading, cases: list[Case], room: int) -> RetainedCache:
    """One row per case: the kept keys and values of that case's own snapshot (all share the keys)."""
    delta = reading.spec["constants"]["delta"]
    cache = RetainedCache(reading.context, [case.selection for case in cases], room, reading.backend, delta)
    head = torch.arange(reading.model.n_kv_heads, device=cache.begin.device)[:, None]
    for layer, values in enumerate(cache.values):
        for row, case in enumerate(cases):
            values[row, :, : cache.width] = case.snapshot.values[layer][0][head, cache.positions[layer, row]]
    cache.centre = [cache._centre(layer) for layer in range(len(cache.values))]
    return cache


def decode(reading: Reading, cases: list[Case], steps: int) -> list[Seen]:
    """Compress, read the question where the setting says so, decode `steps` tokens greedily; one `Seen` per case.

    Cases of one setting must stand together. Rows at the same place of batches of the same shape go through the same
    arithmetic, so that equal contents give equal bits: compare runs of equally long lists only, place by place.
    """
    model, ids, n, size = reading.model, reading.ids, reading.n, reading.ids.shape[1]
    cache = compress(reading, cases, size - 1 - n + steps)
    witnesses = [Witness(reading, case) for case in cases]

    def follow(part: RetainedCache, rows: range, truth: bool) -> None:
        def listen(layer: int, q: Tensor, decoded: Decoded, own_keys: Tensor, own_values: Tensor) -> None:
            for place, row in enumerate(rows):
                one = slice(place, place + 1)
                mine = Decoded(*(None if x is None else x[one] for x in decoded))  # type: ignore[arg-type]
                witnesses[row].listen(layer, truth, q[one], mine, own_keys[one], own_values[one])

        part.listener, part.certified = listen, frozenset(range(model.n_layers))

    for setting in dict.fromkeys(case.setting for case in cases):
        members = [row for row, case in enumerate(cases) if case.setting == setting]
        block = range(members[0], members[-1] + 1)
        part = cache.take(slice(block.start, block.stop))
        if setting == "aware":
            part.append_from(reading.context, n, size - 1)
        elif size - 1 > n:
            follow(part, block, False)
            forward(model.model, part, ids[:, n : size - 1].expand(len(block), -1), n)
    cache.end = cache.width + size - 1 - n
    follow(cache, range(len(cases)), True)
    tokens = ids[:, -1:].expand(len(cases), -1)
    for step in range(steps):
        logits = forward(model.model, cache, tokens, size - 1 + step)[:, -1]
        for row, witness in enumerate(witnesses):
            witness.step(logits[row])
        tokens = logits.argmax(-1, keepdim=True)
    return [witness.finish(cache, row) for row, witness in enumerate(witnesses)]
