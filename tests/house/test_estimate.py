"""What a run says about itself beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvcert import config, estimate
from kvcert.grid import shards

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def grid(tmp_path: Path) -> dict[str, Any]:
    return config.resolve(
        config.read_yaml(ROOT / "config/config.yaml") | {"results": str(tmp_path / "results")}
    )


def test_the_default_grid_fits_half_an_hour_on_two_cores(grid: dict[str, Any]) -> None:
    specs = shards(grid)
    assert 300 < sum(map(estimate.seconds, specs)) / 2 < 1800


def test_more_work_takes_longer(grid: dict[str, Any]) -> None:
    spec = shards(grid)[0]
    longer = spec | {"task": spec["task"] | {"length": 1536}}
    fewer = spec | {"rows": spec["rows"][:4]}
    assert estimate.seconds(fewer) < estimate.seconds(spec) < estimate.seconds(longer)


def test_the_plan_counts_what_is_done(grid: dict[str, Any], tmp_path: Path) -> None:
    specs = shards(grid)
    first = sum(spec["shard"].endswith(".0") for spec in specs)
    assert f"shards: {len(specs)}, done 0, to run {len(specs)}" in estimate.plan(grid, workers=2)
    for table in ("runs", "steps", "heads"):
        (tmp_path / "results" / table).mkdir(parents=True)
    for spec in specs:
        for table in ("runs", "steps", "heads")[: 3 if spec["shard"].endswith(".0") else 2]:
            (tmp_path / "results" / table / f"{spec['shard']}.parquet").touch()
    assert 0 < first < len(specs)
    told = estimate.plan(grid, workers=2)
    assert f"done {first}, to run {len(specs) - first}" in told, "a shard without all its tables is not done"


@pytest.mark.parametrize(
    ("duration", "text"), [(0, "0 s"), (89.4, "89 s"), (600, "10 min"), (12600, "3.5 h")]
)
def test_spoken(duration: float, text: str) -> None:
    assert estimate.spoken(duration) == text
