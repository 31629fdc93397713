"""The LongBench files of a grid, from a local folder or from the hub: checked, copied into the cache, named by hash."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError
from kvcert.files import canonical_json, replacing, sha256_file, write_atomic
from kvcert.tasks.longbench import rows
from kvcert.tasks.longbench.catalogue import PREFIX, dataset, needed
from kvcert.tasks.longbench.task import FOLDER

#: The official dataset (THUDM/LongBench redirects there) and the commit whose files are taken.
REPOSITORY = "zai-org/LongBench"
REVISION = "5e628be450b7e67fb7ae6e201bd6d8f7056f7672"
ARCHIVE = "data.zip"

LICENCE = "MIT (LongBench); the constituent datasets keep their own licences"
ATTRIBUTION = "LongBench: Y. Bai, X. Lv, J. Zhang et al. (ACL 2024), https://github.com/THUDM/LongBench"


def prepare_longbench(config: dict[str, Any], cache: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Put every LongBench file that the grid reads into `{cache}/texts/longbench`; return their manifest entries.

    From `run.longbench`, a folder of official jsonl files, or from the hub where that is empty. What is there from the
    same source with the right hash is kept. A file with a bad row, or with fewer rows than examples, is refused.
    """
    given, target = config["run"].get("longbench", ""), cache / "texts" / FOLDER
    entries = {}
    for name in needed(config["study"]):
        path = target / f"{name}.jsonl"
        entry = _record(path)
        if not _current(entry, path, given, name):
            entry = _take(name, Path(given) if given else None, path)
        _check_rows(config["study"], name, int(entry["rows"]), path)
        entries[name] = entry
    if entries:
        say(f"LongBench: {', '.join(entries)} ready, from {given or REPOSITORY}")
    return entries


def _current(entry: dict[str, Any], path: Path, given: str, name: str) -> bool:
    """True when the cache holds this very file: of the folder as it is now, or of the pinned revision."""
    if not path.is_file() or entry.get("sha256") != sha256_file(path):
        return False
    if not given:
        return bool(entry.get("source") == _hub_name(name))
    original = Path(given) / path.name
    return (
        original.is_file() and sha256_file(original) == entry["sha256"] and entry["source"] == str(original)
    )


def _take(name: str, folder: Path | None, path: Path) -> dict[str, Any]:
    """Copy one file into the cache, checked before it is seen there, and its record beside it."""
    source = str(folder / path.name) if folder else _hub_name(name)
    with replacing(path) as temporary:
        if folder:
            _copy(folder, name, temporary)
        else:
            _unpack(_download(name), name, temporary)
        found = rows.read(temporary, dataset(name), source)
    entry = {
        "sha256": found.sha256,
        "rows": len(found.rows),
        "source": source,
        "licence": LICENCE,
        "attribution": ATTRIBUTION,
    }
    write_atomic(path.with_suffix(".json"), canonical_json(entry))
    return entry


def _copy(folder: Path, name: str, target: Path) -> None:
    if not folder.is_dir():
        raise KvcertError(
            f"run.longbench: no folder {folder}; name the folder of the official jsonl files, or leave it empty for the hub"
        )
    try:
        shutil.copyfile(folder / f"{name}.jsonl", target)
    except FileNotFoundError:
        there = ", ".join(sorted(path.stem for path in folder.glob("*.jsonl"))) or "no jsonl file"
        raise KvcertError(
            f"run.longbench: {folder} has no {name}.jsonl, which {PREFIX}{name} reads; it has {there}"
        ) from None


def _download(name: str) -> Path:
    """The archive of all files at the pinned revision, from the hub's own cache where it is there."""
    try:
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(REPOSITORY, ARCHIVE, repo_type="dataset", revision=REVISION))
    except Exception as error:
        raise KvcertError(
            f"LongBench {name}: {REPOSITORY} is neither cached nor reachable ({type(error).__name__}); put the official "
            f"jsonl files into a folder and name it in run.longbench"
        ) from None


def _unpack(archive: Path, name: str, target: Path) -> None:
    try:
        with (
            zipfile.ZipFile(archive) as files,
            files.open(f"data/{name}.jsonl") as source,
            open(target, "wb") as sink,
        ):
            shutil.copyfileobj(source, sink, 1 << 20)
    except KeyError:
        raise KvcertError(f"LongBench {name}: {archive} holds no data/{name}.jsonl") from None
    except zipfile.BadZipFile:
        raise KvcertError(f"LongBench {name}: {archive} is not a readable archive; delete it") from None


def _hub_name(name: str) -> str:
    return f"{REPOSITORY}@{REVISION}:{ARCHIVE}/data/{name}.jsonl"


def _record(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.with_suffix(".json").read_text()))
    except (OSError, ValueError):
        return {}


def _check_rows(study: dict[str, Any], name: str, count: int, path: Path) -> None:
    for index, task in enumerate(study["tasks"]):
        if task["name"] == PREFIX + name and task["examples"] > count:
            raise KvcertError(
                f"study.tasks[{index}].examples: {task['examples']} are asked for, but {path.name} has {count} rows; "
                f"set it to {count} or fewer"
            )
