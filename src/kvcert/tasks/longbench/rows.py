"""Official LongBench jsonl files: read whole, every row checked; what is wrong is named by file and line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError
from kvcert.tasks.longbench.catalogue import Dataset, dataset

#: Every official row has these. Only `all_classes` may be null.
FIELDS: dict[str, type] = {
    "_id": str,
    "input": str,
    "context": str,
    "answers": list,
    "all_classes": list,
    "dataset": str,
    "language": str,
    "length": int,
}


@dataclass(frozen=True)
class Row:
    """One item: `text` is the official `context`, `line` its line in the file, counted from 1."""

    id: str
    input: str
    text: str
    answers: tuple[str, ...]
    classes: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class File:
    """The rows of a file, and the SHA-256 of the bytes that they were read from."""

    rows: tuple[Row, ...]
    sha256: str


def load(folder: Path, name: str) -> File:
    """The prepared file of dataset `name` in `folder`, or a KvcertError that says how to get it."""
    path = folder / f"{name}.jsonl"
    try:
        stamp = path.stat()
    except OSError:
        raise KvcertError(f"LongBench {name}: {path} is missing; run `kvcert prepare` first") from None
    return _load(path, name, stamp.st_size, stamp.st_mtime_ns)


@lru_cache(maxsize=2)
def _load(path: Path, name: str, size: int, changed: int) -> File:
    return read(path, dataset(name))


def read(path: Path, kind: Dataset, shown: str | None = None) -> File:
    """An official file, every row of it checked.

    Parameters
    ----------
    path, kind
        The file, and the dataset that it must hold.
    shown
        The file's name in messages; the path itself unless given.

    Raises
    ------
    KvcertError
        A line that is not JSON, a field that is missing, empty or of another type, another dataset or language, an
        identifier given twice, no row at all: one line that names file and line.
    """
    shown = shown or str(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise KvcertError(f"{shown}: cannot be read ({error.strerror or error})") from None
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if not lines:
        raise KvcertError(f"{shown}: holds no rows")
    seen: dict[str, int] = {}
    rows = []
    for number, line in enumerate(lines, 1):
        where = f"{shown}, line {number}"
        row = _row(_parse(line, where), kind, number, where)
        if (first := seen.setdefault(row.id, number)) != number:
            raise KvcertError(f"{where}: _id {row.id!r} is that of line {first}; every row needs its own")
        rows.append(row)
    return File(tuple(rows), hashlib.sha256(content).hexdigest())


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise KvcertError(f"{where}: is not UTF-8 text; an official jsonl file is needed") from None
    except ValueError as error:
        reason = str(error).partition(":")[0]
        raise KvcertError(f"{where}: is not JSON ({reason}); one object a line is needed") from None
    if not isinstance(value, dict):
        raise KvcertError(f"{where}: is a {type(value).__name__}, not an object with fields")
    return value


def _row(value: dict[str, Any], kind: Dataset, line: int, where: str) -> Row:
    for field, wanted in FIELDS.items():
        if field not in value:
            raise KvcertError(f"{where}: field {field} is missing; official rows have {', '.join(FIELDS)}")
        if field == "all_classes" and value[field] is None:
            continue
        if not isinstance(value[field], wanted) or isinstance(value[field], bool):
            found = type(value[field]).__name__
            raise KvcertError(f"{where}: field {field} is of type {found}, {wanted.__name__} is needed")
    _check_kind(value, kind, where)
    classes = value["all_classes"] or []
    for field, items in (("answers", value["answers"]), ("all_classes", classes)):
        if any(not isinstance(item, str) for item in items):
            raise KvcertError(f"{where}: field {field} holds something else than text")
    if not any(answer.strip() for answer in value["answers"]):
        raise KvcertError(f"{where}: answers are empty; such a row cannot be scored")
    if kind.has_classes and not classes:
        raise KvcertError(f"{where}: all_classes is empty; {kind.name} is scored by its classes")
    for field in ("_id", "context", *(["input"] if kind.has_input else [])):
        if not value[field].strip():
            raise KvcertError(f"{where}: field {field} is empty")
    return Row(value["_id"], value["input"], value["context"], tuple(value["answers"]), tuple(classes), line)


def _check_kind(value: dict[str, Any], kind: Dataset, where: str) -> None:
    """The row must be of this dataset (files of LongBench-E may give the family's name) and in its language."""
    if value["dataset"] not in (kind.name, kind.family):
        raise KvcertError(f"{where}: dataset is {value['dataset']!r}, the file must hold {kind.name}")
    language = value["language"]
    if kind.language == "code":
        # Rows name their programming language; which spellings occur is not for us to say.
        wrong, wanted = language in ("", "zh"), "a programming language"
    else:
        wrong, wanted = language != kind.language, repr(kind.language)
    if wrong:
        raise KvcertError(f"{where}: language is {language!r}, {kind.name} is in {wanted}")
