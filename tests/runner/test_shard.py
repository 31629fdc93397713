"""A shard's files: complete, consistent with each other, the same twice, and whole or absent when something breaks."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from safetensors import SafetensorError
from tests.tiny_grid import ROOT, save_tiny_model, tiny_config

from kvcert.errors import KvcertError
from kvcert.files import canonical_json
from kvcert.grid import expected_run_ids, shards
from kvcert.logs import integrity
from kvcert.logs.schema import TABLES
from kvcert.runner import trace, writer
from kvcert.runner.shard import run_shard

CLOCK = ["seconds_prefill", "seconds_decode"]


def read(results: Path, table: str) -> pd.DataFrame:
    files = sorted((results / table).glob("*.parquet"))
    return pd.concat(
        [pq.read_table(f).to_pandas(strings_to_categorical=False) for f in files], ignore_index=True
    )


def everything(folder: Path) -> list[str]:
    return sorted(
        str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock"
    )


def test_every_run_is_there_and_the_gate_agrees(finished):
    results, config = finished
    expected = [run for spec in shards(config) for run in expected_run_ids(spec)]
    runs = read(results, "runs")
    assert sorted(runs.run_id) == sorted(expected)
    assert len(expected) == 4 * 2 * (1 + 1 + 4 + 4)
    report = integrity.check(results, config)
    assert report["runs"] == len(expected)
    assert report["invalid"] == 0
    assert report["heads"] == len(read(results, "heads")) > 0


def test_signal_and_steps_follow_from_the_heads(finished):
    """Recompute certificate, error and signal from the per-head log, the way docs/method.md defines them."""
    results, config = finished
    constants = config["study"]["constants"]
    heads = read(results, "heads").astype({"run_id": str})
    steps, runs = read(results, "steps"), read(results, "runs")
    panel = heads[heads.panel].copy()
    norm = panel["norm"].clip(lower=constants["floor"])
    for column in ("radius", "guarded", "error"):
        panel[column] = panel[column] / norm
    means = panel.groupby(["run_id", "step"])[["radius", "guarded", "error"]].mean().reset_index()
    joined = steps.merge(means, on=["run_id", "step"], suffixes=("", "_heads"))
    assert len(joined) == (runs.policy == "poisson").to_numpy() @ runs.n_steps.to_numpy()
    np.testing.assert_allclose(joined.certificate, joined.radius, rtol=1e-4)
    np.testing.assert_allclose(joined.error, joined.error_heads, rtol=1e-4)
    assert (joined.covered == (joined.error <= joined.certificate)).all()
    first = joined[joined.step <= constants["signal_steps"]].groupby("run_id").certificate.mean()
    signal_of = runs.set_index("run_id").signal.dropna()
    np.testing.assert_allclose(signal_of.sort_index(), first.sort_index(), rtol=1e-4)


def test_what_a_run_says_about_itself(finished):
    results, _ = finished
    runs = read(results, "runs")
    full, poisson = runs[runs.policy == "full"], runs[runs.policy == "poisson"]
    assert full.signal.isna().all()
    assert full.error.isna().all()
    assert (full.kept_bytes == full.full_bytes).all()
    assert (poisson.regime == "forced").sum() == (poisson.regime == "free").sum()
    forced = poisson[poisson.regime == "forced"].merge(
        full, on=["task", "example", "setting"], suffixes=("", "_full")
    )
    assert (forced.token_ids.map(list) == forced.token_ids_full.map(list)).all()
    assert forced.score.isna().all()
    assert poisson[poisson.regime == "free"].score.notna().all()
    # Both settings of the full run are one run.
    assert full.groupby(["task", "example"]).answer.nunique().eq(1).all()
    topk = runs[runs.policy == "topk"]
    assert (topk.kept_tokens == topk.capacity).all()
    assert (topk.kept_bytes < poisson[poisson.budget == 0.5].kept_bytes.min()).all()
    assert runs.score.dropna().between(0, 1).all()


def test_the_same_shard_twice_is_bit_identical_and_not_repeated(finished, tmp_path, tiny_folder, cache):
    results, config = finished
    again = tiny_config(tiny_folder, tmp_path, cache)
    spec = shards(config)[0]
    assert run_shard(spec, again["run"], progress=False)
    for table in TABLES:
        name = f"{table}/{spec['shard']}.parquet"
        first, second = (pq.read_table(folder / name).to_pandas() for folder in (results, tmp_path))
        drop = [column for column in CLOCK if column in first]
        pd.testing.assert_frame_equal(first.drop(columns=drop), second.drop(columns=drop), check_exact=True)
    before = (tmp_path / "runs" / f"{spec['shard']}.parquet").stat().st_mtime_ns
    assert not run_shard(spec, again["run"], progress=False)
    assert (tmp_path / "runs" / f"{spec['shard']}.parquet").stat().st_mtime_ns == before


def test_logging_fewer_heads_changes_nothing_else(finished, tmp_path, tiny_folder, cache):
    """`run.heads: panel` keeps the claims' heads; `study.heads_every` keeps every k-th step; the gate agrees to both."""
    results, _ = finished
    less = tiny_config(tiny_folder, tmp_path, cache, heads_every=3)
    less["run"]["heads"] = "panel"
    spec = shards(less)[0]
    assert run_shard(spec, less["run"], progress=False)
    integrity.check_shard(tmp_path, spec)
    name = f"{spec['shard']}.parquet"
    whole, thin = (
        pq.read_table(folder / "heads" / name).to_pandas(strings_to_categorical=False)
        for folder in (results, tmp_path)
    )
    kept = whole[whole.panel & (whole.step % 3 == 1)].reset_index(drop=True)
    assert 0 < len(thin) < len(whole) / 2
    assert (kept.run_id.astype(str) == thin.run_id.astype(str)).all()
    pd.testing.assert_frame_equal(kept.drop(columns="run_id"), thin.drop(columns="run_id"), check_exact=True)
    first, second = (pq.read_table(folder / "steps" / name) for folder in (results, tmp_path))
    assert first.to_pylist() == second.to_pylist()


def test_torch_and_cpu_backends_agree(finished, tmp_path, tiny_folder, cache):
    results, config = finished
    other = tiny_config(tiny_folder, tmp_path, cache)
    other["run"]["backend"] = "torch"
    run_shard(shards(config)[0], other["run"], progress=False)
    name = f"{shards(config)[0]['shard']}.parquet"
    first, second = (
        pq.read_table(folder / "runs" / name).to_pandas().set_index("run_id")
        for folder in (results, tmp_path)
    )
    assert set(second.backend) == {"torch"}
    assert (first.answer == second.answer).all()
    np.testing.assert_allclose(first.signal.dropna(), second.signal.dropna(), atol=1e-4)


def test_trace_holds_what_the_exhibits_need(finished):
    from safetensors.numpy import load_file

    results, _config = finished
    trace = {
        name.removeprefix("0/"): x
        for name, x in load_file(results / "traces" / "tiny.niah.320.0.safetensors").items()
    }
    layers, kv_heads, n, d = trace["keys"].shape
    assert trace["values"].shape == trace["keys"].shape
    assert (layers, kv_heads, d) == (2, 2, 16)
    assert trace["score.aware.snapkv"].shape == (layers, kv_heads, n)
    assert trace["queries"].shape[1] == 4


def test_not_finite_logits_make_invalid_runs_that_pass_the_gate(tmp_path, tokenizer, cache):
    model = save_tiny_model(tmp_path / "model", tokenizer, poison=True)
    config = tiny_config(model, tmp_path / "results", cache)
    for spec in shards(config):
        run_shard(spec, config["run"], progress=False)
    runs = read(tmp_path / "results", "runs")
    assert not runs.valid.any()
    assert runs.score.isna().all()
    assert runs.fail.isna().all()
    assert runs.invalid_reason.str.contains("non-finite logits").all()
    report = integrity.check(tmp_path / "results", config)
    assert report["invalid"] == len(runs) == report["runs"]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"max_new_tokens": 5000}, "exceed the window"),
        ({"rows": [{"policy": "full"}, {"policy": "topk", "budgets": [0.05]}]}, "protected"),
    ],
)
def test_bad_cells_are_refused_before_anything_is_written(change, match, tmp_path, tiny_folder, cache):
    config = tiny_config(tiny_folder, tmp_path, cache)
    config["study"] |= change
    with pytest.raises(KvcertError, match=match):
        run_shard(shards(config)[0], config["run"], progress=False)
    assert everything(tmp_path) == []


def test_no_space_left_for_a_trace(tmp_path, monkeypatch):
    def full_disk(tensors, where):
        Path(where).write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(trace, "save_file", full_disk)
    with pytest.raises(KvcertError, match=r"no space left for .*traces"):
        trace.write(tmp_path, "x", {})
    assert everything(tmp_path) == []


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(writer, "FileLock", refuse)
    with pytest.raises(KvcertError, match="refuses locks"), writer.sole_writer(tmp_path, "x"):
        pass


def test_no_space_left_is_one_line_and_leaves_nothing(finished, tmp_path, monkeypatch):
    results, config = finished
    name = shards(config)[0]["shard"]
    tables = {table: pq.read_table(results / table / f"{name}.parquet") for table in TABLES}

    def full_disk(table, where, **options):
        Path(where).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer.pq, "write_table", full_disk)
    with pytest.raises(KvcertError, match=r"no space left for .*heads"):
        writer.write(tmp_path, name, "x", tables)
    assert everything(tmp_path) == []


WORKER = """
import json, sys
from kvcert.runner.shard import run_shard
spec, run = json.loads(sys.argv[1])
run_shard(spec, run)
"""


def start(spec, run) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, canonical_json([spec, run])],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_kill_in_the_middle_of_a_shard(finished, tmp_path, tiny_folder, cache):
    """kill -9 leaves no file and no stale lock; the rerun gives the same rows as an undisturbed one."""
    results, config = finished
    spec = shards(config)[0]
    run = tiny_config(tiny_folder, tmp_path, cache)["run"]
    worker = start(spec, run)
    assert worker.stderr is not None
    line = next(text for text in worker.stderr if "example 1/2" in text)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    assert line
    assert not list(tmp_path.glob("runs/*.parquet"))
    assert run_shard(spec, run, progress=False)
    name = f"runs/{spec['shard']}.parquet"
    first, second = (
        pq.read_table(folder / name).to_pandas().drop(columns=CLOCK) for folder in (results, tmp_path)
    )
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_an_orphaned_worker_and_a_rerun_do_not_both_write(tmp_path, tiny_folder, cache):
    """The rerun waits for the orphan's lock, finds its files whole, and repeats nothing."""
    config = tiny_config(tiny_folder, tmp_path, cache)
    spec = shards(config)[0]
    orphan = start(spec, config["run"])
    lock = tmp_path / "locks" / f"{spec['shard']}.lock"
    deadline = time.monotonic() + 60
    while not lock.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    with (
        pytest.raises(KvcertError, match="another worker holds"),
        writer.sole_writer(tmp_path, spec["shard"], timeout=0.2),
    ):
        pass
    assert not run_shard(spec, config["run"], progress=False)
    assert orphan.wait(60) == 0


def test_gate_after_a_copy(finished, tmp_path):
    results, config = finished
    shutil.copytree(results, tmp_path / "copy")
    assert integrity.check(tmp_path / "copy", config)["ok"]
