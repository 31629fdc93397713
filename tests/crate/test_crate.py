"""The crate of a run says what the Workflow Run RO-Crate profiles ask for, and its files are those it describes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvcert import cli, config
from kvcert.claims import score_all
from kvcert.crate import problems, write
from kvcert.crate.build import METADATA, PROFILES
from kvcert.errors import KvcertError
from kvcert.logs.integrity import check as gate
from synthetic import write_logs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A small scored study outside the repository."""
    results = tmp_path_factory.mktemp("run") / "results"
    resolved = config.load(ROOT / "config/config.yaml")
    resolved["study"]["tasks"] = [task | {"examples": 3} for task in resolved["study"]["tasks"][2:4]]
    resolved["study"]["max_new_tokens"] = 4
    resolved["run"] |= {"results": str(results), "figures": str(results / "plots")}
    write_logs(results, resolved, 0, layers=1, kv_heads=1)
    gate(results, resolved)
    score_all(results, ROOT, resolved)
    (results / "plots").mkdir()
    (results / "plots" / "verdicts.png").write_bytes(b"\x89PNG")
    return resolved


@pytest.fixture(scope="module")
def crate(study: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crate, written once."""
    out = tmp_path_factory.mktemp("crate") / "run"
    return write(Path(study["run"]["results"]), ROOT, study, out).parent


@pytest.fixture
def copied(crate: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(crate, tmp_path / "copy"))


def graph(folder: Path) -> dict[str, Any]:
    return {entity["@id"]: entity for entity in json.loads((folder / METADATA).read_text())["@graph"]}


def test_it_is_a_workflow_run_crate(crate: Path) -> None:
    assert problems(crate) == []
    known = graph(crate)
    root = known["./"]
    assert {kind["@id"] for kind in root["conformsTo"]} == set(PROFILES)
    assert known[METADATA]["about"] == {"@id": "./"}
    assert known[METADATA]["conformsTo"]["@id"].startswith("https://w3id.org/ro/crate/1.")
    main = known[root["mainEntity"]["@id"]]
    assert set(main["@type"]) == {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
    action = next(entity for entity in known.values() if entity["@type"] == "CreateAction")
    assert action["instrument"] == {"@id": main["@id"]}
    assert action["startTime"] <= action["endTime"]
    results = {item["@id"] for item in action["result"]}
    assert {"results/verdicts.csv", "results/claims/C6.json", "figures/verdicts.png"} <= results
    assert any(name.startswith("results/heads/") for name in results)
    assert {"config/config.yaml", "preregistration/FROZEN.json"} <= {item["@id"] for item in action["object"]}
    parts = {item["@id"] for item in root["hasPart"]}
    assert results <= parts
    assert not [name for name in parts if "__pycache__" in name or name.startswith(".")]


DAMAGE: dict[str, tuple[Callable[[Path, dict[str, Any]], None], str]] = {
    "a changed file": (lambda folder, known: (folder / "results/verdicts.csv").write_text("\n"), "results/verdicts.csv"),
    "a lost file": (lambda folder, known: (folder / "Snakefile").unlink(), "Snakefile: is missing"),
    "a file more": (lambda folder, known: (folder / "notes.txt").write_text("x"), "notes.txt: is not described"),
    "no licence": (lambda folder, known: known["./"].pop("license"), "no license"),
    "no profile": (lambda folder, known: known["./"].pop("conformsTo"), "does not conform"),
    "no workflow": (lambda folder, known: known["./"].update(mainEntity={"@id": "nowhere"}), "mainEntity"),
    "no language": (lambda folder, known: known["Snakefile"].pop("programmingLanguage"), "programmingLanguage"),
    "no run": (lambda folder, known: known.pop("#run"), "CreateAction"),
    "no instrument": (lambda folder, known: known["#run"].pop("instrument"), "instrument"),
    "no end": (lambda folder, known: known["#run"].pop("endTime"), "endTime"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_what_is_wrong_is_named(what: str, copied: Path) -> None:
    damage, named = DAMAGE[what]
    known = graph(copied)
    damage(copied, known)
    content = json.loads((copied / METADATA).read_text())
    (copied / METADATA).write_text(json.dumps(content | {"@graph": list(known.values())}))
    assert any(named in line for line in problems(copied))


def test_logs_can_stay_out(study: dict[str, Any], tmp_path: Path) -> None:
    folder = write(Path(study["run"]["results"]), ROOT, study, tmp_path / "light", logs=False).parent
    assert problems(folder) == []
    assert not list(folder.rglob("*.parquet"))


def test_it_refuses(study: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/x").write_text("precious")
    with pytest.raises(KvcertError, match="no crate"):
        write(Path(study["run"]["results"]), ROOT, study, tmp_path / "mine")
    (tmp_path / "results").mkdir()
    with pytest.raises(KvcertError, match="finish the run"):
        write(tmp_path / "results", ROOT, study, tmp_path / "out")
    with pytest.raises(KvcertError, match="no RO-Crate metadata"):
        problems(tmp_path)


def test_the_command(
    study: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    out = tmp_path / "crate"
    assert cli.main(["--results", study["run"]["results"], "crate", "--out", str(out), "--without-logs"]) == 0
    assert str(out / METADATA) in capsys.readouterr().out
