"""X1: alter what a deterministic evictor threw away, and nothing that it kept can tell. A sampled tail can."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from kvcert import policies
from kvcert.exhibits import registration
from kvcert.exhibits.alterations import BOUNDED, NONE, Alteration, alter, unbounded
from kvcert.exhibits.interval import median, share
from kvcert.exhibits.material import Reading, readings
from kvcert.exhibits.outcome import Measured, record
from kvcert.exhibits.witness import Case, Seen, decode
from kvcert.exhibits.x1_rows import heads_of, run_of, steps_of
from kvcert.policies import Selection
from kvcert.runner.answer import text

Progress = Callable[[str], None]


def measure(config: dict[str, Any], root: Path, progress: Progress) -> dict[str, Any]:
    """Run X1 on the first model of the grid and record it."""
    parameters = registration.load(root)["X1"]["parameters"]
    started = time.monotonic()
    frames: dict[str, list[Any]] = {"": [], "heads": [], "steps": []}
    torch.set_num_threads(config["run"]["threads"])
    with torch.inference_mode():
        for reading in readings(config, parameters["examples_per_task"], parameters["steps"]):
            model = reading.model
            for names, seen, base in runs(reading, parameters):
                frames[""].append(run_of(names, seen, base, text(model, seen.tokens)))
                frames["heads"].append(heads_of(names, seen, base))
                frames["steps"].append(steps_of(names, seen))
            progress(
                f"X1: {reading.names['task']} example {reading.example}, {time.monotonic() - started:.0f} s"
            )
    runs_, heads, steps = pd.DataFrame(frames[""]), _all(frames["heads"]), _all(frames["steps"])
    about = {
        "model": config["study"]["models"][0]["name"], "seed": config["study"]["seed"], "runs": len(runs_),
        "examples": int(runs_[["task", "example"]].drop_duplicates().shape[0]),
        "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip
    return record(
        Path(config["run"]["results"]), root, "X1", expectations(runs_, heads, steps),
        {"": runs_, "heads": heads, "steps": steps}, about,
    )  # fmt: skip


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


def expectations(runs: pd.DataFrame, heads: pd.DataFrame, steps: pd.DataFrame) -> dict[str, Measured]:
    """The registered values from the rows."""
    wild, largest = ["scale", "shift"], runs["factor"].max()

    def pick(rows: pd.DataFrame, design: str, aware: bool = False) -> pd.DataFrame:
        return rows[
            (rows["design"] == design) & (rows["value_aware"] == aware) & (rows["alteration"] != "none")
        ]

    def at(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
        return rows[(rows["alteration"] == kind) & (rows["factor"] == largest)]

    blind, aware, poisson, adversary = (
        pick(runs, "topk"), pick(runs, "topk", True), pick(runs, "poisson"), pick(runs, "adversary")
    )  # fmt: skip
    errors, sampled = pick(heads, "topk"), pick(heads, "poisson")
    bounded = errors[~errors["alteration"].isin(wild)]
    panel = pick(steps, "poisson")
    defeated = pick(steps, "adversary")
    return {
        "x1.hash_blind": share(blind, "same"),
        "x1.scale_1000": median(at(errors, "scale"), "error_factor"),
        "x1.shift_1000": median(at(errors, "shift"), "error_factor"),
        "x1.unbounded": median(_growth(errors[errors["alteration"].isin(wild)]), "growth"),
        "x1.bounded": median(bounded, "error_factor"),
        "x1.bounded_changes": share(bounded.assign(changed=bounded["error_factor"] != 1.0), "changed"),
        "x1.value_aware_flip": share(aware[aware["alteration"] == "sign"], "same"),
        "x1.value_aware_scale": share(_not(aware[aware["alteration"] == "scale"]), "other"),
        "x1.poisson_sees": share(_not(poisson), "other"),
        "x1.poisson_follows": median(at(sampled, "scale"), "radius_factor"),
        "x1.poisson_coverage": share(panel, "covered"),
        "x1.poisson_coverage_heads": share(sampled, "covered"),
        "x1.adversary_hash": share(adversary, "same"),
        "x1.adversary_coverage": share(defeated[defeated["factor"] == largest], "covered"),
    }


def _all(parts: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True)


def _not(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(other=~rows["same"].astype(bool))


def _growth(rows: pd.DataFrame) -> pd.DataFrame:
    """Error at the largest factor over that at the next smaller one, per head and step."""
    factors = sorted(rows["factor"].unique())[-2:]
    key = ["task", "length", "example", "setting", "scorer", "alteration", "layer", "head", "step"]
    small, large = (rows[rows["factor"] == f].set_index(key)["error"] for f in factors)
    ratio = large / small.where(small > 0)
    return ratio.rename("growth").reset_index()
