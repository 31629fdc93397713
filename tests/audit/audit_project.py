"""A small study that can be frozen, for the tests of audit, amendments and the crate."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kvcert.config import load

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Project:
    """A project's folder, its results, its configuration."""

    root: Path
    results: Path
    config: dict[str, Any]


def small_study(root: Path, examples: int = 8, tasks: slice = slice(2, 4)) -> dict[str, Any]:
    """The registered files in `root` with a smaller study as the one to freeze; its configuration."""
    (root / "preregistration").mkdir(parents=True)
    (root / "config").mkdir()
    for name in ("claims.yaml", "analysis-plan.md"):
        shutil.copy(ROOT / "preregistration" / name, root / "preregistration" / name)
    config = load(ROOT / "config/config.yaml")
    config["study"]["tasks"] = [task | {"examples": examples} for task in config["study"]["tasks"][tasks]]
    config["study"]["max_new_tokens"] = 4
    config["run"] |= {"shard_examples": examples, "results": str(root / "results")}
    (root / "config/config.yaml").write_text(yaml.safe_dump(config))
    return load(root / "config/config.yaml")
