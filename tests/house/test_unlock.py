"""A lock is cleared when its holder is gone, and only then."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvcert.errors import KvcertError
from kvcert.unlock import _is_snakemake, clear_stale, living


def lock(root: Path) -> list[Path]:
    folder = root / ".snakemake" / "locks"
    folder.mkdir(parents=True)
    paths = [folder / "0.input.lock", folder / "0.output.lock"]
    for path in paths:
        path.write_text("results/runs/x.parquet\n")
    return paths


def test_no_lock(tmp_path: Path) -> None:
    assert clear_stale(tmp_path) == "no workflow lock"


def test_stale_lock_is_cleared(tmp_path: Path) -> None:
    paths = lock(tmp_path)
    assert clear_stale(tmp_path) == "cleared 2 stale workflow lock files: their holder is gone"
    assert not any(path.exists() for path in paths)
    assert clear_stale(tmp_path) == "no workflow lock"


@pytest.mark.parametrize("name", ["snakemake", "other"])
def test_living_holder_is_respected(tmp_path: Path, name: str) -> None:
    """A process that is called snakemake and works in the folder keeps its lock; any other process there does not."""
    place = tmp_path / "project"
    paths = lock(place)
    script = tmp_path / name
    script.write_text("import sys, time\nprint('up', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen([sys.executable, str(script)], cwd=place, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        if name == "snakemake":
            with pytest.raises(KvcertError, match=f"is running .process {process.pid}"):
                clear_stale(place)
            assert all(path.exists() for path in paths)
            assert living(tmp_path) == [], "another folder is no concern of its lock"
        else:
            assert clear_stale(place).startswith("cleared 2")
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 10
    while living(place) and time.monotonic() < deadline:
        time.sleep(0.05)
    clear_stale(place)
    assert not any(path.exists() for path in paths)


def test_a_job_of_a_cluster_is_no_holder() -> None:
    """A job's own Snakemake works in the folder too, on a one-machine cluster even on this host."""
    master = ["python", "-m", "snakemake", "--cores", "all"]
    assert _is_snakemake(master)
    assert not _is_snakemake([*master, "--executor", "slurm-jobstep", "--mode", "remote"])
    assert not _is_snakemake([*master, "--mode", "subprocess"])
