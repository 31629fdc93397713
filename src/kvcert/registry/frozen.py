"""FROZEN.json: hashes of what was registered, and the refusal to go on when any of it changed."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import kvcert
from kvcert.config import load
from kvcert.errors import KvcertError
from kvcert.files import sha256_file, sha256_json, write_atomic
from kvcert.registry.claims_file import CLAIMS, load_claims

FROZEN = Path("preregistration/FROZEN.json")
#: Frozen byte for byte.
FILES = (CLAIMS, Path("preregistration/analysis-plan.md"))
#: Frozen in its scientific part `study`, resolved.
CONFIG = Path("config/config.yaml")
KEYS = {"version", "date", "kvcert", "files", "study", "sha256"}


def freeze(root: Path, config: dict[str, Any]) -> str:
    """Write FROZEN.json and return one line for the console.

    Raises
    ------
    KvcertError
        When a registration is frozen already, when `config` is not the study of config/config.yaml, when
        the constants of claims.yaml are not the study's, or when runs were already measured.
    """
    root = Path(root)
    if (root / FROZEN).exists():
        raise KvcertError(
            f"{root / FROZEN} exists: the registration is frozen already; changes go to amendments.md"
        )
    registered = load_claims(root)["common"]["constants"]
    if registered != config["study"]["constants"]:
        raise KvcertError(
            f"{CLAIMS}: common.constants are not study.constants of the configuration; make them equal"
        )
    study = _study_hash(root)
    if sha256_json(config["study"]) != study:
        raise KvcertError(f"only the study of {CONFIG} can be frozen; freeze without an overlay")
    measured = sorted((root / config["run"]["results"]).glob("runs/*.parquet"))
    if measured:
        raise KvcertError(f"{measured[0]}: runs were measured already; freeze comes before the measured run")
    for path in FILES:
        if not (root / path).is_file():
            raise KvcertError(f"cannot freeze: {root / path} is missing")
    content: dict[str, Any] = {
        "version": 1,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "kvcert": kvcert.__version__,
        "files": {str(path): sha256_file(root / path) for path in FILES},
        "study": {"file": str(CONFIG), "sha256": study},
    }
    content["sha256"] = sha256_json(content)
    write_atomic(root / FROZEN, json.dumps(content, indent=1) + "\n")
    return f"frozen on {content['date']}: registration {content['sha256']}"


def verify(root: Path) -> None:
    """Return quietly when nothing frozen changed.

    Raises
    ------
    KvcertError
        One line that names the changed or missing file; also when nothing is frozen yet.
    """
    root = Path(root)
    if not (root / FROZEN).is_file():
        raise KvcertError(f"{root / FROZEN} is missing: nothing is frozen yet; run `kvcert freeze`")
    content = _read(root)
    for name, expected in content["files"].items():
        path = root / name
        if not path.is_file():
            raise KvcertError(f"{path} is frozen and missing; restore it from the repository")
        if sha256_file(path) != expected:
            raise KvcertError(f"{path} changed after it was frozen; restore it, changes go to amendments.md")
    if _study_hash(root) != content["study"]["sha256"]:
        raise KvcertError(
            f"{root / CONFIG}: `study` changed after it was frozen; restore it, or use an overlay"
        )


def status(root: Path, config: dict[str, Any]) -> str:
    """`registered` when the study of `config` is the frozen one; `exploratory` otherwise, or when nothing is frozen."""
    return str(standing(root, config, check=False)["status"])


def standing(root: Path, config: dict[str, Any], check: bool = True) -> dict[str, Any]:
    """`{"status", "sha256", "date"}` for a claim's JSON; verifies the frozen files first unless `check` is False."""
    root = Path(root)
    if not (root / FROZEN).is_file():
        return {
            "status": "exploratory",
            "sha256": None,
            "date": None,
            "note": "nothing was frozen when this was scored",
        }
    if check:
        verify(root)
    content = _read(root)
    same = sha256_json(config["study"]) == content["study"]["sha256"]
    return {
        "status": "registered" if same else "exploratory",
        "sha256": content["sha256"],
        "date": content["date"],
    }


def _read(root: Path) -> dict[str, Any]:
    path = root / FROZEN
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        body = {key: value for key, value in content.items() if key != "sha256"}
        whole = set(content) == KEYS and sha256_json(body) == content["sha256"]
        whole = whole and set(content["files"]) == {str(name) for name in FILES}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise KvcertError(f"cannot read {path} ({error}); restore it from the repository") from None
    if not whole:
        raise KvcertError(
            f"{path} changed after it was written: its hash does not match; restore it from the repository"
        )
    return dict(content)


def _study_hash(root: Path) -> str:
    try:
        return sha256_json(load(root / CONFIG)["study"])
    except KvcertError as error:
        raise KvcertError(f"{root / CONFIG} is frozen and cannot be used ({error}); restore it") from None
