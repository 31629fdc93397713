"""Write the crate: copies of code, configuration, registration and results, described by ro-crate-metadata.json.

Profiles: https://w3id.org/ro/wfrun/workflow/0.5 (Leo et al., PLoS ONE 2024, doi 10.1371/journal.pone.0309210).
"""

from __future__ import annotations

import datetime
import json
import mimetypes
import shutil
from pathlib import Path
from typing import Any

import kvcert
from kvcert.errors import KvcertError
from kvcert.files import sha256_file

METADATA = "ro-crate-metadata.json"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
LICENCE = "https://spdx.org/licenses/Apache-2.0"
MAIN = "Snakefile"
#: Code and inputs, from the project's folder.
CODE = (
    "workflow",
    "src/kvcert",
    "environment.yml",
    "requirements.lock",
    "pyproject.toml",
    "LICENSE",
    "CITATION.cff",
)
INPUTS = ("config", "preregistration")
#: Outputs, from the results folder; the logs come last and can be left out.
OUTPUTS = ("config.json", "integrity.json", "verdicts.csv", "claims", "tables", "audit")
LOGS = ("runs", "steps", "heads")
SKIP = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def write(results: Path, root: Path, config: dict[str, Any], out: Path, logs: bool = True) -> Path:
    """Write the crate of the run in `results` into `out`; return the path of its metadata.

    Parameters
    ----------
    logs : copy the Parquet logs too (they are most of its size).

    Raises
    ------
    KvcertError
        When the run is not finished, `rocrate` is missing, or `out` holds something else.
    """
    results, root, out = Path(results), Path(root), Path(out)
    try:
        from rocrate.model.contextentity import ContextEntity
        from rocrate.rocrate import ROCrate
    except ImportError:
        raise KvcertError("a crate needs the package rocrate; pip install 'kvcert[crate]'") from None
    for needed in ("integrity.json", "verdicts.csv", "config.json"):
        if not (results / needed).is_file():
            raise KvcertError(f"{results / needed} is missing: finish the run before its crate is written")
    if out.exists() and any(out.iterdir()) and not (out / METADATA).is_file():
        raise KvcertError(f"{out} holds something that is no crate; name another folder with --out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    crate = ROCrate(gen_preview=False)
    crate.name, crate.description = (
        "kvcert run",
        "Seven registered claims on error certificates for KV-cache eviction, scored",
    )
    crate.license = crate.add(
        ContextEntity(crate, LICENCE, properties={"@type": "CreativeWork", "name": "Apache License 2.0"})
    )
    kinds = [
        crate.add(
            ContextEntity(
                crate,
                url,
                properties={"@type": "CreativeWork", "name": name, "version": url.rsplit("/", 1)[1]},
            )
        )
        for url, name in PROFILES.items()
    ]
    _add(crate, out, root, CODE, "")
    inputs = _add(crate, out, root, INPUTS, "")
    outputs = _add(crate, out, results, (*OUTPUTS, *(LOGS if logs else ())), "results")
    figures = Path(config["run"]["figures"])
    figures = figures if figures.is_absolute() else root / figures
    if figures.is_dir():
        outputs += _add(crate, out, figures.parent, (figures.name,), "", rename="figures")
    _workflow(crate, out, root)
    crate.root_dataset["conformsTo"] = kinds
    _action(crate, results, root, inputs, outputs)
    crate.metadata.write(out)
    return out / METADATA


def _add(
    crate: Any, out: Path, base: Path, names: tuple[str, ...], under: str, rename: str | None = None
) -> list[Any]:
    """Copy files and folders that exist into the crate and describe every file: size, type, SHA-256."""
    found = []
    for name in names:
        source, target = base / name, out / under / (rename or name)
        if source.is_dir():
            shutil.copytree(source, target, ignore=SKIP, dirs_exist_ok=True)
            files = sorted(path for path in target.rglob("*") if path.is_file())
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            files = [target]
        else:
            continue
        for path in files:
            place = path.relative_to(out).as_posix()
            found.append(crate.add_file(path, place, properties=_about(path, place)))
    return found


def _about(path: Path, place: str) -> dict[str, str]:
    """What is said of every file."""
    kind = mimetypes.guess_type(place)[0] or "application/octet-stream"
    size = str(path.stat().st_size)
    return {"name": path.name, "contentSize": size, "sha256": sha256_file(path), "encodingFormat": kind}


def _workflow(crate: Any, out: Path, root: Path) -> None:
    """The Snakefile as the crate's main workflow."""
    if not (root / MAIN).is_file():
        raise KvcertError(f"{root / MAIN} is missing: write the crate from the project's folder")
    shutil.copyfile(root / MAIN, out / MAIN)
    about = _about(out / MAIN, MAIN) | {
        "name": "kvcert: registered reproduction as one graph",
        "version": kvcert.__version__,
    }
    crate.add_workflow(out / MAIN, MAIN, main=True, lang="snakemake", properties=about)


def _action(crate: Any, results: Path, root: Path, inputs: list[Any], outputs: list[Any]) -> None:
    """The run: when, by which software, from which inputs to which outputs."""
    from rocrate.model.contextentity import ContextEntity

    from kvcert.audit.provenance import commit

    times = [path.stat().st_mtime for path in results.rglob("*.parquet")] + [
        (results / "verdicts.csv").stat().st_mtime
    ]
    stamps = [
        datetime.datetime.fromtimestamp(t, datetime.UTC).isoformat(timespec="seconds")
        for t in (min(times), max(times))
    ]
    registration = json.loads((results / "claims" / "C1.json").read_text())["registration"] if (
        results / "claims" / "C1.json").is_file() else {}  # fmt: skip
    agent = crate.add(
        ContextEntity(
            crate,
            "#kvcert",
            properties={
                "@type": "SoftwareApplication",
                "name": "kvcert",
                "softwareVersion": kvcert.__version__,
            },
        )
    )
    told = f"registration {registration.get('sha256')} ({registration.get('status')})"
    action = crate.add(
        ContextEntity(
            crate,
            "#run",
            properties={
                "@type": "CreateAction", "name": "Run of the kvcert workflow", "startTime": stamps[0], "endTime": stamps[1],
                "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
                "description": f"Commit {commit(root)}; {told}",
            },
        )
    )  # fmt: skip
    action["instrument"], action["agent"] = crate.mainEntity, agent
    action["object"], action["result"] = inputs, outputs
    crate.root_dataset["mentions"] = [action]
    crate.root_dataset["datePublished"] = stamps[1]
