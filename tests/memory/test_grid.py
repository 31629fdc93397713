"""A multi-turn grid from configuration to figure: shards, the integrity gate, the scores, and refusals before any work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from tests.tiny_grid import ROOT, save_tiny_model, tiny_config

from kvcert import config as configuration
from kvcert.claims import score_all
from kvcert.config_checks import check_known
from kvcert.errors import KvcertError
from kvcert.grid import shards
from kvcert.logs import integrity
from kvcert.paper.catalogue import figures
from kvcert.paper.figures import draw, draw_all
from kvcert.paper.figures.agent_memory import turns_of
from kvcert.paper.logs import Logs
from kvcert.paper.tables import write_all
from kvcert.runner.shard import run_shard

TASKS = [
    {"name": "agent_memory", "length": 250 * t, "examples": 2, "fail_below": 0.5, "params": {"turns": t, "facts": 1}}
    for t in (1, 2, 3)
]  # fmt: skip
ROWS = [
    {"policy": "full"},
    {"policy": "topk", "budgets": [0.25]},
    {"policy": "poisson", "budgets": [0.25], "draws": 2},
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tokenizer, cache):
    folder = tmp_path_factory.mktemp("memory")
    model = save_tiny_model(folder / "model", tokenizer)
    config = tiny_config(model, folder / "results", cache, tasks=TASKS, rows=ROWS, max_new_tokens=4)
    for spec in shards(config):
        assert run_shard(spec, config["run"], progress=False)
    return folder / "results", config


def read(results: Path, table: str) -> pd.DataFrame:
    return pd.concat(
        [pq.read_table(path).to_pandas() for path in sorted((results / table).glob("*.parquet"))]
    ).astype({"run_id": str})


def test_the_gate_and_the_logs(finished) -> None:
    results, config = finished
    report = integrity.check(results, config)
    assert report["runs"] == 3 * 2 * 2 * (1 + 1 + 2 + 2)
    assert report["invalid"] == 0
    runs, heads = read(results, "runs"), read(results, "heads")
    streaming = runs[runs.setting == "streaming"]
    sampled = streaming[streaming.policy == "poisson"]
    assert sampled.signal.notna().all()
    assert (sampled.error > 0).all()
    assert (sampled.regime == "forced").sum() == (sampled.regime == "free").sum() == 12
    kept = sampled.kept_tokens / sampled.capacity
    assert kept.between(0.8, 1.2).all()
    assert set(heads.run_id) == set(runs[runs.policy == "poisson"].run_id)
    assert (heads["tail_kept"] <= heads["tail"]).all()


def test_twice_is_bit_identical(finished, tmp_path) -> None:
    results, config = finished
    spec = shards(config)[1]
    run_shard(spec, config["run"] | {"results": str(tmp_path)}, progress=False)
    for table in ("runs", "steps", "heads"):
        one, two = (
            pq.read_table(folder / table / f"{spec['shard']}.parquet").to_pandas()
            for folder in (results, tmp_path)
        )
        drop = [column for column in one if str(column).startswith("seconds_")]
        pd.testing.assert_frame_equal(one.drop(columns=drop), two.drop(columns=drop), check_exact=True)


def test_the_figure(finished, tmp_path) -> None:
    results, config = finished
    assert "agent_memory" in figures(task["name"] for task in config["study"]["tasks"])
    integrity.check(results, config)
    assert turns_of(results) == {("agent_memory", 250 * t): t for t in (1, 2, 3)}
    logs = Logs(results, config)
    from kvcert.paper.figures.agent_memory import draw as drawn

    figure = drawn(logs)
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) == 2
    labels = {text for axes in panels for text in axes.get_legend_handles_labels()[1]}
    assert labels == {"full cache", "Poisson", "top-k", "certificate", "true error"}
    assert [tick.get_text() for tick in panels[1].get_xticklabels()] == ["1", "2", "3"]
    # The certificate of one cell, by hand.
    runs = logs.free[(logs.free.setting == "streaming") & (logs.free.policy == "poisson")]
    mean = runs[runs.length == 500].groupby("example").signal.mean().mean()
    line = next(c for c in panels[1].containers if c.get_label() == "certificate")[0]
    assert line.get_ydata()[1] == pytest.approx(mean)
    assert {path.suffix for path in draw(logs, "agent_memory", tmp_path)} == {".pdf", ".png"}


def test_without_logs_the_figure_says_so(tmp_path) -> None:
    from kvcert.paper.figures.agent_memory import draw as drawn

    assert "nothing to show" in drawn(Logs(tmp_path)).axes[0].texts[0].get_text()
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(KvcertError, match=r"config.json is not the gate's record"):
        drawn(Logs(tmp_path))


@pytest.mark.slow
def test_claims_tables_and_figures_need_nothing_new(finished, tmp_path) -> None:
    results, config = finished
    integrity.check(results, config)
    score_all(results, ROOT, config)
    claims = [json.loads(path.read_text()) for path in (results / "claims").glob("C*.json")]
    assert len(claims) == 7
    write_all(results)
    paths = draw_all(results, tmp_path, config)
    assert len(paths) == 2 * len(figures(["agent_memory"]))


def overlay(**study: Any) -> dict[str, Any]:
    base = configuration.load(ROOT / "config" / "config.yaml", ROOT / "config" / "agent-memory.yaml")
    base["study"] |= study
    return configuration.resolve(base)


def test_the_committed_overlay_is_valid_and_has_its_own_folders() -> None:
    written = yaml.safe_load((ROOT / "config" / "agent-memory.yaml").read_text())
    assert written["run"]["results"] == "results-memory"
    check_known(overlay())


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ({"scorer": "h2o"}, r"config: study.rows\[0\].scorer: agent_memory .* scorer h2o does not support"),
        (
            {"rows": [{"policy": "full"}, {"policy": "topk", "budgets": [0.5], "scorer": "key_norm"}]},
            r"config: study.rows\[1\].scorer: .*key_norm",
        ),
        (
            {"tasks": [{"name": "agent_memory", "length": 900, "examples": 1, "params": {"turns": 20}}]},
            r"config: study.tasks\[0\].params: task agent_memory: params.turns: must be an integer from 1 to 16",
        ),
    ],
)
def test_bad_configurations_are_one_line(study: dict[str, Any], message: str) -> None:
    with pytest.raises(KvcertError, match=message) as caught:
        check_known(overlay(**study))
    assert "\n" not in str(caught.value)


def test_the_aware_setting_takes_any_scorer() -> None:
    check_known(overlay(scorer="h2o", settings=["aware"]))


def test_a_first_turn_too_short_for_the_budget_is_refused_before_anything_is_written(
    finished, tmp_path, cache
) -> None:
    _, config = finished
    params = {"turns": 5, "facts": 1}
    tasks = [TASKS[0] | {"length": 600, "examples": 1, "params": params}]
    rows = [{"policy": "full"}, {"policy": "poisson", "budgets": [0.1]}]
    model = Path(config["study"]["models"][0]["path"])
    short = tiny_config(model, tmp_path / "results", cache, tasks=tasks, rows=rows)
    with pytest.raises(KvcertError, match=r"budget 0.1 keeps \d+ of \d+ context tokens, not more than the"):
        run_shard(shards(short)[0], short["run"], progress=False)
    assert not list((tmp_path / "results").rglob("*.parquet"))
