"""A project folder with a registration of exhibits small enough for a tiny model."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from kvcert.exhibits import EXHIBITS

ROOT = Path(__file__).resolve().parents[2]


def expectation(name: str, direction: str = "at_least", line: float = 0.0) -> dict[str, Any]:
    return {"id": name, "statement": "A statement.", "direction": direction, "line": line}


def make(folder: Path, entries: dict[str, dict[str, Any]]) -> Path:
    """Copy the claims' registration and write `exhibits.yaml` with these entries' parameters and expectations."""
    shutil.copytree(ROOT / "preregistration", folder / "preregistration")
    words = {"title": "T", "question": "Q", "method": "M"}
    exhibits = {
        name: words | {"parameters": {}, "expectations": []} | entries.get(name, {}) for name in EXHIBITS
    }
    (folder / "preregistration" / "exhibits.yaml").write_text(
        yaml.safe_dump({"exhibits": exhibits}, sort_keys=False)
    )
    return folder
