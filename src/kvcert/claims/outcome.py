"""What a claim's file hands over, and the JSON that becomes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Estimates
from kvcert.claims.verdict import Part, agreement, decide, part

Stratum = dict[str, Any]


@dataclass
class Outcome:
    """The scored claim before the verdict rule: parts, strata, curves, counts and what forbids a verdict."""

    parts: list[Part] = field(default_factory=list)
    strata: list[Stratum] = field(default_factory=list)
    curves: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    n_runs: int = 0
    n_clusters: int = 0
    underpowered: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    redrawn: int = 0

    def hold(self, claim: dict[str, Any], found: Estimates) -> None:
        """Hold each of the claim's lines against the statistic of the same name."""
        lines = claim["lines"]
        deciding = sum(line["role"] == "decides" for line in lines.values())
        self.parts += [part(name, line, found, name, deciding) for name, line in lines.items()]

    def need(self, what: str, have: float, least: float) -> None:
        """Note that the claim is underpowered when `have` is below the registered minimum."""
        if have < least:
            self.underpowered.append(f"{what}: {have:g}, registered minimum {least:g}")


def stratum(
    name: str,
    by: str,
    measure: str,
    estimates: Estimates,
    column: str,
    rows: pd.DataFrame,
    share: bool = False,
) -> Stratum:
    """One line beside a pooled figure."""
    low, high = estimates.interval(column, share=share)
    return {
        "name": name, "by": by, "measure": measure, "value": estimates.value(column), "ci_low": low, "ci_high": high,
        "n_runs": len(rows), "n_clusters": int(rows["cluster"].nunique()),
    }  # fmt: skip


def each(
    rows: pd.DataFrame, by: str, score: Callable[[pd.DataFrame, str, str], Iterable[Stratum]]
) -> list[Stratum]:
    """Strata of `rows` by the values of one column."""
    lines: list[Stratum] = []
    for value in sorted(rows[by].unique().tolist()):
        name = f"{value:g}" if isinstance(value, float) else str(value)
        lines += score(rows[rows[by] == value], name, by)
    return lines


def as_json(claim: dict[str, Any], outcome: Outcome, registration: dict[str, Any]) -> dict[str, Any]:
    """Apply the verdict rule and lay the claim out as its JSON file has it; NaN becomes null."""
    found = decide(outcome.parts, outcome.underpowered, outcome.not_run)
    near = found.nearest
    label = near.label if near else next(iter(claim["lines"].values()))["label"]
    content = {
        "claim": claim["id"], "title": claim["title"], "statement": claim["statement"], "statistic": label,
        "definition": claim["statistic"],
        "part": near.name if near else None, "value": near.value if near else None,
        "ci_low": near.ci_low if near else None, "ci_high": near.ci_high if near else None,
        "n_runs": outcome.n_runs, "n_clusters": outcome.n_clusters, "threshold": near.threshold if near else None,
        "direction": near.direction if near else None, "kill_condition": claim["kill_condition"],
        "verdict": found.verdict, "decisive": found.decisive, "reasons": found.reasons,
        "paper_value": claim["paper"]["value"], "paper_number": claim["paper"]["number"],
        "paper_verdict": claim["paper"]["verdict"], "agrees": agreement(found.verdict, claim["paper"]["verdict"]),
        "scope": claim["scope"], "our_reading": claim["our_reading"], "registration": registration,
        "counts": outcome.counts | {"resamples_redrawn": outcome.redrawn},
        "parts": [item.as_dict() for item in outcome.parts], "strata": outcome.strata, "curves": outcome.curves,
    }  # fmt: skip
    plain: dict[str, Any] = plain_numbers(content)
    return plain


def plain_numbers(value: Any) -> Any:
    """Plain Python values throughout: NumPy scalars and arrays unwrapped, NaN as null, infinities as text."""
    if isinstance(value, dict):
        return {str(key): plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain_numbers(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
