"""A root whose registration holds every exhibit, and a reader of outcomes; imported by the tests of this folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from kvcert.exhibits import EXHIBITS
from kvcert.exhibits.registration import FILE

ROOT = Path(__file__).resolve().parents[2]
STUB = {"title": "A title", "question": "A question?", "method": "A method.", "parameters": {}}


def registered_root(folder: Path, **parameters: dict[str, Any]) -> Path:
    """The project's registration in a folder of its own; exhibits it lacks are stubs, `parameters` replace theirs."""
    shutil.copytree(ROOT / "preregistration", folder / "preregistration")
    shutil.copytree(ROOT / "config", folder / "config")
    content = yaml.safe_load((ROOT / FILE).read_text())["exhibits"]
    for name in EXHIBITS:
        line = {"id": f"stub.{name}", "statement": "A statement", "direction": "at_least", "line": 0.5}
        entry = content.setdefault(name, STUB | {"expectations": [line]})
        entry["parameters"] |= parameters.get(name, {})
    (folder / FILE).write_text(yaml.safe_dump({"exhibits": content}, sort_keys=False))
    (folder / "preregistration/EXHIBITS.json").unlink(missing_ok=True)
    return folder


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    """Outcome by expectation."""
    return {entry["id"]: entry["outcome"] for entry in found["expectations"]}
