"""Shard sizes from a stated throughput, and what a job asks of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvcert import config, grid
from kvcert.errors import KvcertError
from kvcert.files import sha256_json
from kvcert.grid import shards, spec_sha256
from kvcert.pace import LOAD, spec_seconds
from kvcert.sizing import dimensions, log_bytes, memory_mb, minutes, partition

ROOT = Path(__file__).resolve().parents[2]


def with_run(**run: Any) -> dict[str, Any]:
    base = config.read_yaml(ROOT / "config/config.yaml")
    return config.resolve(config.merge(base, {"run": run}))


def test_the_registered_study_is_untouched() -> None:
    """New keys of `run` and optional keys of `study` leave the frozen hash and every finished shard's hash alone."""
    frozen = json.loads((ROOT / "preregistration/FROZEN.json").read_text())
    default = with_run()
    assert frozen["study"]["sha256"] == sha256_json(default["study"])
    assert "measure" not in shards(default)[0]
    assert "heads_every" not in shards(default)[0]


def test_a_number_is_taken_as_it_is() -> None:
    assert {len(spec["examples"]) for spec in shards(with_run(shard_examples=12))} == {12}


@pytest.mark.parametrize("pace", [5, 30, 200, 5000])
@pytest.mark.parametrize("target", [10, 30, 60])
def test_auto_makes_equal_shards_that_last_as_long_as_asked(pace: float, target: float) -> None:
    grid_ = with_run(shard_examples="auto", throughput=pace, job_minutes=target)
    specs = [spec for spec in shards(grid_) if spec["task"]["name"] == "niah"]
    sizes = [len(spec["examples"]) for spec in specs]
    assert sum(sizes) == 48
    assert max(sizes) - min(sizes) < len(sizes) or len(sizes) == 1
    longest = max(spec_seconds(spec, grid_["run"]) for spec in specs)
    assert longest <= 60 * target or sizes == [1] * 48
    if len(sizes) > 1:  # one more example would have been too long for the fewest equal shards
        fewer = -(-48 // (len(sizes) - 1))
        assert LOAD + fewer * 768 / pace > 60 * target


def test_throughput_per_model() -> None:
    grid_ = with_run(shard_examples="auto", throughput={"smollm2-135m": 20, "other": 1e6})
    assert {len(spec["examples"]) for spec in shards(grid_)} == {24}
    assert {
        len(spec["examples"]) for spec in shards(with_run(shard_examples="auto", throughput={"other": 1}))
    } == {48}


def test_more_model_length_and_attempts_ask_for_more(tmp_path: Path) -> None:
    run = with_run(cache=str(tmp_path))["run"]
    spec = shards(with_run())[0]
    longer = spec | {"task": spec["task"] | {"length": 16384}}
    place = tmp_path / "big"
    place.mkdir()
    sizes = {
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "hidden_size": 4096,
    }
    (place / "config.json").write_text(json.dumps(sizes))
    (place / "model.safetensors").write_bytes(bytes(1000))
    larger = spec | {"model": {"name": "big", "path": str(place), "dtype": "bfloat16"}}
    assert dimensions(larger["model"], tmp_path) == {
        "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128, "weights": 1000.0,
    }  # fmt: skip
    assert 3400 < memory_mb(spec, run) < memory_mb(longer, run)
    assert minutes(spec, run) < minutes(longer, run)
    for ask in (memory_mb, minutes):
        assert ask(spec, run, 3) == pytest.approx(3 * ask(spec, run), rel=0.001)
    assert sum(log_bytes(spec, run).values()) < sum(log_bytes(larger, run).values())


def test_stated_values_and_groups() -> None:
    run = with_run(cluster={"mem_mb": 700, "minutes": 12, "group": 4})["run"]
    spec = shards(with_run())[0]
    assert [memory_mb(spec, run, attempt) for attempt in (1, 2)] == [700, 1400]
    assert [minutes(spec, run, attempt) for attempt in (1, 2)] == [48, 96]


def test_a_retry_moves_to_the_partition_that_it_fits() -> None:
    places = [{"name": "short", "minutes": 60, "mem_mb": 9000}, {"name": "long", "minutes": 120}]
    run = with_run(cluster={"partitions": places})["run"]
    spec = shards(with_run())[0]
    assert [partition(spec, run, attempt) for attempt in (1, 2, 3, 9)] == ["short", "short", "long", "long"]


def test_logging_less_leaves_fewer_bytes() -> None:
    spec = shards(with_run())[0]
    everything = log_bytes(spec, with_run()["run"])
    panel = log_bytes(spec, with_run(heads="panel")["run"])
    assert panel["heads"] == everything["heads"] / 3
    assert log_bytes(spec | {"heads_every": 4}, with_run()["run"])["heads"] == everything["heads"] / 4


def test_another_version_of_the_measurement_is_another_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    before = spec_sha256(shards(with_run())[0])
    monkeypatch.setattr(grid, "MEASURE", 2)
    assert spec_sha256(shards(with_run())[0]) != before


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"shard_examples": 0}, "run.shard_examples: 0"),
        ({"shard_examples": "all"}, "run.shard_examples: 'all'"),
        ({"throughput": -1}, "run.throughput: -1"),
        ({"job_minutes": 5}, "run.job_minutes: 5"),
        ({"cluster": {"gres": "gpu:4"}}, "run.cluster.gres: 'gpu:4' does not match"),
        ({"cluster": {"partition": "main"}}, "run.cluster.partition: unknown key (did you mean partitions?)"),
    ],
)
def test_wrong_values_name_their_key(run: dict[str, Any], expected: str) -> None:
    with pytest.raises(KvcertError) as caught:
        with_run(**run)
    assert f"config: {expected}" in str(caught.value)
    assert "\n" not in str(caught.value)
