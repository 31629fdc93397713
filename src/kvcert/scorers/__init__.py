"""Importance scores, one per file. A scorer says how much each context token seems to matter to each KV head."""

from __future__ import annotations

from kvcert.errors import KvcertError
from kvcert.presses import PRESSES
from kvcert.scorers.base import Scorer
from kvcert.scorers.h2o import H2O
from kvcert.scorers.key_norm import KeyNorm
from kvcert.scorers.last_used import LastUsed
from kvcert.scorers.press import PressScorer
from kvcert.scorers.snapkv import SnapKV
from kvcert.scorers.value_norm import ValueNorm

SCORERS: dict[str, type[Scorer]] = {
    scorer.name: scorer for scorer in (SnapKV, H2O, KeyNorm, ValueNorm, LastUsed)
}


def get(name: str, constants: dict[str, float]) -> Scorer:
    """The scorer called `name`, ours or a press of kvpress; an unknown name is an error that lists the known ones."""
    if name in PRESSES:
        return PressScorer(name, constants)
    if name not in SCORERS:
        known = ", ".join(sorted([*SCORERS, *PRESSES]))
        raise KvcertError(f"config: study.scorer: unknown scorer {name!r}; known: {known}")
    return SCORERS[name](constants)


__all__ = ["SCORERS", "Scorer", "get"]
