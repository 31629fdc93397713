"""The bundle's copy of the registration: FROZEN.json, the chain of amendments, the frozen files, the study."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError
from kvcert.files import sha256_file, sha256_json
from kvcert.registry.frozen import CONFIG, FROZEN, Registration, registered

FOLDER = "registration"
#: What an amendment may change without any claim being scored otherwise.
NO_SCORE = {"versions", "preregistration/exhibits.yaml"}


def registration_problems(folder: Path, claim: dict[str, Any], config: dict[str, Any]) -> list[str]:
    """Lines, each beginning with a file's name; empty when the claim was scored under exactly this registration."""
    said = claim["registration"]
    if not (folder / FOLDER / FROZEN.name).is_file():
        wrong = said.get("sha256") is not None or said.get("status") != "exploratory"
        return [f"{FOLDER}/{FROZEN.name}: is missing, claim.json names a registration"] if wrong else []
    with tempfile.TemporaryDirectory() as place:  # the registry reads a project's folder
        root = Path(place)
        shutil.copytree(folder / FOLDER, root / "preregistration")
        try:
            found = registered(root)
        except KvcertError as error:
            return [_named(error, root)]
        problems = [
            f"{FOLDER}/{Path(name).name}: is not the registered file"
            for name, expected in found.files.items()
            if name != str(CONFIG) and _hash(root / name) != expected
        ]
    same = sha256_json(config["study"]) == found.study
    expected = {
        "status": "registered" if same else "exploratory", "sha256": found.sha256, "date": found.record["date"],
    }  # fmt: skip
    problems += [
        f"claim.json: registration.{k} is {said.get(k)}, it is {v}"
        for k, v in expected.items()
        if said.get(k) != v
    ]
    return problems + _chain_problems(said.get("amendments") or {"count": 0, "head": None}, found)


def _chain_problems(said: dict[str, Any], found: Registration) -> list[str]:
    """A claim may have been scored before the last amendments, when those changed nothing that it was scored by."""
    count, chain = said["count"], found.chain
    head = chain[count - 1]["sha256"] if 0 < count <= len(chain) else None
    if count > len(chain) or said["head"] != head:
        return [
            f"claim.json: scored under {count} amendments up to {said['head']}; {FOLDER} holds {len(chain)}, others"
        ]
    later = {change["name"] for entry in chain[count:] for change in entry["changes"]} - NO_SCORE
    named = ", ".join(sorted(later))
    return [f"claim.json: scored before an amendment of {named}; run `kvcert score` again"] if later else []


def _hash(path: Path) -> str | None:
    return sha256_file(path) if path.is_file() else None


def _named(error: KvcertError, root: Path) -> str:
    text = str(error).replace(f"{root}/preregistration/", f"{FOLDER}/")
    return text if text.startswith(FOLDER) else f"{FOLDER}: {json.dumps(text)[1:-1]}"
