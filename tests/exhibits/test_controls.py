"""The negative controls on a tiny grid; and that each of them can fail."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from roots import ROOT, outcomes

from kvcert.config import resolve
from kvcert.errors import KvcertError
from kvcert.exhibits import control_draws, control_logs, control_needle, controls
from kvcert.exhibits.control_units import Unit, certificate
from kvcert.paper.exhibits import publish
from kvcert.paper.exhibits.console import require_controls
from kvcert.survey.hajek import hajek_certificate
from synthetic import write_logs

D64 = torch.float64


@pytest.fixture(scope="module")
def found(grid: dict[str, Any], root: Path) -> dict[str, Any]:
    return controls.measure(grid, root, lambda line: None)


@pytest.fixture(scope="module")
def unit() -> Unit:
    """A head with a few heavy tokens and probabilities that follow the weights loosely."""
    g = torch.Generator().manual_seed(3)
    logits = 1.5 * torch.randn(120, generator=g, dtype=D64)
    values = torch.randn(120, 16, generator=g, dtype=D64) + 0.5
    values[logits > 1] += 2.0
    pi = (0.25 * (0.7 * logits).exp()).clamp(0.01, 1.0)
    pi[:10] = 1.0
    u32, other = (torch.randint(2**32, (800, 120), generator=g) for _ in range(2))
    return Unit({"task": "t", "example": 0}, logits, values, pi, u32, other, 0.05)


def test_controls_of_a_tiny_grid(found: dict[str, Any]) -> None:
    """Flat scores of random weights make the offset matter little: two lines need a trained model."""
    results = outcomes(found)
    assert results.pop("controls.shuffled_labels") == "not measured"
    for name in ("controls.offset_off_coverage", "controls.shuffled_pi_bias", "controls.shuffled_pi_mse"):
        results.pop(name)
    assert set(results.values()) == {"as expected"}


def test_the_moments_are_the_reference(unit: Unit) -> None:
    kept, log_pi = unit.kept[:20], unit.pi.log()
    centre = torch.randn(20, 16, generator=torch.Generator().manual_seed(5), dtype=D64)
    mine = certificate(unit.logits - log_pi, log_pi, unit.values, kept, 0.05, centre)
    masked = unit.logits.expand(20, -1).masked_fill(~kept, -math.inf)
    theirs = hajek_certificate(masked, log_pi.expand(20, -1), unit.values.expand(20, -1, -1), centre)
    for name in ("out", "variance", "radius", "guarded", "ess", "p_max"):
        assert torch.allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-9), name


def test_broken_assumptions_show_on_a_head_where_they_matter(unit: Unit) -> None:
    rows = {row["control"]: row for row in control_draws.rows(unit)}
    assert rows["reference"]["bias"] < 3
    assert rows["right design"]["coverage"] > 0.9
    assert rows["offset off"]["bias"] > 3
    assert rows["offset off"]["coverage"] < 0.5
    assert rows["shuffled pi"]["bias"] > 3
    assert rows["shuffled pi"]["mse_ratio"] > 1
    assert rows["declared pi = 1"]["radius_max"] == rows["declared pi = 1"]["coverage"] == 0


def test_shuffling_permutes_among_the_drawn_only(unit: Unit) -> None:
    log_pi, kept = unit.pi.log(), unit.kept
    moved = control_draws.shuffle(log_pi, kept, unit.other)
    drawn = kept & (log_pi < 0)
    assert torch.equal(moved[~drawn], log_pi.expand(kept.shape)[~drawn])
    for row in range(5):
        assert torch.equal(moved[row][drawn[row]].sort().values, log_pi[drawn[row]].sort().values)
    assert not torch.equal(moved[drawn], log_pi.expand(kept.shape)[drawn])


def test_the_needle(unit: Unit) -> None:
    parameters = {"needle_share_missed": 0.9, "needle_share_caught": 0.2, "needle_pi": 0.001}
    missed, alone, company = control_needle.rows(unit, parameters)
    assert missed["coverage"] < 0.05
    assert missed["unmoved"] == 1
    assert missed["ess_full"] < 1.5 < missed["ess_full_before"]
    assert (alone["coverage"], alone["coverage_guarded"]) == (0, 1)
    assert alone["ess"] < 1.1
    assert company["control"] == "needle caught in company"
    planted = control_needle.plant(unit, 50, 0.9, 0.001)
    assert float(planted.logits.softmax(-1)[50]) == pytest.approx(0.9)
    assert float(planted.pi[50]) == pytest.approx(0.001, rel=1e-5)


def test_labels_and_damage_on_logs_with_both_classes(
    base_config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = resolve(base_config)
    config["study"]["tasks"] = [task | {"examples": 12} for task in config["study"]["tasks"][:2]]
    write_logs(tmp_path, config, seed=1)
    measured, table = control_logs.shuffled_labels(tmp_path, ROOT, config, 60)
    assert measured.value is not None
    assert measured.value < 0.05
    assert len(table) == 60
    assert table["pooled"].std() > 0
    # Were the labels not shuffled, the control would fail: this world's certificate tells the classes apart.
    monkeypatch.setattr("kvcert.exhibits.control_logs.Stream.shuffled", lambda self, items: list(items))
    unshuffled, _ = control_logs.shuffled_labels(tmp_path, ROOT, config, 1)
    assert unshuffled.value is not None
    assert unshuffled.value > 0.1


def test_every_damage_is_refused_in_words(found: dict[str, Any], grid: dict[str, Any]) -> None:
    table = pd.read_parquet(Path(grid["run"]["results"]) / "exhibits/controls.damages.parquet")
    assert set(table["damage"]) == {"none", *control_logs.DAMAGES}
    assert table["refused"].tolist() == [False] + [True] * len(control_logs.DAMAGES)
    assert table["words"].iloc[1:].str.len().min() > 20


def test_a_failed_control_stops(found: dict[str, Any], grid: dict[str, Any], capsys: Any) -> None:
    with pytest.raises(KvcertError, match=r"negative controls failed.*controls\.offset_off_coverage"):
        require_controls(Path(grid["run"]["results"]))
    told = capsys.readouterr().out
    assert "pass " in told
    assert "FAIL " in told
    assert "not measured" in told


def test_table_and_figure(found: dict[str, Any], grid: dict[str, Any], tmp_path: Path) -> None:
    paths = publish(Path(grid["run"]["results"]), tmp_path, "controls")
    table = pd.read_csv(next(path for path in paths if path.suffix == ".csv"))
    assert len(table) == len(found["expectations"])
    assert np.isfinite(table["line"]).all()
