"""`kvcert amend`: what had to change after freezing, written down before it counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvcert.config import load
from kvcert.errors import KvcertError
from kvcert.files import sha256_file, sha256_json
from kvcert.registry.amendments import append
from kvcert.registry.frozen import CONFIG, FILES, OPTIONAL, constants_agree, registered, study_hash, unchanged
from kvcert.registry.versions import versions

#: Files that an amendment may replace or freeze.
ALLOWED = {str(path) for path in (*FILES, *OPTIONAL, CONFIG)}


def amend(
    root: Path, config: dict[str, Any], reason: str, files: Sequence[str] = (), with_versions: bool = False
) -> str:
    """Append one entry to amendments.md and return one line for the console.

    Parameters
    ----------
    config : resolved configuration; its results folder says whether runs were measured already.
    files : frozen files that were edited, or files to freeze from now on; each must differ from what is registered.
    with_versions : register the present versions of code, models and texts.

    Raises
    ------
    KvcertError
        When nothing is frozen, a file that is not named changed too, or a named one did not change.
    """
    root = Path(root)
    found = registered(root)
    names = list(dict.fromkeys(Path(name).as_posix() for name in files))
    for name in names:
        if name not in ALLOWED:
            raise KvcertError(
                f"amend: {name} is nothing that a registration freezes; there are {', '.join(sorted(ALLOWED))}"
            )
    unchanged(root, found, frozenset(names))
    before_of = found.files | {str(CONFIG): found.study, str(OPTIONAL[0]): found.exhibits}
    changes = [_change(root, name, before_of.get(name)) for name in names]
    study = load(root / CONFIG)["study"]
    constants_agree(root, study)
    recorded = versions(study) if with_versions else None
    if recorded is not None:
        before = sha256_json(found.versions) if found.versions is not None else None
        if sha256_json(recorded) == before:
            raise KvcertError("amend: the present versions are registered already")
        changes.append({"name": "versions", "before": before, "after": sha256_json(recorded)})
    measured = len(list((root / config["run"]["results"]).glob("runs/*.parquet")))
    entry = append(root, found.sha256, reason, changes, recorded, measured)
    return f"amendment {entry['number']} of {entry['date']}: {len(changes)} changes, chain {entry['sha256']}"


def _change(root: Path, name: str, before: str | None) -> dict[str, Any]:
    path = root / name
    if not path.is_file():
        raise KvcertError(f"amend: {path} is missing")
    after = study_hash(root) if name == str(CONFIG) else sha256_file(path)
    if after == before:
        raise KvcertError(f"amend: {path} is as registered; edit it first, then amend")
    return {"name": name, "before": before, "after": after}
