"""The page people read: verdicts, figures, tables and every run, in one HTML file without network access. No torch here."""

from __future__ import annotations

from kvcert.report.page import write

__all__ = ["write"]
