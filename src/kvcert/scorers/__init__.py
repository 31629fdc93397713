"""Importance scores, one per file. A scorer says how much each context token seems to matter to each KV head."""

from __future__ import annotations

from kvcert.errors import KvcertError
from kvcert.scorers.base import Scorer
from kvcert.scorers.h2o import H2O
from kvcert.scorers.key_norm import KeyNorm
from kvcert.scorers.snapkv import SnapKV

SCORERS: dict[str, type[Scorer]] = {scorer.name: scorer for scorer in (SnapKV, H2O, KeyNorm)}


def get(name: str, constants: dict[str, float]) -> Scorer:
    """The scorer called `name`; an unknown name is an error that lists the known ones."""
    if name not in SCORERS:
        raise KvcertError(
            f"config: study.scorer: unknown scorer {name!r}; known: {', '.join(sorted(SCORERS))}"
        )
    return SCORERS[name](constants)


__all__ = ["SCORERS", "Scorer", "get"]
