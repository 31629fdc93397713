"""amendments.md: an append-only chain. Every entry holds the hash of the one before; the first, of the registration."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError
from kvcert.files import sha256_json, write_atomic

AMENDMENTS = Path("preregistration/amendments.md")
#: Number of entries and hash of the last: an entry cut off at the end is missed here.
HEAD = Path("preregistration/AMENDED.json")
START = re.compile(r"^## Amendment (?=\d+, )", re.MULTILINE)
BLOCK = re.compile(r"^```json\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
KEYS = {
    "number",
    "date",
    "reason",
    "changes",
    "versions",
    "measured_shards",
    "registration",
    "previous",
    "sha256",
}
Entry = dict[str, Any]


def read_chain(root: Path, registration: str) -> list[Entry]:
    """The entries in order, when the chain holds from `registration` (FROZEN.json's hash) to its head.

    Raises
    ------
    KvcertError
        One line that names the file and the entry that was edited, lost, moved or added by hand.
    """
    path = Path(root) / AMENDMENTS
    if not path.is_file():
        if (Path(root) / HEAD).is_file():
            raise KvcertError(f"{path} is missing, {HEAD.name} says there are amendments; restore it")
        return []
    try:
        preface, sections = split(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise KvcertError(f"{path} is no UTF-8 text; restore it from the repository") from None
    entries: list[Entry] = []
    previous = genesis(registration, preface)
    for number, section in enumerate(sections, 1):
        entry = _parsed(path, number, section)
        if entry["number"] != number:
            raise KvcertError(
                f"{path}: amendment {number} is missing or moved: number {entry['number']} stands in its place"
            )
        body = {key: value for key, value in entry.items() if key != "sha256"}
        if entry["sha256"] != sha256_json(body) or section != render(entry):
            raise KvcertError(f"{path}: amendment {number} was edited after it was written")
        if entry["registration"] != registration or entry["previous"] != previous:
            before = "the preface or the registration" if number == 1 else f"amendment {number - 1}"
            raise KvcertError(
                f"{path}: amendment {number} does not follow {before}: edited, replaced or moved"
            )
        previous = entry["sha256"]
        entries.append(entry)
    _agree_with_head(Path(root), path, entries)
    return entries


def split(text: str) -> tuple[str, list[str]]:
    """The preface, and every entry's text with its heading."""
    places = [found.start() for found in START.finditer(text)]
    ends = [*places[1:], len(text)][: len(places)]
    return text[: places[0]] if places else text, [text[a:b] for a, b in zip(places, ends, strict=True)]


def genesis(registration: str, preface: str) -> str:
    """What the first entry follows: the registration and the page's preface."""
    return sha256_json(
        {"registration": registration, "preface": hashlib.sha256(preface.encode()).hexdigest()}
    )


def append(
    root: Path,
    registration: str,
    reason: str,
    changes: list[dict[str, Any]],
    versions: dict[str, Any] | None,
    measured: int,
) -> Entry:
    """Add one entry at the end and renew the head."""
    path, reason = Path(root) / AMENDMENTS, " ".join(reason.split())
    if not reason or "```" in reason or reason.startswith("#"):
        raise KvcertError("amend: --reason needs a sentence, without ``` and not beginning with #")
    entries = read_chain(root, registration)
    text = path.read_text(encoding="utf-8") if path.is_file() else "# Amendments\n"
    if not entries:
        text = text.rstrip("\n") + "\n\n"
    entry: Entry = {
        "number": len(entries) + 1,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "reason": reason,
        "changes": changes,
        "versions": versions,
        "measured_shards": measured,
        "registration": registration,
        "previous": entries[-1]["sha256"] if entries else genesis(registration, text),
    }
    entry["sha256"] = sha256_json(entry)
    write_atomic(path, text + render(entry))
    write_atomic(
        Path(root) / HEAD, json.dumps({"entries": entry["number"], "head": entry["sha256"]}, indent=1) + "\n"
    )
    return entry


def render(entry: Entry) -> str:
    """The entry as it stands in the file: for people, then for the check."""
    lines = [f"## Amendment {entry['number']}, {entry['date']}", "", entry["reason"], ""]
    lines += [f"Measured shards when it was written: {entry['measured_shards']}.", ""]
    for change in entry["changes"]:
        before = f"`{change['before']}`" if change["before"] else "not frozen before"
        lines.append(f"* {change['name']}: {before}, now `{change['after']}`")
    if not entry["changes"]:
        lines.append("* changes no frozen file")
    block = json.dumps(entry, indent=1, sort_keys=True, ensure_ascii=True)
    return "\n".join([*lines, "", "```json", block, "```", "", ""])


def _parsed(path: Path, number: int, section: str) -> Entry:
    found = BLOCK.search(section)
    try:
        entry = json.loads(found[1]) if found else None
    except ValueError:
        entry = None
    if not isinstance(entry, dict) or set(entry) != KEYS or not isinstance(entry["changes"], list):
        raise KvcertError(f"{path}: amendment {number} was edited: its machine-readable block is damaged")
    return entry


def _agree_with_head(root: Path, path: Path, entries: list[Entry]) -> None:
    head = root / HEAD
    try:
        told: dict[str, Any] = (
            json.loads(head.read_text()) if head.is_file() else {"entries": 0, "head": None}
        )
        count, last = int(told["entries"]), told["head"]
    except (OSError, ValueError, KeyError, TypeError):
        raise KvcertError(f"{head} is damaged; restore it from the repository") from None
    if count > len(entries):
        raise KvcertError(f"{path}: amendment {len(entries) + 1} is missing; {HEAD.name} counts {count}")
    if count < len(entries):
        raise KvcertError(f"{head}: counts {count} amendments, {path.name} holds {len(entries)}; restore it")
    if last != (entries[-1]["sha256"] if entries else None):
        raise KvcertError(f"{path}: amendment {count} is not the one that {HEAD.name} names")
