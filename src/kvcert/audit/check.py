"""Check a bundle from anywhere: bytes, registration, rows, the statistic again, the verdict, every derived page."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import kvcert
from kvcert.audit.derive import derive, difference
from kvcert.audit.manifest import MANIFEST, file_problems, read_manifest
from kvcert.audit.page import markdown, page
from kvcert.audit.provenance import of_logs
from kvcert.audit.registration_check import registration_problems
from kvcert.audit.rows_check import claim_row_problems, head_problems, run_problems, step_problems
from kvcert.audit.statements import disagreements, interval_problems, text_problems
from kvcert.errors import KvcertError
from kvcert.registry.claims_file import read_claims_file

NEEDED = (
    "claim.json", "config.json", "integrity.json", "registration/claims.yaml", "runs.parquet", "steps.parquet",
    "rows.parquet", "second.json", "controls.json", "examples.json", "provenance.json", "verdict.md", "verdict.html",
)  # fmt: skip


def problems(folder: Path, expected: str | None = None) -> list[str]:
    """Everything that is wrong with a bundle, one line each, beginning with the file's name; empty when it holds.

    Parameters
    ----------
    expected : the bundle's hash as it was announced; a bundle forged as a whole cannot have it.

    Raises
    ------
    KvcertError
        When there is no bundle, or its manifest was edited.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    if expected and manifest["sha256"] != expected:
        raise KvcertError(f"{folder / MANIFEST}: bundle {manifest['sha256']}, {expected} was announced")
    found = file_problems(folder, manifest)
    found += [f"{name}: is missing" for name in NEEDED if name not in manifest["files"]]
    return found or _content(folder, manifest)


def check(folder: Path, expected: str | None = None) -> dict[str, Any]:
    """The manifest of a bundle that holds.

    Raises
    ------
    KvcertError
        One line that names the first files with a problem.
    """
    found = problems(folder, expected)
    if found:
        more = f" (and {len(found) - 5} more)" if len(found) > 5 else ""
        raise KvcertError(f"{folder}: {'; '.join(found[:5])}{more}")
    return read_manifest(Path(folder))


def _content(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """What the manifest cannot know: whether the files' contents follow from each other and from the registration."""
    found: list[str] = []
    told: dict[str, Any] = {}
    for stem in ("claim", "config", "integrity", "second", "controls", "examples", "provenance"):
        found += _tried(f"{stem}.json", partial(_read_json, told, folder, stem))
    found += _tried("registration/claims.yaml", partial(_read_claims, told, folder))
    if found:
        return found
    name, claim, config = manifest["claim"], told["claim"], told["config"]
    if name not in told["claims"]["claims"] or claim.get("claim") != name:
        return [f"claim.json: is not claim {name}"]
    registered = told["claims"]["claims"][name]
    found += _tried("registration", partial(registration_problems, folder, claim, config), named=True)
    found += _tried("claim.json", partial(text_problems, claim, registered))
    if (manifest["registration"], manifest["verdict"]) != (claim["registration"], claim["verdict"]):
        found.append("MANIFEST.json: registration or verdict is not that of claim.json")
    for stem in ("runs", "steps"):
        found += _tried(f"{stem}.parquet", partial(_read_table, told, folder, stem))
    if "runs" not in told or "steps" not in told:
        return found
    first = config["study"]["constants"]["signal_steps"]
    found += _tried("runs.parquet", partial(run_problems, told["runs"], config))
    found += _tried("runs.parquet", partial(_counted, told["runs"], told["integrity"]))
    found += _tried(
        "steps.parquet or runs.parquet", partial(step_problems, told["runs"], told["steps"], first)
    )
    if name == "C1":
        found += _tried("heads.parquet", partial(head_problems, folder))
    return found or _derived(folder, manifest, told)


def _derived(folder: Path, manifest: dict[str, Any], told: dict[str, Any]) -> list[str]:
    """Everything made again from the rows."""
    name, claims = manifest["claim"], told["claims"]
    again: dict[str, Any] = {}

    def recompute() -> list[str]:
        again["found"], again["json"] = derive(folder, name, claims, told["config"]["study"]["scorer"])
        return []

    found = _tried("runs.parquet", recompute)
    if found:
        return found
    found += _tried("rows.parquet", partial(claim_row_problems, folder, again["found"]))
    found += _tried(
        "claim.json", partial(disagreements, told["claim"], claims["claims"][name], again["found"])
    )
    for stem, content in again["json"].items():
        found += _tried(f"{stem}.json", partial(_same, told[stem], content))
    errors = again["json"]["second"]["jackknife_error"]
    found += _tried("claim.json", partial(interval_problems, told["claim"], errors))
    logs = of_logs(told["runs"])
    found += _tried("provenance.json", lambda: _same(told["provenance"]["logs"], logs))
    return found + _pages(folder, manifest, told["claim"], told)


def _tried(name: str, run: Callable[[], list[str]], named: bool = False) -> list[str]:
    """A step's lines under its file's name; a step that cannot run is a problem of that file."""
    try:
        return [line if named else f"{name}: {line}" for line in run()]
    except Exception as error:  # a damaged bundle may fail anywhere; the reader needs the file's name
        return [f"{name}: cannot be used ({type(error).__name__}: {' '.join(str(error).split())[:120]})"]


def _read_json(told: dict[str, Any], folder: Path, stem: str) -> list[str]:
    told[stem] = json.loads((folder / f"{stem}.json").read_text())
    return []


def _read_claims(told: dict[str, Any], folder: Path) -> list[str]:
    told["claims"] = read_claims_file(folder / "registration/claims.yaml")
    return []


def _read_table(told: dict[str, Any], folder: Path, stem: str) -> list[str]:
    told[stem] = pq.read_table(folder / f"{stem}.parquet").to_pandas()
    return []


def _counted(runs: Any, integrity: dict[str, Any]) -> list[str]:
    return (
        []
        if len(runs) == integrity.get("runs")
        else [f"{len(runs)} runs, integrity.json says {integrity.get('runs')}"]
    )


def _same(told: Any, again: Any) -> list[str]:
    where = difference(told, again)
    return [f"`{where}` does not follow from the rows"] if where else []


def _pages(folder: Path, manifest: dict[str, Any], claim: dict[str, Any], told: dict[str, Any]) -> list[str]:
    """The pages written again from the bundle's own JSON; only the version that wrote them writes the same bytes."""
    if manifest["kvcert"] != kvcert.__version__:
        return []
    text = markdown(claim, {key: told[key] for key in ("second", "controls", "examples")}, told["provenance"])
    made = {"verdict.md": text, "verdict.html": page(claim, text)}
    wrong = [name for name, content in made.items() if (folder / name).read_bytes() != content.encode()]
    return [f"{name}: is not the page of this bundle's numbers" for name in wrong]
