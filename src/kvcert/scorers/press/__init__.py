"""Any `ScorerPress` of kvpress as an importance score: what it saw of the prefill, and its score."""

from __future__ import annotations

from kvcert.scorers.press.prefix import Prefix, recording
from kvcert.scorers.press.scorer import PressScorer

__all__ = ["Prefix", "PressScorer", "recording"]
