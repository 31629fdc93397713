"""The verdict rule: registered lines, what crossing them means, and whether the interval settles it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from kvcert.claims.bootstrap import Estimates

SURVIVED, KILLED, CARRIED = "survived", "killed", "killed (carried by task or budget)"
UNDERPOWERED, NOT_RUN = "underpowered", "not-run"


@dataclass(frozen=True)
class Part:
    """One registered line of a claim. `direction` says when it passes: value `>=` or `>` threshold."""

    name: str
    label: str
    value: float
    ci_low: float
    ci_high: float
    threshold: float
    direction: str
    role: str  # "decides" or "beside"
    passed: bool | None
    bonferroni_low: float
    bonferroni_high: float
    kind: str = KILLED

    @property
    def margin(self) -> float:
        """Distance above the line; negative below it."""
        return self.value - self.threshold

    def clears(self) -> bool:
        """The whole interval is on the surviving side, and is an interval at all."""
        return self.ci_high > self.ci_low and _passes(self.ci_low, self.threshold, self.direction)

    def condemned(self) -> bool:
        """The whole Bonferroni interval is on the killing side, and is an interval at all."""
        wide = self.bonferroni_high > self.bonferroni_low
        return wide and not _passes(self.bonferroni_high, self.threshold, self.direction)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for the claim's JSON."""
        return asdict(self) | {"margin": self.margin}


def _passes(value: float, threshold: float, direction: str) -> bool:
    return value >= threshold if direction == ">=" else value > threshold


def part(
    name: str, line: dict[str, Any], estimates: Estimates, column: str, deciding: int, share: bool = False
) -> Part:
    """Hold one statistic against one registered line `{threshold, passes, role, kind?}`.

    `deciding` is the number of parts that decide the claim: a kill is decisive at level 1 - alpha / deciding.
    """
    value = estimates.value(column)
    low, high = estimates.interval(column, share=share)
    level = 1 - (1 - estimates.level) / max(1, deciding)
    wide_low, wide_high = estimates.interval(column, level, share=share)
    passed = None if math.isnan(value) else _passes(value, line["threshold"], line["passes"])
    return Part(
        name=name,
        label=line["label"],
        value=value,
        ci_low=low,
        ci_high=high,
        threshold=float(line["threshold"]),
        direction=line["passes"],
        role=line["role"],
        passed=passed,
        bonferroni_low=wide_low,
        bonferroni_high=wide_high,
        kind=line.get("kind", KILLED),
    )


@dataclass(frozen=True)
class Verdict:
    """What became of a claim, why, and the part that came nearest to its kill condition."""

    verdict: str
    decisive: bool
    nearest: Part | None
    reasons: list[str]


def decide(parts: list[Part], underpowered: list[str], not_run: list[str]) -> Verdict:
    """Apply the rule: not-run, then underpowered, then the registered condition on the point estimates.

    A part without a value can neither survive nor be killed: the claim is `not-run`.
    """
    deciding = [item for item in parts if item.role == "decides"]
    known = [item for item in deciding if item.passed is not None]
    nearest = min(known, key=lambda item: item.margin) if known else None
    missing = [f"{item.name} is undefined on these logs" for item in deciding if item.passed is None]
    if not_run or not known:
        return Verdict(NOT_RUN, False, nearest, not_run or missing or ["no runs in scope"])
    if underpowered:
        return Verdict(UNDERPOWERED, False, nearest, underpowered)
    if missing:
        return Verdict(NOT_RUN, False, nearest, missing)
    failed = [item for item in deciding if not item.passed]
    if not failed:
        return Verdict(SURVIVED, all(item.clears() for item in deciding), nearest, [])
    kind = KILLED if any(item.kind == KILLED for item in failed) else failed[0].kind
    reasons = [f"{item.name}: {item.value:.4g} is not {item.direction} {item.threshold:g}" for item in failed]
    return Verdict(kind, any(item.condemned() for item in failed), nearest, reasons)


def agreement(verdict: str, paper: str) -> bool | None:
    """Whether the verdict is the paper's; None where there is none to compare."""
    if verdict in (UNDERPOWERED, NOT_RUN):
        return None
    return verdict.split(" ")[0] == paper
