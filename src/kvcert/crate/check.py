"""What a Workflow Run RO-Crate must say, and whether its files are those it describes. Needs no `rocrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kvcert.crate.build import METADATA, PROFILES
from kvcert.errors import KvcertError
from kvcert.files import sha256_file

OF_ACTION = ("name", "startTime", "endTime", "instrument", "object", "result", "agent")
WORKFLOW = {"File", "SoftwareSourceCode", "ComputationalWorkflow"}


def problems(folder: Path) -> list[str]:
    """One line per missing property, dangling reference, missing, undescribed or changed file."""
    folder = Path(folder)
    try:
        graph = json.loads((folder / METADATA).read_text())["@graph"]
        known = {entity["@id"]: entity for entity in graph}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KvcertError(f"{folder / METADATA}: no RO-Crate metadata ({type(error).__name__})") from None
    found = [f"{METADATA}: no entity {name}" for name in (METADATA, "./") if name not in known]
    if found:
        return found
    root = known["./"]
    found += [
        f"./: no {key}"
        for key in ("name", "description", "datePublished", "license", "mainEntity", "hasPart")
        if not root.get(key)
    ]
    found += [f"./: does not conform to {url}" for url in PROFILES if url not in _ids(root.get("conformsTo"))]
    found += _workflow(known, root) + _actions(known, root)
    for entity in graph:
        found += [
            f"{entity['@id']}: refers to {name}, which is not described"
            for name in _references(entity)
            if name not in known
        ]
    return found + _files(folder, known)


def _workflow(known: dict[str, Any], root: dict[str, Any]) -> list[str]:
    main = known.get(next(iter(_ids(root.get("mainEntity"))), ""))
    if main is None:
        return ["./: mainEntity is not described"]
    lacks = WORKFLOW - set(_listed(main.get("@type")))
    found = [f"{main['@id']}: is no {kind}" for kind in sorted(lacks)]
    language = [known.get(name, {}) for name in _ids(main.get("programmingLanguage"))]
    if not any("ComputerLanguage" in _listed(entity.get("@type")) for entity in language):
        found.append(f"{main['@id']}: no programmingLanguage")
    return found


def _actions(known: dict[str, Any], root: dict[str, Any]) -> list[str]:
    actions = [entity for entity in known.values() if "CreateAction" in _listed(entity.get("@type"))]
    found = [] if actions else ["no CreateAction describes the run"]
    for action in actions:
        found += [f"{action['@id']}: no {key}" for key in OF_ACTION if not action.get(key)]
        if _ids(action.get("instrument")) != _ids(root.get("mainEntity")):
            found.append(f"{action['@id']}: its instrument is not the workflow")
        if action["@id"] not in _ids(root.get("mentions")):
            found.append(f"./: does not mention {action['@id']}")
    return found


def _files(folder: Path, known: dict[str, Any]) -> list[str]:
    found, described = [], set()
    for name, entity in known.items():
        if "File" not in _listed(entity.get("@type")):
            continue
        described.add(name)
        path = folder / name
        if not path.is_file():
            found.append(f"{name}: is missing")
        elif entity.get("sha256") != sha256_file(path):
            found.append(f"{name}: is not the file that was described: SHA-256 differs")
    here = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return found + [f"{name}: is not described" for name in sorted(here - described - {METADATA})]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _ids(value: Any) -> list[str]:
    return [item["@id"] for item in _listed(value) if isinstance(item, dict) and "@id" in item]


def _references(entity: dict[str, Any]) -> list[str]:
    names = [name for key, value in entity.items() if key != "@id" for name in _ids(value)]
    return [name for name in names if not name.startswith(("http://", "https://")) and name != entity["@id"]]
