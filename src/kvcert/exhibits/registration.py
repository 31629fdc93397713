"""preregistration/exhibits.yaml: what each exhibit measures and what is expected of it, with a hash of its own."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import yaml

from kvcert.errors import KvcertError
from kvcert.exhibits import EXHIBITS
from kvcert.files import sha256_file, write_atomic

FILE = Path("preregistration/exhibits.yaml")
FROZEN = Path("preregistration/EXHIBITS.json")
#: How a measured value is held against its line.
DIRECTIONS = ("at_least", "at_most", "above", "below", "equal")
ENTRY = {"title", "question", "method", "parameters", "expectations"}
EXPECTATION = {"id", "statement", "direction", "line"}


def load(root: Path) -> dict[str, Any]:
    """The registered exhibits by name: title, question, method, parameters, expectations.

    Raises
    ------
    KvcertError when the file is missing, an exhibit or an expectation is incomplete, or a name is not known.
    """
    path = Path(root) / FILE
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise KvcertError(f"{path}: cannot be read ({error})") from None
    found = content.get("exhibits") if isinstance(content, dict) else None
    if not isinstance(found, dict) or set(found) != set(EXHIBITS):
        raise KvcertError(f"{path}: `exhibits` must hold exactly {', '.join(EXHIBITS)}")
    seen: set[str] = set()
    for name, entry in found.items():
        if set(entry) != ENTRY:
            raise KvcertError(f"{path}: {name} must hold exactly {', '.join(sorted(ENTRY))}")
        for number, expectation in enumerate(entry["expectations"]):
            where = f"{path}: {name}.expectations[{number}]"
            if set(expectation) != EXPECTATION or expectation["direction"] not in DIRECTIONS:
                raise KvcertError(
                    f"{where}: needs {', '.join(sorted(EXPECTATION))}; direction is one of {', '.join(DIRECTIONS)}"
                )
            if not isinstance(expectation["line"], (int, float)) or expectation["id"] in seen:
                raise KvcertError(f"{where}: its line must be a number and its id its own")
            seen.add(expectation["id"])
    return found


def freeze(root: Path) -> str:
    """Write EXHIBITS.json, once; returns the hash.

    Raises
    ------
    KvcertError when it exists already: what changes later is a dated amendment (`kvcert amend`).
    """
    root = Path(root)
    if (root / FROZEN).exists():
        raise KvcertError(f"{root / FROZEN} exists: the exhibits are registered already")
    load(root)
    digest = sha256_file(root / FILE)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    content = {"version": 1, "date": today, "file": str(FILE), "sha256": digest}
    write_atomic(root / FROZEN, json.dumps(content, indent=1) + "\n")
    return digest


def frozen_sha256(root: Path) -> str | None:
    """The hash in EXHIBITS.json; None when nothing was registered.

    Raises
    ------
    KvcertError when it cannot be read.
    """
    path = Path(root) / FROZEN
    if not path.is_file():
        return None
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KvcertError(f"{path}: cannot be read ({error}); restore it from the repository") from None


def status(root: Path) -> dict[str, str | None]:
    """`{"status": …, "sha256": …}` of the exhibits' file as it lies there.

    `registered` as EXHIBITS.json has it, `amended` as a later entry of amendments.md has it, `changed` against both,
    `not registered` where nothing was.
    """
    root = Path(root)
    digest, frozen = sha256_file(root / FILE), frozen_sha256(root)
    if frozen is None:
        return {"status": "not registered", "sha256": digest}
    if frozen == digest:
        return {"status": "registered", "sha256": digest}
    from kvcert.registry.frozen import FROZEN as CLAIMS_FROZEN
    from kvcert.registry.frozen import registered

    amended = (root / CLAIMS_FROZEN).is_file() and registered(root).exhibits == digest
    return {"status": "amended" if amended else "changed", "sha256": digest}
