"""MANIFEST.json: SHA-256 of every file's bytes and of every table's canonical rows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kvcert.errors import KvcertError
from kvcert.files import sha256_file, sha256_json, write_atomic

MANIFEST = "MANIFEST.json"
VERSION = 1


def table_sha256(table: pa.Table) -> str:
    """SHA-256 of a table's values, column by column: independent of compression, encoding and chunks."""
    digest = hashlib.sha256()
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        digest.update(f"{name}:{column.type}:{len(column)}\n".encode())
        if (
            pa.types.is_floating(column.type)
            or pa.types.is_integer(column.type)
            or pa.types.is_boolean(column.type)
        ):
            nulls = column.is_null().to_numpy(zero_copy_only=False)
            digest.update(np.packbits(nulls).tobytes())
            plain = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
            values = plain.to_numpy(zero_copy_only=False)
            digest.update(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes())
        else:
            digest.update(json.dumps(column.to_pylist(), ensure_ascii=True).encode())
    return digest.hexdigest()


def write_manifest(folder: Path, head: dict[str, Any]) -> dict[str, Any]:
    """Hash everything in `folder`, write MANIFEST.json and return it; its own `sha256` names the whole bundle."""
    content: dict[str, Any] = {"version": VERSION, **head, "files": {}, "rows": {}}
    for path in listed(folder):
        name = path.relative_to(folder).as_posix()
        content["files"][name] = {"sha256": sha256_file(path), "bytes": path.stat().st_size}
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            content["rows"][name] = {"rows": table.num_rows, "sha256": table_sha256(table)}
    content["sha256"] = sha256_json(content)
    write_atomic(folder / MANIFEST, json.dumps(content, indent=1, sort_keys=True) + "\n")
    return content


def listed(folder: Path) -> list[Path]:
    """Every file of a bundle but the manifest, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest, when it is one and its own hash holds."""
    path = Path(folder) / MANIFEST
    try:
        content = json.loads(path.read_text())
        body = {key: value for key, value in content.items() if key != "sha256"}
        whole = content["version"] == VERSION and content["sha256"] == sha256_json(body)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise KvcertError(f"{path}: no manifest of an audit bundle ({type(error).__name__})") from None
    if not whole:
        raise KvcertError(f"{path}: changed after it was written: its own hash does not hold")
    return dict(content)


def file_problems(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """One line for every file that is missing, added or changed, and for every table whose rows changed."""
    problems, present = [], {path.relative_to(folder).as_posix() for path in listed(folder)}
    problems += [f"{name}: is not in the manifest" for name in sorted(present - set(manifest["files"]))]
    for name, record in sorted(manifest["files"].items()):
        if name not in present:
            problems.append(f"{name}: is missing")
        elif sha256_file(folder / name) != record["sha256"]:
            problems.append(f"{name}: changed: its SHA-256 is not the manifest's")
    for name, record in sorted(manifest["rows"].items()):
        if any(line.startswith(f"{name}:") for line in problems):
            continue
        table = pq.read_table(folder / name)
        if (table.num_rows, table_sha256(table)) != (record["rows"], record["sha256"]):
            problems.append(f"{name}: its rows are not those of the manifest")
    return problems
