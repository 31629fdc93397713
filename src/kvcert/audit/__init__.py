"""Evidence for one claim in one folder, and its check from anywhere. No torch here, and nothing of `kvcert.claims`."""

from __future__ import annotations

from kvcert.audit.bundle import build
from kvcert.audit.check import check

__all__ = ["build", "check"]
