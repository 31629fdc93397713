"""Shards that exhibits run for themselves, beside the registered grid. No torch here."""

from __future__ import annotations

from typing import Any

from kvcert.grid import Spec


def specs(name: str, config: dict[str, Any]) -> list[Spec]:
    """The shards of exhibit `name`, each with a name of its own; none for an exhibit that needs no runs."""
    return []
