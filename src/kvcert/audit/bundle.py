"""Build the evidence bundle of one claim."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import kvcert
from kvcert import registry
from kvcert.audit.derive import derive, rows_table
from kvcert.audit.gather import gather
from kvcert.audit.manifest import MANIFEST, write_manifest
from kvcert.audit.page import markdown, page
from kvcert.audit.provenance import provenance
from kvcert.audit.registration_check import registration_problems
from kvcert.audit.statements import disagreements
from kvcert.errors import KvcertError
from kvcert.files import write_atomic
from kvcert.logs.integrity import require_gate

#: The registration's files, copied byte for byte.
REGISTRATION = (
    "preregistration/claims.yaml", "preregistration/analysis-plan.md", "preregistration/FROZEN.json",
    "preregistration/amendments.md", "preregistration/AMENDED.json", "preregistration/exhibits.yaml",
    "preregistration/EXHIBITS.json",
)  # fmt: skip


def build(name: str, results: Path, root: Path, config: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write the bundle of claim `name` into the folder `out`, replacing a bundle that lies there; return its manifest.

    Raises
    ------
    KvcertError
        When the claim was not scored, the gate was not passed, a frozen file changed, `out` is not a bundle's folder,
        or the second computation does not give what the claim's JSON says.
    """
    results, root, out = Path(results), Path(root), Path(out)
    claims = registry.load_claims(root)
    if name not in claims["claims"]:
        raise KvcertError(f"unknown claim {name!r}; the claims are {', '.join(claims['claims'])}")
    scored = results / "claims" / f"{name}.json"
    if not scored.is_file():
        raise KvcertError(f"{scored} is missing; run `kvcert score` first")
    registry.standing(root, config)
    if out.exists() and any(out.iterdir()) and not (out / MANIFEST).is_file():
        raise KvcertError(f"{out} holds something that is no audit bundle; name another folder with --out")
    parts = out.parent / f".{out.name}.partial"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(parents=True)
    try:
        manifest = _fill(parts, name, results, root, config, claims)
        shutil.rmtree(out, ignore_errors=True)
        parts.replace(out)
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    return manifest


def _fill(
    folder: Path, name: str, results: Path, root: Path, config: dict[str, Any], claims: dict[str, Any]
) -> dict[str, Any]:
    claim_file = results / "claims" / f"{name}.json"
    try:
        claim = json.loads(claim_file.read_text())
    except ValueError:
        raise KvcertError(f"{claim_file} is not valid JSON; run `kvcert score` again") from None
    shutil.copyfile(claim_file, folder / "claim.json")
    for part in REGISTRATION:
        if (root / part).is_file():
            (folder / "registration").mkdir(exist_ok=True)
            shutil.copyfile(root / part, folder / "registration" / Path(part).name)
    put(folder / "config.json", config)
    put(folder / "integrity.json", require_gate(results))
    wrong = registration_problems(folder, claim, config)
    if wrong:
        raise KvcertError(f"{claim_file}: {wrong[0]}")
    wanted = {"policy": claims["common"]["policy"], "regime": claims["claims"][name]["scope"]["regime"]}
    gather(results, config, folder, wanted if name == "C1" else None)
    found, derived = derive(folder, name, claims, config["study"]["scorer"])
    problems = disagreements(claim, claims["claims"][name], found)
    if problems:
        raise KvcertError(
            f"{claim_file} is not what these logs give ({problems[0]}); run `kvcert score` again"
        )
    pq.write_table(rows_table(found), folder / "rows.parquet", compression="zstd")
    runs = pq.read_table(folder / "runs.parquet").to_pandas()
    where = provenance(name, runs, config, claims, root)
    stems = {**derived, "provenance": where}
    for stem, content in stems.items():
        put(folder / f"{stem}.json", content)
    # The page is made of what the files say, so that the check can make it again.
    told = {stem: json.loads((folder / f"{stem}.json").read_text()) for stem in stems}
    text = markdown(claim, told, told["provenance"])
    write_atomic(folder / "verdict.md", text)
    write_atomic(folder / "verdict.html", page(claim, text))
    head = {
        "claim": name,
        "kvcert": kvcert.__version__,
        "verdict": claim["verdict"],
        "registration": claim["registration"],
    }
    return write_manifest(folder, head)


def put(path: Path, content: Any) -> None:
    """JSON, indented, with sorted keys."""
    write_atomic(
        path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"
    )
