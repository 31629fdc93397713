"""Versions of what measured and scored: hashes of task definitions and scoring code, revisions of models and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kvcert
from kvcert.files import sha256_file, sha256_json
from kvcert.sources import TEXTS, TEXTS_WHEEL, TEXTS_WHEEL_SHA256

PACKAGE = Path(kvcert.__file__).resolve().parent
#: Rooms and files whose code decides what a run is and how it is scored.
ROOMS = ("cache", "claims", "kernels", "logs", "policies", "runner", "scorers", "survey", "tasks")
SINGLE = (
    "attention.py",
    "config.py",
    "convert.py",
    "grid.py",
    "models.py",
    "prompts.py",
    "sources.py",
    "spacing.py",
    "verbatim.py",
)
SOURCES = frozenset({".py", ".h", ".cuh", ".cu", ".cpp"})


def code() -> dict[str, str]:
    """`{"kvcert/claims/auc.py": sha256, ...}` of the package that is running."""
    paths = [path for room in ROOMS for path in (PACKAGE / room).rglob("*") if path.suffix in SOURCES]
    paths += [PACKAGE / name for name in SINGLE if (PACKAGE / name).is_file()]
    return {f"kvcert/{path.relative_to(PACKAGE).as_posix()}": sha256_file(path) for path in sorted(paths)}


def versions(study: dict[str, Any]) -> dict[str, Any]:
    """Code by file, model revisions as the study pins them, and the wheel of the texts."""
    return {
        "kvcert": kvcert.__version__,
        "code": code(),
        "models": study["models"],
        "texts": {
            "wheel": TEXTS_WHEEL,
            "sha256": TEXTS_WHEEL_SHA256,
            "members": [t.member for t in TEXTS.values()],
        },
    }


def changed(registered: dict[str, Any]) -> list[str]:
    """Source files that are not as registered, removed and added ones included."""
    now, then = code(), registered["code"]
    return sorted(name for name in set(now) | set(then) if now.get(name) != then.get(name))


def described(registered: dict[str, Any] | None) -> dict[str, Any]:
    """For a claim's JSON: the hash of the code that runs now, and what differs from the registered code (null: none is)."""
    return {"sha256": sha256_json(code()), "changed": None if registered is None else changed(registered)}
