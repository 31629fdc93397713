"""The heat map of the needle tasks, on synthetic logs: its numbers, its gaps, its look."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from kvcert.claims import score_all
from kvcert.config import resolve
from kvcert.paper.catalogue import figures
from kvcert.paper.figures import draw_all
from kvcert.paper.figures.needle_heatmap import MAP, draw
from kvcert.paper.figures.style import house_style
from kvcert.paper.logs import Logs
from synthetic import write_logs

ROWS = [
    {"policy": "full"},
    {"policy": "topk", "budgets": [0.25, 0.5]},
    {"policy": "topk", "budgets": [0.25], "scorer": "h2o"},
    {"policy": "poisson", "budgets": [0.25, 0.5], "draws": 2},
]


@pytest.fixture(scope="module")
def results(base_config: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two needle tasks and one that is none."""
    config = copy.deepcopy(base_config)
    names = ("ruler_niah_single_1", "ruler_niah_multikey_2", "ruler_vt")
    config["study"]["tasks"] = [{"name": name, "length": 512, "examples": 6} for name in names]
    config["study"]["rows"] = copy.deepcopy(ROWS)
    config["study"]["max_new_tokens"] = 4
    folder = tmp_path_factory.mktemp("needle")
    config["run"]["results"] = str(folder)
    config = resolve(config)
    write_logs(folder, config, seed=3)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def figure_of(results: Path) -> Figure:
    with house_style():
        return draw(Logs(results))


def test_cells_are_means_over_the_needle_tasks(results: Path) -> None:
    free = Logs(results).free
    needles = free[free["task"].str.startswith("ruler_niah")]
    panels = figure_of(results).axes
    labels = [label.get_text() for label in panels[0].get_yticklabels()]
    assert labels == ["full cache", "Poisson", "top-k, h2o", "top-k, snapkv"]
    for axes, setting in zip(panels, ("aware", "streaming"), strict=True):
        shown = [text.get_text() for text in axes.texts]
        mine = needles[needles["setting"] == setting]
        assert shown[0] == f"{mine[mine['policy'] == 'full']['score'].mean():.2f}"
        rows = {
            "Poisson": mine["policy"] == "poisson",
            "top-k, h2o": (mine["policy"] == "topk") & (mine["scorer"] == "h2o"),
            "top-k, snapkv": (mine["policy"] == "topk") & (mine["scorer"] == "snapkv"),
        }
        expected = [
            f"{part['score'].mean():.2f}"
            for label in labels[1:]
            for budget in (0.25, 0.5)
            if len(part := mine[rows[label] & (mine["budget"] == budget)])
        ]
        assert shown[1:] == expected
        assert len(expected) == 5


def test_a_cell_that_was_not_run_is_hatched(results: Path) -> None:
    for axes in figure_of(results).axes:
        assert [bool(patch.get_hatch()) for patch in axes.patches].count(True) == 1


def test_without_needle_runs_the_reason_is_written(tmp_path: Path) -> None:
    assert "no valid free-running run" in figure_of(tmp_path).axes[0].texts[0].get_text()


def test_grey_keeps_the_order() -> None:
    grey = MAP(np.linspace(0, 0.9, 30))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) < 0).all()


def test_the_grid_promises_it_and_nothing_is_cut_off(results: Path, root: Path, tmp_path: Path) -> None:
    score_all(results, root, json.loads((results / "config.json").read_text()))
    assert "needle_heatmap" in figures(["niah", "ruler_niah_single_1"])
    assert "needle_heatmap" not in figures(["niah", "ruler_vt"])
    paths = draw_all(results, tmp_path, stems=["needle_heatmap"])
    assert [path.name for path in paths] == ["needle_heatmap.pdf", "needle_heatmap.png"]
    pixels = imread(tmp_path / "needle_heatmap.png")[..., :3]
    for edge in (pixels[:2], pixels[-2:], pixels[:, :2], pixels[:, -2:]):
        assert edge.min() == 1.0
