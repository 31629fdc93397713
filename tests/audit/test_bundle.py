"""What a bundle holds, what refuses, what the controls say, and that none of it needs torch or the first computation."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from audit_project import Project

from kvcert import audit, cli, registry
from kvcert.audit.controls import controls
from kvcert.audit.page import markdown, page
from kvcert.audit.second import compute
from kvcert.errors import KvcertError
from kvcert.registry import load_claims

PACKAGE = Path(audit.__file__).parent


def test_no_code_is_shared_with_the_claims() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 15
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [
                name for name in names if name.startswith(("kvcert.claims", "torch", "transformers"))
            ], path
            assert "import_module" not in ast.dump(node)


def test_a_check_loads_neither_torch_nor_the_claims(bundle: Callable[[str], Path]) -> None:
    code = (
        "import sys; from pathlib import Path; from kvcert.audit import check; check(Path(sys.argv[1]))\n"
        "bad = [n for n in sys.modules if n.split('.')[0] in ('torch', 'transformers') or n.startswith('kvcert.claims')]\n"
        "sys.exit(f'imported: {bad}' if bad else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(bundle("C6"))],
        capture_output=True,
        text=True,
        cwd="/",
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parents[1])},
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["C1", "C6"])
def test_what_a_bundle_holds(name: str, bundle: Callable[[str], Path], project: Project) -> None:
    folder = bundle(name)
    held = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    always = {"claim.json", "config.json", "runs.parquet", "rows.parquet", "steps.parquet", "second.json", "controls.json",
              "examples.json", "provenance.json", "verdict.md", "verdict.html", "MANIFEST.json", "integrity.json",
              "registration/claims.yaml", "registration/analysis-plan.md", "registration/FROZEN.json",
              "registration/amendments.md", "registration/AMENDED.json"}  # fmt: skip
    assert held == always | ({"heads.parquet", "counts.parquet"} if name == "C1" else set())
    assert (folder / "claim.json").read_bytes() == (project.results / "claims" / f"{name}.json").read_bytes()
    second = json.loads((folder / "second.json").read_text())
    tasks = {task["name"] for task in project.config["study"]["tasks"]}
    assert set(second["without_task"]) == tasks
    assert second["line_moved"]
    assert bool(second["fail_below"]) == (name == "C6")
    told = json.loads((folder / "provenance.json").read_text())
    assert told["seeds"]["study"] == project.config["study"]["seed"]
    assert told["revisions"]["models"][0]["wheel_sha256"]
    assert told["logs"]["backend"] == ["cpu"]
    examples = json.loads((folder / "examples.json").read_text())["examples"]
    for way in {entry["way"] for entry in examples}:
        assert 1 <= sum(entry["way"] == way for entry in examples) <= 5
    assert all(entry["trace"] and entry["accepted"] and entry["prompt_sha256"] for entry in examples)
    claim = json.loads((folder / "claim.json").read_text())
    text = (folder / "verdict.md").read_text()
    assert claim["registration"]["status"] == "registered"
    for wanted in (claim["registration"]["sha256"], claim["registration"]["amendments"]["head"], claim["kill_condition"],
                   "shuffled labels", "shuffled certificates", "## Every stratum"):  # fmt: skip
        assert wanted in text
    assert "exploratory" not in text.split("\n")[0]
    html = (folder / "verdict.html").read_text()
    assert not [word for word in ("<script", "http://", "https://", "<img") if word in html]


def test_equal_logs_give_equal_bundles(
    project: Project, bundle: Callable[[str], Path], tmp_path: Path
) -> None:
    again = audit.build("C2", project.results, project.root, project.config, tmp_path / "again")
    assert again == json.loads((bundle("C2") / "MANIFEST.json").read_text())


def test_building_refuses(project: Project, tmp_path: Path) -> None:
    def build(out: Path, results: Path = project.results, name: str = "C2") -> Any:
        return audit.build(name, results, project.root, project.config, out)

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(KvcertError, match="no audit bundle"):
        build(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"
    with pytest.raises(KvcertError, match="unknown claim"):
        build(tmp_path / "out", name="C9")
    results = tmp_path / "results"
    shutil.copytree(project.results, results, ignore=shutil.ignore_patterns("traces"))
    path = results / "claims/C2.json"
    claim = json.loads(path.read_text())
    claim["parts"][0]["value"] += 0.001
    path.write_text(json.dumps(claim))
    with pytest.raises(KvcertError, match=r"C2\.json is not what these logs give"):
        build(tmp_path / "out", results)
    path.unlink()
    with pytest.raises(KvcertError, match="kvcert score"):
        build(tmp_path / "out", results)
    (results / "integrity.json").unlink()
    path.write_text(json.dumps(claim))
    with pytest.raises(KvcertError, match="integrity gate"):
        build(tmp_path / "out", results)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize("name", [f"C{number}" for number in range(1, 8)])
def test_controls_behave_on_every_claim(name: str, bundle: Callable[[str], Path]) -> None:
    found = json.loads((bundle(name) / "controls.json").read_text())["controls"]
    assert {entry["control"] for entry in found} == {"shuffled labels", "shuffled certificates"}
    known = [entry for entry in found if entry["behaved"] is not None]
    assert known
    assert all(entry["behaved"] for entry in known), known
    if name in ("C4", "C6"):
        assert {entry["expected"] for entry in known} == {0.5}
        assert all(abs(entry["mean"] - 0.5) < 0.05 for entry in known)
    if name in ("C2", "C3"):
        assert [entry["control"] for entry in known] == ["shuffled labels"]


def test_a_control_that_must_fail_does(bundle: Callable[[str], Path]) -> None:
    """A gate that is told the gains does not capture at random: the control's own test would see it."""
    folder = bundle("C7")
    claims = load_claims(folder.parents[1])
    found = compute(folder, "C7", claims, "snapkv")
    observed = controls("C7", found, claims["claims"]["C7"], None)
    rows = found.primary.assign(signal=found.primary["gain"])
    told = next(entry for entry in observed if entry["control"] == "shuffled labels")
    found.primary = rows
    best = next(
        entry
        for entry in controls("C7", found, claims["claims"]["C7"], None)
        if entry["control"] == "shuffled labels"
    )
    assert best["observed"] > told["observed"]
    assert abs(best["observed"] - best["expected"]) > 4 * best["sd"] / np.sqrt(best["rounds"]) + 0.005


def test_hostile_answers_stay_text(bundle: Callable[[str], Path]) -> None:
    folder = bundle("C6")
    told = {
        stem: json.loads((folder / f"{stem}.json").read_text())
        for stem in ("claim", "second", "controls", "examples", "provenance")
    }
    hostile = "<script>alert(1)</script>\n\n# heading | cell\n```\n\u202e &amp; [x](javascript:1) 🙂\r\n</code></pre>"
    told["examples"]["examples"][0]["answer"] = hostile
    text = markdown(told["claim"], told, told["provenance"])
    html = page(told["claim"], text)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "javascript:" not in "".join(piece for piece in html.split('href="')[1:])
    assert html.count("<h1>") == 1
    assert html.count("</code></pre>") == html.count("<pre><code>")


def test_the_command(project: Project, bundle: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                     capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.chdir(project.root)
    out = tmp_path / "C3"
    assert cli.main(["--results", str(project.results), "audit", "C3", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    name = json.loads((out / "MANIFEST.json").read_text())["sha256"]
    assert f"bundle {name}" in said
    monkeypatch.chdir(tmp_path)
    assert cli.main(["audit", "--check", str(out), "--expect", name]) == 0
    assert "C3" in capsys.readouterr().out
    (out / "verdict.md").write_text("C3 survived")
    assert cli.main(["audit", "--check", str(out)]) == 2
    assert "verdict.md" in capsys.readouterr().err
    assert cli.main(["audit"]) == 2
    assert "name a claim" in capsys.readouterr().err


def test_the_rows_are_the_claims_own(bundle: Callable[[str], Path]) -> None:
    rows = pq.read_table(bundle("C6") / "rows.parquet").to_pandas()
    runs = pq.read_table(bundle("C6") / "runs.parquet").to_pandas().set_index("run_id")
    assert len(rows) > 20
    one: pd.Series = runs.loc[rows["run_id"]]
    assert (one["policy"] == "poisson").all()
    assert one["fail"].astype(bool).all()
    assert rows["induced"].nunique() == 2


def test_amendments_after_scoring(project: Project, tmp_path: Path) -> None:
    """One that only notes or records versions leaves the scores valid; one that changes a frozen file does not."""
    root = tmp_path / "project"
    shutil.copytree(project.root, root, ignore=shutil.ignore_patterns("audit"))

    def build() -> Any:
        return audit.build("C2", root / "results", root, project.config, tmp_path / "bundle")

    registry.amend(root, project.config, "A note, afterwards.")
    build()
    assert audit.check(tmp_path / "bundle")["claim"] == "C2"
    plan = root / "preregistration/analysis-plan.md"
    plan.write_text(plan.read_text() + "\nMore.\n")
    registry.amend(root, project.config, "The plan says more.", ["preregistration/analysis-plan.md"])
    with pytest.raises(KvcertError, match=r"scored before an amendment of .*analysis-plan\.md"):
        build()
