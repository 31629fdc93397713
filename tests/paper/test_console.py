"""The verdict table and the grid on the console."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kinds import small

from kvcert.grid import shards
from kvcert.pace import spec_seconds
from kvcert.paper.cells import duration, print_cells, print_shards, summarise
from kvcert.paper.console import interval, number, print_verdicts
from synthetic import write_logs

pytestmark = pytest.mark.xdist_group("paper")
Scored = Callable[[str], Path]


def shown(results: Path) -> list[str]:
    out = io.StringIO()
    print_verdicts(results, out)
    return out.getvalue().splitlines()


def test_a_log_file_gets_a_plain_table_of_100_columns(scored: Scored) -> None:
    lines = shown(scored("normal"))
    assert max(map(len, lines)) <= 100
    assert not any("\x1b" in line for line in lines)
    for claim in range(1, 8):
        assert sum(line.strip().startswith(f"C{claim} ") for line in lines) == 1


def test_long_verdicts_and_missing_claims_stay_legible(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    claim = {"claim": "C6", "title": "Attribution", "verdict": "killed (carried by task or budget)", "value": -0.0421,
             "ci_low": -0.1, "ci_high": "inf", "n_runs": 12345, "threshold": 0.0, "decisive": False, "agrees": False,
             "paper_verdict": "survived", "paper_number": 0.74}  # fmt: skip
    (tmp_path / "claims" / "C6.json").write_text(json.dumps(claim))
    lines = shown(tmp_path)
    text = " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= 100
    assert "✗ killed" in text
    assert "[−0.100, ∞]" in text
    assert "≠ survived 0.74" in text
    assert "Not scored: C1, C2, C3, C4, C5, C7." in text


def test_numbers() -> None:
    assert number(None) == "–"
    assert number(float("nan")) == "–"
    assert number("-inf") == "−∞"
    assert number(-0.5, 1) == "−0.5"
    assert interval(None, 1.0) == "–"


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (5.2, "5 s"), (89, "89 s"), (600, "10 min"), (3900, "1 h 05 min")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_cells_count_done_stale_and_damaged_shards(base_config: dict[str, Any], tmp_path: Path) -> None:
    config = small(base_config)
    write_logs(tmp_path, config, seed=1)
    names = [spec["shard"] for spec in shards(config)]
    assert names == [f"smollm2-135m.{task}.768.{part}" for task in ("niah", "json_lookup") for part in (0, 1)]
    (tmp_path / "heads" / f"{names[0]}.parquet").unlink()
    (tmp_path / "steps" / f"{names[2]}.parquet").write_bytes(b"PAR1 torn")
    config["study"]["tasks"][1]["fail_below"] = 0.25  # the specification changed after the run
    rows = summarise(tmp_path, config)
    assert rows[0]["states"] == {"open": 1, "done": 1}
    assert rows[1]["states"] == {"damaged": 1, "stale": 1}
    runs_per_example = rows[0]["runs"] / rows[0]["examples"]
    pace = 3.5 + 0.5 * runs_per_example  # the synthetic logs' seconds: one prefill, then each run's share
    assert rows[0]["seconds"] == pytest.approx(6 * pace)
    assert rows[0]["left"] == pytest.approx(6 * pace)
    assert rows[1]["left"] == pytest.approx(12 * pace)
    out = io.StringIO()
    print_cells(tmp_path, config, out)
    assert "1/2" in out.getvalue()
    assert "damaged" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 100
    out = io.StringIO()
    print_shards(tmp_path, config, out)
    assert out.getvalue().splitlines()[0] == f"open\t{names[0]}"


def test_cells_without_results_are_estimated_as_the_graph_is_sized(
    base_config: dict[str, Any], tmp_path: Path
) -> None:
    config = small(base_config)
    rows = summarise(tmp_path, config)
    guess = sum(spec_seconds(spec, config["run"]) for spec in shards(config))
    assert sum(row["left"] for row in rows) == pytest.approx(guess)
    out = io.StringIO()
    print_cells(tmp_path, config, out)
    assert "estimated roughly, for a 135M model" in out.getvalue()
    assert "GPU-hours" not in out.getvalue()


def test_cells_of_a_gpu_grid_tell_tokens_and_hours(base_config: dict[str, Any], tmp_path: Path) -> None:
    config = small(base_config)
    config["run"] |= {"device": "cuda", "throughput": 768.0, "step_seconds": 2.0}
    steps, examples = config["study"]["max_new_tokens"], sum(len(spec["examples"]) for spec in shards(config))
    rows = summarise(tmp_path, config)
    assert sum(row["left"] for row in rows) == pytest.approx(
        examples * (1 + 2 * steps) + 6 * len(shards(config))
    )
    config["run"]["throughput"] = 768.0 / 36000
    out = io.StringIO()
    print_cells(tmp_path, config, out)
    assert f"GPU-hours: about {10 * examples};" in out.getvalue()
    assert f"{768 * examples:,} of prompts" in out.getvalue()
    assert "run.throughput" in out.getvalue()
