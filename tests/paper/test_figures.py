"""Every figure from every kind of logs: both files, no crash, and never an empty panel without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from kinds import KINDS
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread

from kvcert.errors import KvcertError
from kvcert.paper.catalogue import FIGURE_SUFFIXES, FIGURES
from kvcert.paper.figures import draw, draw_all
from kvcert.paper.figures.style import COLUMN, DOUBLE, house_style
from kvcert.paper.logs import Logs

#: One worker takes this file's tests, so that each kind of results is scored once.
pytestmark = pytest.mark.xdist_group("paper")
Scored = Callable[[str], Path]


@cache
def logs_of(results: Path) -> Logs:
    return Logs(results)


def figure_of(results: Path, stem: str) -> Figure:
    with house_style():
        figure: Figure = import_module(f"kvcert.paper.figures.{stem}").draw(logs_of(results))
    return figure


@pytest.fixture(scope="session")
def drawn(scored: Scored, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of the normal results."""
    folder = tmp_path_factory.mktemp("figures")
    paths = draw_all(scored("normal"), folder)
    assert {path.name for path in paths} == {
        f"{stem}{suffix}" for stem in FIGURES for suffix in FIGURE_SUFFIXES
    }
    return folder


def words(axes: Axes) -> str:
    return " ".join(text.get_text() for text in axes.texts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stem", FIGURES)
def test_no_panel_is_empty_without_a_word(kind: str, stem: str, scored: Scored) -> None:
    figure = figure_of(scored(kind), stem)
    assert figure.axes
    for axes in figure.axes:
        shows = axes.lines or axes.collections or axes.patches or axes.images
        assert shows or words(axes).strip(), f"{stem}: an empty panel"
        if axes.axison and axes.lines:
            assert axes.get_xlabel() or stem in ("verdicts", "escalation")


@pytest.mark.parametrize("stem", FIGURES)
def test_without_any_results_the_reason_is_written(stem: str, tmp_path: Path) -> None:
    assert "nothing to show" in words(figure_of(tmp_path, stem).axes[0])


@pytest.mark.parametrize("stem", FIGURES)
def test_normal_logs_show_something(stem: str, scored: Scored) -> None:
    assert not any("nothing to show" in words(axes) for axes in figure_of(scored("normal"), stem).axes)


def test_reasons_are_the_claims_own(scored: Scored) -> None:
    claim = json.loads((scored("no_failures") / "claims" / "C6.json").read_text())
    assert claim["reasons"]
    assert claim["reasons"][0] in words(figure_of(scored("no_failures"), "attribution").axes[0])


def test_files_widths_and_resolution(drawn: Path) -> None:
    for stem in FIGURES:
        assert (drawn / f"{stem}.pdf").read_bytes().startswith(b"%PDF")
        width = imread(drawn / f"{stem}.png").shape[1] / 220
        assert min(abs(width - COLUMN), abs(width - DOUBLE)) < 0.02


def test_same_logs_same_bytes_and_no_dates(drawn: Path, scored: Scored, tmp_path: Path) -> None:
    for path in draw(scored("normal"), "certificate_error", tmp_path):
        assert path.read_bytes() == (drawn / path.name).read_bytes()
        assert b"CreationDate" not in path.read_bytes()


def test_unknown_figure(tmp_path: Path) -> None:
    with pytest.raises(KvcertError, match="no figure 'pie'; there are verdicts"):
        draw(tmp_path, "pie", tmp_path)


def test_damaged_parquet_is_one_line(logs_only: Path) -> None:
    victim = next((logs_only / "runs").glob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:100])
    with pytest.raises(KvcertError, match="cannot be read") as problem:
        draw(logs_only, "accuracy", logs_only)
    assert "\n" not in str(problem.value)


def test_series_differ_by_more_than_colour(scored: Scored) -> None:
    for stem in ("coverage", "ess_coverage", "accuracy", "scheduling", "attribution"):
        for axes in figure_of(scored("normal"), stem).axes:
            looks: list[Any] = []
            for line in axes.lines:
                label = str(line.get_label())
                if not label.startswith("_") and label != "full cache":
                    looks.append((line.get_marker(), str(line.get_linestyle())))
            assert len(looks) == len(set(looks)), f"{stem}: two series differ by colour only"


@pytest.mark.parametrize("stem", FIGURES)
def test_nothing_is_cut_off_at_the_edge(stem: str, drawn: Path) -> None:
    pixels = imread(drawn / f"{stem}.png")[..., :3]
    for edge in (pixels[:2], pixels[-2:], pixels[:, :2], pixels[:, -2:]):
        assert edge.min() == 1.0, f"{stem}: ink on the edge of the page"


def test_a_killed_line_is_marked_by_shape(scored: Scored, tmp_path: Path) -> None:
    held = {
        "name": "a",
        "value": 0.1,
        "ci_low": 0.0,
        "ci_high": 0.2,
        "threshold": 0,
        "passed": True,
        "role": "decides",
    }
    failed = held | {"name": "b", "value": -0.1, "ci_low": -0.2, "ci_high": "inf", "passed": False}
    claim = {
        "claim": "C4",
        "title": "Prediction",
        "verdict": "killed",
        "decisive": True,
        "paper_verdict": "killed",
    }
    claim |= {"parts": [held, failed]}
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "C4.json").write_text(json.dumps(claim))
    axes = next(
        axes for axes in figure_of(tmp_path, "verdicts").axes if axes.get_title("left").startswith("C4")
    )
    markers = [line.get_marker() for line in axes.lines]
    assert "o" in markers
    assert "X" in markers
    assert "✗ killed" in axes.get_title("right")
