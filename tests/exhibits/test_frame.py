"""Around the exhibits: registration, outcomes on the console, commands, the page, publishing."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from roots import ROOT, registered_root

from kvcert import cli, exhibits
from kvcert.claims import score_all
from kvcert.errors import KvcertError
from kvcert.exhibits import EXHIBITS, registration
from kvcert.exhibits.needs import ALONE, NEEDS
from kvcert.exhibits.outcome import Measured, record
from kvcert.paper.catalogue import EXHIBIT_STEMS
from kvcert.paper.exhibits import load, warning
from kvcert.paper.exhibits.console import print_outcomes
from kvcert.paper.exhibits.words import short
from kvcert.report.exhibits import exhibits as shown
from kvcert.report.page import render


@pytest.fixture
def results(root: Path, tmp_path: Path) -> Path:
    """X4 as if it had been measured: one value as expected, one not, the rest missing."""
    ids = [entry["id"] for entry in registration.load(root)["X4"]["expectations"]]
    measured = dict.fromkeys(ids, Measured(None, note="no such device"))
    measured |= {"x4.kernel_cpu": Measured(1.2, 1.1, 1.4, 6), "x4.step_cpu": Measured(float("inf"))}
    cell = {
        "what": "kernel",
        "backend": "cpu",
        "rows": 1,
        "tokens": 64,
        "on_ms": 1.2,
        "off_ms": 1.0,
        "ratio": 1.2,
    }
    frame = pd.DataFrame([cell, cell | {"what": "step"}])
    record(tmp_path, root, "X4", measured, {"": frame}, {"machine": "<a> machine", "paper": 2.0})
    return tmp_path


def test_every_exhibit_has_needs_and_a_stem() -> None:
    assert set(NEEDS) == set(EXHIBITS) == set(EXHIBIT_STEMS)
    assert set(EXHIBITS) >= ALONE
    assert all(module == EXHIBIT_STEMS[name].lower() for name, module in EXHIBITS.items())


def test_an_unknown_exhibit_is_one_line(root: Path) -> None:
    with pytest.raises(KvcertError, match="no exhibit 'X9'; there are X1"):
        exhibits.run("X9", {}, root, print)


def test_outcomes_on_the_console(results: Path, tmp_path: Path) -> None:
    text = io.StringIO()
    print_outcomes(results, file=text)
    told = text.getvalue()
    for words in (
        "✓ as expected",
        "✗ not as expected",
        "– not measured",
        "≤ 2",
        "[1.100, 1.400]",
        "∞",
        "not registered: X4",
    ):
        assert words in told
    assert max(map(len, told.splitlines())) <= 100
    with pytest.raises(KvcertError, match="snakemake --cores all exhibits"):
        print_outcomes(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (1, "1"), (0.95, "0.950"), (-0.25, "−0.250"), (999.5, "999.5"), (1e-7, "1e−07"), ("inf", "∞")],
)  # fmt: skip
def test_numbers_for_people(value: Any, text: str) -> None:
    assert short(value) == text


def test_freezing_once_and_what_is_stamped(tmp_path: Path, results: Path) -> None:
    place = registered_root(tmp_path / "own")
    digest = registration.freeze(place)
    assert registration.status(place) == {"status": "registered", "sha256": digest}
    with pytest.raises(KvcertError, match="registered already"):
        registration.freeze(place)
    found = load(results, "X4")
    assert "not registered" in warning(found)
    found.outcome["registration"]["status"] = "registered"
    assert warning(found) == ""


def test_the_page_shows_what_was_measured_and_escapes_it(results: Path, tmp_path: Path) -> None:
    (one,) = shown(results)
    assert (one.name, one.warning) == ("X4", "exhibits.yaml was not registered when this was measured")
    assert one.lines[0]["mark"] == "✓"
    assert str(one.svg).startswith("<svg")
    assert "<a> machine" in one.facts
    assert shown(tmp_path / "nothing") == []


def test_commands(
    results: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    shutil.copytree(root / "preregistration", project / "preregistration")
    monkeypatch.chdir(project)
    assert cli.main(["--results", str(results), "exhibits"]) == 0
    assert "What the certificate costs per decode step" in capsys.readouterr().out
    assert cli.main(["freeze-exhibits"]) == 0
    frozen = json.loads((project / registration.FROZEN).read_text())
    assert frozen["sha256"] in capsys.readouterr().out
    assert cli.main(["freeze-exhibits"]) == 2
    with pytest.raises(SystemExit):
        cli.main(["exhibit", "X9"])


def test_the_whole_page_has_a_section_only_where_something_was_measured(
    grid: dict[str, Any], results: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    source = Path(grid["run"]["results"])
    for name in ("runs", "steps", "heads", "integrity.json", "config.json"):
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        whole.mkdir(exist_ok=True)
        copy(source / name, whole / name)
    score_all(whole, ROOT, grid)
    assert 'id="exhibits"' not in render(whole, tmp_path, grid, ROOT)
    shutil.copytree(results / "exhibits", whole / "exhibits")
    page = render(whole, tmp_path, grid, ROOT)
    assert page.count('<section id="exhibits"') == 1
    assert 'id="figure-X4_overhead"' in page
    assert 'id="table-X4_overhead"' in page
    assert "&lt;a&gt; machine" in page
    assert "<a> machine" not in page
