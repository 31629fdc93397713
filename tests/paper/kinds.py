"""Kinds of synthetic results, and the small grid they are made on."""

from __future__ import annotations

import copy
from typing import Any

from kvcert.config import resolve

#: What is planted in each kind of results.
KINDS: dict[str, dict[str, Any]] = {
    "normal": {},
    "no_failures": {"full_rate": 1.0, "line": 99.0},
    "one_class": {"full_rate": {"niah": 0.0, "json_lookup": 0.0}},  # every failure is inherent
    "constant": {"signal": 0.3},
    "tiny": {},
}


def small(
    base: dict[str, Any], examples: int = 12, tasks: tuple[str, ...] = ("niah", "json_lookup")
) -> dict[str, Any]:
    """The default grid with fewer tasks and examples."""
    config = copy.deepcopy(base)
    config["study"]["tasks"] = [
        task | {"examples": examples} for task in config["study"]["tasks"] if task["name"] in tasks
    ]
    config["study"]["max_new_tokens"] = 6
    config["run"]["shard_examples"] = 6
    return resolve(config)
