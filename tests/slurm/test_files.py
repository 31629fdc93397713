"""Files that come to harm after the run, told by `kvcert doctor`, mended, and run again through Slurm; what jobs ask for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest
from study import submitted


def kvcert(study, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in the study's folder."""
    configs = ["--config", "config/config.yaml", "--config", "config/tiny.yaml"]
    return subprocess.run(
        [sys.executable, "-m", "kvcert.cli", *configs, *arguments], cwd=study.root, text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(study.root / "src")}, check=False,
    )  # fmt: skip


def test_damaged_deleted_doubled_and_skewed(study, reference) -> None:
    first, second = study.names
    study.run()

    # A truncated table: the gate refuses, the doctor names it, and only its shard runs again.
    table = study.results / f"steps/{first}.parquet"
    table.write_bytes(table.read_bytes()[:700])
    text = study.run(ok=False)
    assert f"{table.relative_to(study.root)}: damaged" in text
    assert submitted(text) == 0
    told = kvcert(study, "doctor")
    assert told.returncode == 2
    assert f"damaged: 1\n  {first}: " in told.stdout
    assert "mend: kvcert doctor --mend && snakemake --cores all" in told.stdout
    assert kvcert(study, "doctor", "--mend").returncode == 2, "the shard is missing now"

    # A doubled shard, and files from the future, at the same time.
    shutil.copy(study.results / f"runs/{second}.parquet", study.results / "runs/tiny.facts.320.7.parquet")
    told = kvcert(study, "doctor", "--mend")
    assert "set aside" in told.stdout
    assert "tiny.facts.320.7.parquet" in told.stdout
    ahead = time.time() + 7200
    for name in ("runs", "heads"):
        os.utime(study.results / f"{name}/{second}.parquet", (ahead, ahead))
    told = kvcert(study, "doctor")
    assert "skewed: 2" in told.stdout
    assert "modified 120 minutes in the future" in told.stdout
    kvcert(study, "doctor", "--mend")
    text = study.run()
    assert submitted(text) == 1
    study.check(reference)
    assert len(list((study.results / "set-aside").rglob("*.parquet"))) == 4, "nothing was thrown away"

    # A deleted shard: only that one runs again, without a doctor. (Asked for by name, as `rule all` does.)
    lost = [study.results / f"{name}/{second}.parquet" for name in ("runs", "steps", "heads")]
    for path in lost:
        path.unlink()
    text = study.run(also=lost)
    assert submitted(text) == 1
    study.check(reference)
    told = kvcert(study, "doctor", "--deep")
    assert "scores: 1" in told.stdout, "whole, but this target did not score"


def test_small_cells_in_one_job(make_study, reference) -> None:
    study = make_study(cluster={"mem_mb": 1500, "group": 2})
    text = study.run("--groups", "cell=cells", "--group-components", "cells=2")
    study.check(reference)
    assert submitted(text) == 1
    jobs = study.cluster.run("squeue -h --states=all -o '%A|%T|%l|%m'").splitlines()
    mine = [row for row in (line.split("|") for line in jobs) if int(row[0]) > study.before]
    assert [row[1:] for row in mine] == [["COMPLETED", "1:00:00", "3000M"]], (
        "twice one shard's time and memory"
    )


@pytest.mark.parametrize(
    ("asks", "partition", "limit", "asked"),
    [
        ({"minutes": 5}, "short", "5:00", "gres:gpu:1"),
        ({"gres": "gpu:1"}, "main", "30:00", "gres:gpu:1"),
    ],
)
def test_what_a_gpu_job_asks_for(make_study, asks, partition, limit, asked) -> None:
    """One GPU, by `gpu` or by `gres`; the first partition that fits. (There is no real GPU: the jobs are not let run.)"""
    places = [{"name": "short", "minutes": 10}, {"name": "main"}]
    study = make_study(device="cuda", cluster={"mem_mb": 1500, "partitions": places} | asks)
    if not study.cluster.has_gpu:
        pytest.skip("pretending a GPU needs the right to make a device node")
    study.cluster.run("scontrol update partitionname=short state=down")
    study.cluster.run("scontrol update partitionname=main state=down")
    try:
        process, _ = study.start("--retries", "0")
        study.cluster.wait_for(
            lambda: len([job for job in study.cluster.jobs() if job > study.before]) == 2,
            "both jobs are submitted",
        )
        shown = study.cluster.run(
            "squeue -h --states=all -O 'JobID:20,Partition:20,TimeLimit:20,tres-per-job:20,tres-per-node:20'"
        )
        study.kill(process)
    finally:
        study.end()
        study.cluster.run("scontrol update partitionname=short state=up")
        study.cluster.run("scontrol update partitionname=main state=up")
    for line in shown.splitlines():
        job, found, time_limit, *gpus = line.split()
        if int(job) > study.before:
            assert (found, time_limit) == (partition, limit)
            assert [gpu for gpu in gpus if gpu not in ("N/A", "(null)")] == [asked]
