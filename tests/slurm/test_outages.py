"""The cluster comes to harm: the status command, the controller, a node, the disk."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

BROKEN = """\
#!/bin/sh
[ -e {flag} ] && {{ echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }}
exec {squeue} "$@"
"""


def test_the_status_command_fails_for_a_while(study, reference, monkeypatch) -> None:
    folder, flag = study.root.parent / "front", study.root.parent / "broken"
    folder.mkdir()
    (folder / "squeue").write_text(BROKEN.format(flag=flag, squeue=shutil.which("squeue")))
    (folder / "squeue").chmod(0o755)
    real = study.cluster.environment
    monkeypatch.setattr(study.cluster, "environment", real | {"PATH": f"{folder}:{real['PATH']}"})
    process, output = study.start()
    study.cluster.wait_for(lambda: study.history(study.names[1]), "both jobs are submitted")
    flag.touch()
    monkeypatch.setattr(study.cluster, "environment", real)
    study.cluster.wait_for(
        lambda: [study.history(name) for name in study.names] == [["COMPLETED"]] * 2, "the jobs end meanwhile"
    )
    time.sleep(15)
    assert process.poll() is None, "nobody knows yet that they ended"
    flag.unlink()
    study.finish(process, output)
    study.check(reference)
    assert [study.history(name) for name in study.names] == [["COMPLETED"]] * 2


def test_the_controller_is_away_and_there_is_no_accounting(make_study, reference) -> None:
    """The executor falls back to sacct, which can only fail here: the stand-in answers it instead."""
    study = make_study("slurm/noaccounting")
    first = study.names[0]
    with study.held(first):
        process, output = study.start()
        study.wait_for_worker(first)
        study.cluster.stop_controller()
        time.sleep(12)
        study.cluster.start_controller()
        study.cluster.wait_for(lambda: study.cluster.running(first), "the controller knows its job again")
    study.finish(process, output)
    study.check(reference)
    assert [study.history(name) for name in study.names] == [["COMPLETED"]] * 2


def test_a_drained_node(study, reference) -> None:
    """Its job runs to its end, the other goes elsewhere."""
    first, second = study.names
    with study.held(first), study.held(second):
        process, output = study.start("--jobs", "1")
        study.cluster.wait_for(lambda: study.cluster.running(), "one job runs")
        job = study.cluster.running()[0]
        node = study.cluster.jobs()[job][1]
        study.cluster.run(f"scontrol update nodename={node} state=drain reason=test")
    try:
        study.finish(process, output)
    finally:
        study.cluster.run(f"scontrol update nodename={node} state=resume")
    study.check(reference)
    jobs = {number: row for number, row in study.cluster.jobs().items() if number > study.before}
    assert jobs[job][0] == "COMPLETED"
    assert [row[0] for row in jobs.values()] == ["COMPLETED"] * 2
    assert [row[1] != node for number, row in jobs.items() if number != job] == [True]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"needs the right to mount: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def test_a_full_disk(make_study, small_disk, reference) -> None:
    """One clear line, nothing half written, and the same command goes on once there is space."""
    study = make_study(results=str(small_disk / "results"))
    ballast = small_disk / "ballast"
    for name in ("logs", "locks", "runs", "steps", "heads", "traces"):
        (study.results / name).mkdir(parents=True, exist_ok=True)
    with open(ballast, "wb") as file:
        free = shutil.disk_usage(small_disk).free
        file.write(bytes(free - 24 * 1024))
    text = study.run("--retries", "0", ok=False)
    assert "no space left for" in text
    left = [path for path in study.results.rglob("*") if path.suffix in (".parquet", ".safetensors", ".tmp")]
    assert left == [], "nothing half written"
    ballast.unlink()
    study.run()
    study.check(reference)
