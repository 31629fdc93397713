"""The seven claims: one file each, scored from the Parquet logs against the registered lines. No torch here."""

from __future__ import annotations

from kvcert.claims.score import score_all, score_one

__all__ = ["score_all", "score_one"]
