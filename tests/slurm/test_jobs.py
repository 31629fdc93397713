"""Jobs that come to harm, and the two masters: nothing lost, nothing doubled."""

from __future__ import annotations

import os
import signal
import time

import pytest

from kvcert import unlock
from kvcert.errors import KvcertError


def test_an_undisturbed_run(study, reference) -> None:
    """One job a shard, the short rules on this host; nothing is written outside results, figures and .snakemake."""
    before = {path.name for path in study.root.iterdir()}
    study.run()
    study.check(reference)
    assert [study.history(name) for name in study.names] == [["COMPLETED"]] * 2
    new = {path.name for path in study.root.iterdir()} - before
    assert {name for name in new if not name.startswith("call-")} == {"results-tiny", ".snakemake"}
    assert not list((study.root / ".snakemake/slurm_logs").rglob("*.log")), (
        "logs of successful jobs are deleted"
    )


def test_a_cancelled_job_is_repeated(study, reference) -> None:
    first = study.names[0]
    with study.held(first):
        process, output = study.start()
        job = study.wait_for_worker(first)
        study.cluster.run(f"scancel {job}")
        study.cluster.wait_for(lambda: study.cluster.jobs()[job][0] == "CANCELLED", "the job is cancelled")
    text = study.finish(process, output)
    study.check(reference)
    assert study.history(first) == ["CANCELLED", "COMPLETED"]
    assert f"SLURM-job '{job}' failed" in text
    assert list((study.root / ".snakemake/slurm_logs").rglob(f"{job}.log")), "the failed job's log is kept"
    assert (study.results / f"logs/{first}.log.1").is_file(), "and the first attempt's own log"


def test_a_job_killed_for_memory_is_repeated_with_more(make_study, reference) -> None:
    study = make_study(cluster={"mem_mb": 420})
    study.run("--retries", "3")
    study.check(reference)
    shown = study.cluster.run("squeue -h --states=all -o '%A|%T|%m|%k'").splitlines()
    rows = [line.split("|") for line in shown]
    for name in study.names:
        mine = sorted(
            (int(job), state, int(memory.rstrip("M")))
            for job, state, memory, comment in rows
            if name in comment and int(job) > study.before
        )
        states, memories = [row[1] for row in mine], [row[2] for row in mine]
        assert memories == [420 * attempt for attempt in range(1, len(mine) + 1)]
        assert len(mine) > 1, "the first attempt had too little"
        assert states[-1] == "COMPLETED"
        assert not set(states[:-1]) & {"COMPLETED", "RUNNING"}


#: The first worker that writes its steps halves them, says its number, and waits for its end.
PAUSE = """\
                if table == "steps" and not (Path(results) / "worker").exists():
                    import os, time
                    temporary.write_bytes(temporary.read_bytes()[:100])
                    note = os.open(Path(results) / "worker", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
                    os.write(note, str(os.getpid()).encode())
                    time.sleep(600)
"""


def test_a_worker_killed_in_the_middle_of_a_write(study, reference) -> None:
    """Heads are there, steps are half written, runs are missing: the retry starts anew and the half is never seen."""
    writer = study.root / "src/kvcert/runner/writer.py"
    text = writer.read_text()
    line = next(part for part in text.splitlines(keepends=True) if "pq.write_table(" in part)
    writer.write_text(text.replace(line, line + PAUSE))
    assert line.startswith(" " * 16)
    process, output = study.start()
    note = study.results / "worker"
    study.cluster.wait_for(lambda: note.is_file() and note.read_text(), "a worker in the middle of a write")
    os.kill(int(note.read_text()), signal.SIGKILL)
    study.finish(process, output)
    assert list(study.results.glob("steps/.*.tmp")), "the half file is still there, under its temporary name"
    study.check(reference)


def test_a_killed_master_and_its_orphans(study, reference) -> None:
    """kill -9 of snakemake while jobs run: the lock is cleared, the rerun and the orphan never write the same shard."""
    first = study.names[0]
    with study.held(first):
        process, _ = study.start()
        orphan = study.wait_for_worker(first)
        study.kill(process)
        assert list((study.root / ".snakemake/locks").glob("*.lock")), "a kill leaves the lock"
        assert unlock.clear_stale(study.root).startswith("cleared"), "jobs of the dead master hold no lock"
        assert orphan in study.cluster.running(first), "the orphan works on"
        since = time.time()
        second, output = study.start()
        study.cluster.wait_for(
            lambda: len(study.cluster.running(first)) == 2, "a second job of the same shard"
        )
        study.wait_for_worker(first, since)
    text = study.finish(second, output)
    study.check(reference)
    assert study.history(first) == ["COMPLETED", "COMPLETED"]
    slurm = next((study.root / ".snakemake/slurm_logs").rglob(f"{orphan}.log"))
    logs = [slurm.read_text(), (study.results / f"logs/{first}.log").read_text()]
    done = sum("already there, nothing to do" in log for log in logs)
    assert done == 1, "one of the two measured the shard, the other found it done"
    assert "Traceback" not in text


def test_two_masters_in_one_folder(study, reference) -> None:
    """The second is refused in plain words, and leaves the first alone."""
    first = study.names[0]
    with study.held(first):
        process, output = study.start()
        study.wait_for_worker(first)
        text = study.run(ok=False)
        assert "cannot be locked" in text
        with pytest.raises(KvcertError, match=f"process {process.pid}"):
            unlock.clear_stale(study.root)
    study.finish(process, output)
    study.check(reference)
    assert [study.history(name) for name in study.names] == [["COMPLETED"]] * 2
