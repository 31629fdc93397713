"""What was not scored as registered says so wherever it is shown: console, every table, every figure."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kvcert.paper import figures, tables
from kvcert.paper.catalogue import FIGURES, TABLES
from kvcert.paper.claims_json import EXPLORATORY, exploratory, registration_lines
from kvcert.paper.console import print_verdicts
from kvcert.paper.figures.style import house_style
from kvcert.paper.logs import Logs


def relabelled(results: Path, place: Path, names: int = 7) -> Path:
    """A copy of the results in which the first `names` claims call themselves registered."""
    shutil.copytree(results, place)
    for number in range(1, names + 1):
        path = place / f"claims/C{number}.json"
        claim = json.loads(path.read_text())
        claim["registration"] |= {"status": "registered"}
        path.write_text(json.dumps(claim))
    return place


@pytest.mark.parametrize("names", [0, 6, 7])
def test_one_exploratory_claim_is_enough(scored: Callable[[str], Path], tmp_path: Path, names: int) -> None:
    results = relabelled(scored("normal"), tmp_path / "results", names)
    warned = names < 7
    said = io.StringIO()
    print_verdicts(results, said)
    assert (EXPLORATORY in said.getvalue().splitlines()[0]) == warned
    for path in tables.write_all(results, stems=["verdicts", "accuracy"]):
        if path.suffix != ".csv":
            assert (EXPLORATORY.capitalize() in path.read_text()) == warned
    with house_style():
        figure = figures._drawn(Logs(results), "escalation")
    assert (EXPLORATORY in {text.get_text() for text in figure.texts}) == warned


@pytest.mark.parametrize("stem", FIGURES)
def test_the_stamp_covers_nothing(scored: Callable[[str], Path], stem: str) -> None:
    """The stamp lies in a strip of its own above axes, titles and legends."""
    with house_style():
        figure: Any = figures._drawn(Logs(scored("normal")), stem)
        figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    stamp = next(text for text in figure.texts if text.get_text() == EXPLORATORY).get_window_extent(renderer)
    boxes = [box for axes in figure.axes if (box := axes.get_tightbbox(renderer)) is not None]
    boxes += [legend.get_window_extent(renderer) for legend in figure.legends]
    assert boxes
    assert all(stamp.y0 >= box.y1 - 2 for box in boxes), stem
    assert import_module(f"kvcert.paper.figures.{stem}")


def test_registrations_are_named_once() -> None:
    one = {
        "registration": {
            "status": "registered",
            "sha256": "a" * 64,
            "amendments": {"count": 2, "head": "b" * 64},
        }
    }
    assert registration_lines({"C1": one, "C2": one}) == [
        f"Registration: registered, {'a' * 64}",
        f"Amendments: 2, chain {'b' * 64}",
    ]
    assert exploratory({"C1": one}) is None
    assert exploratory({"C1": one, "C2": {}}) == EXPLORATORY
    assert exploratory({}) is None
    assert len(TABLES) > 3
