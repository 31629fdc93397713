"""The runs of X1: groups of one design, score and setting, each under every alteration of the values it evicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kvcert import policies
from kvcert.exhibits.alterations import BOUNDED, NONE, Alteration, alter, unbounded
from kvcert.exhibits.material import Reading
from kvcert.exhibits.witness import Case, Seen, decode
from kvcert.policies import Selection


@dataclass(frozen=True)
class Group:
    """One design under one score in one setting, and the alterations it goes through."""

    setting: str
    design: str
    scorer: str
    value_aware: bool
    alterations: tuple[Alteration, ...]


def groups(settings: list[str], parameters: dict[str, Any]) -> list[Group]:
    """Every group of one prompt, those of a setting side by side."""
    wild = unbounded(parameters["factors"])
    largest = tuple(a for a in wild if a.factor == max(parameters["factors"]))
    aware = (Alteration("sign"), Alteration("rotation"), largest[0])
    first, found = parameters["value_blind"][0], []
    for setting in settings:
        found += [Group(setting, "topk", z, False, (*wild, *BOUNDED)) for z in parameters["value_blind"]]
        found.append(Group(setting, "topk", parameters["value_aware"], True, aware))
        found.append(Group(setting, "poisson", first, False, wild))
        found.append(Group(setting, "adversary", first, False, largest))
    return found


def runs(reading: Reading, parameters: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Seen, Seen]]:
    """Every run of one prompt: its names, what was seen, and the unaltered run of the same group.

    The groups are the rows of a batch; the alterations follow each other. A group that has no more of them repeats the
    unaltered snapshot, so that every batch has the same shape.
    """
    everyone = groups(reading.spec["settings"], parameters)
    originals = [_Original(reading, group, parameters) for group in everyone]
    base: list[Seen] = []
    for turn in range(1 + max(len(group.alterations) for group in everyone)):
        hows = [dict(enumerate((NONE, *group.alterations))).get(turn) for group in everyone]
        cases = [one.case(how or NONE) for one, how in zip(originals, hows, strict=True)]
        seen = decode(reading, cases, parameters["steps"])
        base = base or seen
        for one, case, how, mine, before in zip(originals, cases, hows, seen, base, strict=True):
            if how is not None:
                yield one.names(how, case), mine, before


class _Original:
    """A group on one prompt: the unaltered scores and selection, and the values that will be altered."""

    def __init__(self, reading: Reading, group: Group, parameters: dict[str, Any]) -> None:
        self.reading, self.group = reading, group
        self.capacity = reading.capacity(parameters["budget"])
        self.u32 = reading.uniforms()
        self.z = self.score(reading.context.values)
        self.keep = self.select(self.z).keep
        # Fixed before the draw: what top-k would evict. The adversary looks at the draw first.
        self.chosen = ~(self.select(self.z, "topk").keep if group.design == "poisson" else self.keep)

    def score(self, values: list[Tensor]) -> Tensor:
        """z from a snapshot with these values."""
        z = self.reading.scores(self.group.setting, self.group.scorer, self.reading.with_values(values))
        if self.group.value_aware:
            z = z * torch.stack([v[0, :, : self.reading.n].double().norm(dim=-1) for v in values])
        return z

    def select(self, z: Tensor, policy: str = "") -> Selection:
        """What the group's design keeps."""
        name = policy or ("topk" if self.group.design == "topk" else "poisson")
        return policies.get(name).select(z, self.capacity, self.reading.spec["constants"], self.u32)

    def case(self, how: Alteration) -> Case:
        """The altered snapshot with scores and selection computed anew."""
        pairs = enumerate(self.reading.context.values)
        values = [_altered(self.reading, v, self.chosen[layer], how, layer) for layer, v in pairs]
        z = self.score(values)
        return Case(self.group.setting, self.reading.with_values(values), self.select(z), z)

    def names(self, how: Alteration, case: Case) -> dict[str, Any]:
        """What identifies the run in rows."""
        group = self.group
        return self.reading.names | {
            "setting": group.setting, "design": group.design, "scorer": group.scorer, "value_aware": group.value_aware,
            "alteration": how.kind, "factor": how.factor, "scores_same": torch.equal(case.scores, self.z),
            "selection_same": torch.equal(case.selection.keep, self.keep),
        }  # fmt: skip


def _altered(reading: Reading, values: Tensor, chosen: Tensor, how: Alteration, layer: int) -> Tensor:
    """A layer's whole buffer with the context part altered."""
    if how.kind == "none":
        return values
    changed = values.clone()
    key = (reading.prompt.sha256, layer)
    changed[0, :, : reading.n] = alter(values[0, :, : reading.n], chosen, how, key)
    return changed
