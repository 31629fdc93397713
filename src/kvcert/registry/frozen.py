"""FROZEN.json: hashes of what was registered, and the refusal to go on when any of it changed."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kvcert
from kvcert.config import load
from kvcert.errors import KvcertError
from kvcert.exhibits import registration as exhibits
from kvcert.files import sha256_file, sha256_json, write_atomic
from kvcert.registry.amendments import Entry, read_chain
from kvcert.registry.claims_file import CLAIMS, load_claims
from kvcert.registry.versions import changed, described, versions

FROZEN = Path("preregistration/FROZEN.json")
#: Frozen byte for byte.
FILES = (CLAIMS, Path("preregistration/analysis-plan.md"))
#: The exhibits' file has a hash of its own in EXHIBITS.json. Scoring does not depend on it; `verify` checks it, and an
#: amendment may say what it is from then on.
OPTIONAL = (exhibits.FILE,)
#: Frozen in its scientific part `study`, resolved.
CONFIG = Path("config/config.yaml")
KEYS = {"version", "date", "kvcert", "files", "study", "sha256"}
#: Keys of every version of the record; version 2 added versions of code, models and texts.
KEYS_OF = {1: KEYS, 2: KEYS | {"versions"}}


@dataclass(frozen=True)
class Registration:
    """The frozen record with its amendments applied: what every file must hash to now."""

    record: dict[str, Any]
    chain: list[Entry]
    files: dict[str, str]
    study: str
    versions: dict[str, Any] | None
    exhibits: str | None = None

    @property
    def sha256(self) -> str:
        """The registration's own hash; amendments do not change it."""
        return str(self.record["sha256"])

    @property
    def head(self) -> str | None:
        """Hash of the last amendment."""
        return str(self.chain[-1]["sha256"]) if self.chain else None


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
            f"{root / FROZEN} exists: the registration is frozen already; changes go to amendments.md (`kvcert amend`)"
        )
    constants_agree(root, config["study"])
    study = study_hash(root)
    if sha256_json(config["study"]) != study:
        raise KvcertError(f"only the study of {CONFIG} can be frozen; freeze without an overlay")
    measured = sorted((root / config["run"]["results"]).glob("runs/*.parquet"))
    if measured:
        raise KvcertError(f"{measured[0]}: runs were measured already; freeze comes before the measured run")
    for path in FILES:
        if not (root / path).is_file():
            raise KvcertError(f"cannot freeze: {root / path} is missing")
    content: dict[str, Any] = {
        "version": 2,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "kvcert": kvcert.__version__,
        "files": {str(path): sha256_file(root / path) for path in FILES},
        "study": {"file": str(CONFIG), "sha256": study},
        "versions": versions(config["study"]),
    }
    content["sha256"] = sha256_json(content)
    write_atomic(root / FROZEN, json.dumps(content, indent=1) + "\n")
    return f"frozen on {content['date']}: registration {content['sha256']}"


def constants_agree(root: Path, study: dict[str, Any]) -> None:
    """Refuse when the constants of claims.yaml are not the study's."""
    if load_claims(root)["common"]["constants"] != study["constants"]:
        raise KvcertError(
            f"{CLAIMS}: common.constants are not study.constants of the configuration; make them equal"
        )


def verify(root: Path, strict: bool = False) -> None:
    """Return quietly when nothing frozen changed, amendments considered.

    Parameters
    ----------
    strict : also refuse when task definitions or scoring code are not the registered versions.

    Raises
    ------
    KvcertError
        One line that names the changed or missing file or amendment; also when nothing is frozen yet.
    """
    registration = registered(root)
    unchanged(root, registration)
    exhibits_unchanged(root, registration)
    if strict:
        found = code_notes(registration)
        if found:
            raise KvcertError(found[0])


def code_notes(registration: Registration) -> list[str]:
    """Lines about code that is not the registered version: named, and refused only by a strict check."""
    if registration.versions is None:
        return ["no version of the code is registered; `kvcert amend --versions` records the present one"]
    files = changed(registration.versions)
    return [f"code differs from the registered version: {', '.join(files)}"] if files else []


def registered(root: Path) -> Registration:
    """FROZEN.json and the chain of amendments, both whole; what they expect, not whether it is so."""
    root = Path(root)
    if not (root / FROZEN).is_file():
        raise KvcertError(f"{root / FROZEN} is missing: nothing is frozen yet; run `kvcert freeze`")
    record = _read(root)
    chain = read_chain(root, record["sha256"])
    own = str(exhibits.FILE)
    files: dict[str, Any] = {own: exhibits.frozen_sha256(root)} | record["files"]
    study, known = record["study"]["sha256"], record.get("versions")
    for entry in chain:
        for change in entry["changes"]:
            name = change["name"]
            before = (
                study if name == str(CONFIG) else _hash_of(known) if name == "versions" else files.get(name)
            )
            if change["before"] != before:
                raise KvcertError(f"amendment {entry['number']}: {name} was not {change['before']} before it")
            if name == str(CONFIG):
                study = change["after"]
            elif name == "versions":
                known = entry["versions"]
            else:
                files[name] = change["after"]
    last = files.pop(own)
    return Registration(record, chain, files, study, known, last)


def exhibits_unchanged(root: Path, registration: Registration) -> None:
    """Refuse when the exhibits' file is not as EXHIBITS.json or an amendment has it; nothing where neither names it."""
    path = Path(root) / exhibits.FILE
    if registration.exhibits is None:
        return
    if not path.is_file():
        raise KvcertError(f"{path} is registered and missing; restore it from the repository")
    if sha256_file(path) != registration.exhibits:
        raise KvcertError(f"{path} changed after it was registered; restore it, changes go to amendments.md")


def unchanged(root: Path, registration: Registration, but: frozenset[str] = frozenset()) -> None:
    """Refuse, naming the file, when a frozen file is not as registered or amended; files in `but` are left out."""
    root = Path(root)
    for name, expected in registration.files.items():
        if name in but:
            continue
        path = root / name
        if not path.is_file():
            raise KvcertError(f"{path} is frozen and missing; restore it from the repository")
        if sha256_file(path) != expected:
            raise KvcertError(f"{path} changed after it was frozen; restore it, changes go to amendments.md")
    if str(CONFIG) not in but and study_hash(root) != registration.study:
        raise KvcertError(
            f"{root / CONFIG}: `study` changed after it was frozen; restore it, or use an overlay"
        )


def status(root: Path, config: dict[str, Any]) -> str:
    """`registered` when the study of `config` is the frozen one; `exploratory` otherwise, or when nothing is frozen."""
    return str(standing(root, config, check=False)["status"])


def standing(root: Path, config: dict[str, Any], check: bool = True) -> dict[str, Any]:
    """What a claim's JSON says of its registration; verifies the frozen files first unless `check` is False.

    Returns
    -------
    `status`, `sha256`, `date`; `amendments` (`count`, `head`, names of amended files); `code` (hash, what changed).
    """
    root = Path(root)
    if not (root / FROZEN).is_file():
        return {
            "status": "exploratory",
            "sha256": None,
            "date": None,
            "note": "nothing was frozen when this was scored",
        }
    found = registered(root)
    if check:
        unchanged(root, found)
    same = sha256_json(config["study"]) == found.study
    names = sorted({c["name"] for entry in found.chain for c in entry["changes"] if c["name"] != "versions"})
    return {
        "status": "registered" if same else "exploratory",
        "sha256": found.sha256,
        "date": found.record["date"],
        "amendments": {"count": len(found.chain), "head": found.head, "files": names},
        "code": described(found.versions),
    }


def _hash_of(known: dict[str, Any] | None) -> str | None:
    return None if known is None else sha256_json(known)


def _read(root: Path) -> dict[str, Any]:
    path = root / FROZEN
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        whole = whole_record(content)
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise KvcertError(f"cannot read {path} ({error}); restore it from the repository") from None
    if not whole:
        raise KvcertError(
            f"{path} changed after it was written: its hash does not match; restore it from the repository"
        )
    return dict(content)


def whole_record(content: dict[str, Any]) -> bool:
    """Whether a record has its version's keys, names the frozen files, and its own hash holds."""
    body = {key: value for key, value in content.items() if key != "sha256"}
    names, known = set(content["files"]), {str(name) for name in FILES}
    return (
        set(content) == KEYS_OF.get(content["version"])
        and sha256_json(body) == content["sha256"]
        and known <= names <= known | {str(name) for name in OPTIONAL}
    )


def study_hash(root: Path) -> str:
    """Hash of the resolved `study` of config/config.yaml."""
    try:
        return sha256_json(load(root / CONFIG)["study"])
    except KvcertError as error:
        raise KvcertError(f"{root / CONFIG} is frozen and cannot be used ({error}); restore it") from None
