"""A finished run as a Workflow Run RO-Crate: what ran, on what, from what, and every file with its hash."""

from __future__ import annotations

from kvcert.crate.build import write
from kvcert.crate.check import problems

__all__ = ["problems", "write"]
