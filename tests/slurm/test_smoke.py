"""The smoke grid through `--profile slurm` on a real Slurm: every number and every verdict is the local run's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import yaml
from study import QUICK, rows_of
from tests.house.project import ROOT, build, command, environment

from kvcert.config import load
from kvcert.grid import shards


def call(project: Path, extra: list[str], env: dict[str, str]) -> None:
    output = project / "output.log"
    with open(output, "wb") as file:
        done = subprocess.run(
            command("--cores", "all", "--configfile", "config/smoke.yaml", *extra),
            cwd=project, env=env, stdout=file, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    text = output.read_text()
    assert done.returncode == 0, text[-6000:]
    assert "Traceback" not in text, text[-6000:]


def test_verdicts_are_those_of_the_local_run(tmp_path: Path, cluster, own_cache: Path) -> None:
    there, here = build_in(tmp_path / "slurm"), build_in(tmp_path / "local")
    smoke_cache = f"cache={own_cache}"
    before = max(cluster.jobs(), default=0)
    call(there, ["--profile", "slurm", *QUICK, "--config", smoke_cache], environment() | cluster.environment)
    call(here, ["--config", smoke_cache], environment())
    grid = load(ROOT / "config/config.yaml", ROOT / "config/smoke.yaml")
    names = [spec["shard"] for spec in shards(grid)]
    results = [project / "results-smoke" for project in (there, here)]
    verdicts = [(folder / "verdicts.csv").read_bytes() for folder in results]
    assert verdicts[0] == verdicts[1]
    for name in names:
        assert rows_of(results[0], name) == rows_of(results[1], name)
    jobs = {number: row for number, row in cluster.jobs().items() if number > before}
    assert {name: sum(name in row[2] for row in jobs.values()) for name in names} == dict.fromkeys(names, 1)
    assert {row[0] for row in jobs.values()} == {"COMPLETED"}
    assert len({row[1] for row in jobs.values()}) == 2, "both nodes worked"


def build_in(folder: Path) -> Path:
    folder.mkdir()
    return build(folder, snapshot=True)


def test_the_two_profiles_differ_where_they_say(root: Path) -> None:
    """Needs no Slurm: same executor, resources and patience; only how often the controller is asked."""
    usual, bare = (
        yaml.safe_load((root / name / "config.yaml").read_text()) for name in ("slurm", "slurm/noaccounting")
    )
    assert {key for key in usual | bare if usual.get(key) != bare.get(key)} == {
        "latency-wait",
        "slurm-init-seconds-before-status-checks",
    }
    assert os.access(root / "slurm/noaccounting/bin/sacct", os.X_OK)
