"""A tiny study of its own folder for every test: a random two-layer model, two shards, driven by Snakemake through Slurm."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from filelock import FileLock
from tests.house.project import build, command, environment

from kvcert.config import load
from kvcert.grid import Spec, shards
from kvcert.logs import integrity
from kvcert.logs.schema import TABLES

CLOCKS = ["seconds_prefill", "seconds_decode"]
#: Shorter waits than the profiles', which are made for shared clusters.
QUICK = (
    *("--slurm-init-seconds-before-status-checks", "10"),
    *("--max-status-checks-per-second", "1"),
    *("--latency-wait", "20"),
)


def overlay(model: Path, cache: Path, results: str = "results-tiny", **run: Any) -> dict[str, Any]:
    """Configuration of a grid with two shards of two examples."""
    tasks = [
        {"name": name, "length": 320, "examples": 2, "fail_below": 0.5, "params": {}}
        for name in ("niah", "facts")
    ]
    rows = [
        {"policy": "full"},
        {"policy": "topk", "budgets": [0.25]},
        {"policy": "poisson", "budgets": [0.5]},
    ]
    return {
        "study": {
            "models": [{"name": "tiny", "path": str(model), "dtype": "float32"}],
            "tasks": tasks,
            "rows": rows,
            "max_new_tokens": 4,
            "constants": {"n_recent": 12, "window": 12, "panel_layers": 2},
        },
        "run": {
            "results": results, "figures": "figures-tiny", "cache": str(cache), "shard_examples": 2,
            "trace_examples": 1, "cluster": {"mem_mb": 1500},
        } | run,
    }  # fmt: skip


def rows_of(results: Path, shard: str) -> dict[str, list[str]]:
    """Every row that a shard logged, its clocks left out; as text, in which equal numbers are equal and NaN is NaN."""
    tables = {table: pq.read_table(results / table / f"{shard}.parquet") for table in TABLES}
    tables["runs"] = tables["runs"].drop_columns(CLOCKS)
    return {name: [repr(row) for row in table.to_pylist()] for name, table in tables.items()}


class Study:
    """A project folder with the tiny grid, and the Snakemake processes that work in it."""

    def __init__(self, place: Path, cluster: Any, grid: dict[str, Any], profile: str = "slurm") -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.root, self.cluster, self.profile = build(place, snapshot=True), cluster, profile
        (self.root / "config" / "tiny.yaml").write_text(yaml.safe_dump(grid))
        self.config = load(self.root / "config" / "config.yaml", self.root / "config" / "tiny.yaml")
        self.specs: list[Spec] = shards(self.config)
        self.names = [spec["shard"] for spec in self.specs]
        self.results = self.root / self.config["run"]["results"]
        self._started: list[subprocess.Popen[bytes]] = []
        self._calls = 0
        #: Number of the last Slurm job before this study's first.
        self.before = max(cluster.jobs(), default=0)

    def start(
        self, *arguments: str, target: str = "integrity.json", also: Sequence[Path] = ()
    ) -> tuple[subprocess.Popen[bytes], Path]:
        """Start `snakemake --cores all --profile …` there; the process and the file with its output."""
        self._calls += 1
        output = self.root / f"call-{self._calls}.log"
        goal = [str(Path(self.config["run"]["results"]) / target)]
        goal += [str(path.relative_to(self.root)) for path in also]
        parts = [*goal, "--cores", "all", "--profile", self.profile, "--configfile", "config/tiny.yaml"]
        with open(output, "wb") as file:
            process = subprocess.Popen(
                command(*parts, *QUICK, *arguments),
                cwd=self.root,
                env=environment() | self.cluster.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self._started.append(process)
        return process, output

    def run(self, *arguments: str, also: Sequence[Path] = (), ok: bool = True) -> str:
        """Run it to its end."""
        process, output = self.start(*arguments, also=also)
        return self.finish(process, output, ok=ok)

    def finish(self, process: subprocess.Popen[bytes], output: Path, *, ok: bool = True) -> str:
        """Wait for the end; the output."""
        process.wait(timeout=420)
        text = output.read_text()
        assert (process.returncode == 0) == ok, text[-6000:]
        assert "Traceback" not in text, text[-6000:]
        return text

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """kill -9, the master alone."""
        process.send_signal(signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        """End what a failed test left running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()
        for job, (state, _, comment) in self.cluster.jobs().items():
            if state in ("RUNNING", "PENDING", "CONFIGURING") and any(name in comment for name in self.names):
                self.cluster.run(f"scancel {job}", check=False)

    @contextmanager
    def held(self, shard: str) -> Iterator[None]:
        """Hold a shard's lock: its worker starts, says so in its log, and waits for as long as the test likes."""
        lock = self.results / "locks" / f"{shard}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock):
            yield

    def wait_for_worker(self, shard: str, since: float = 0.0) -> int:
        """Wait until the shard's worker has begun its work; the number of its Slurm job."""
        log = self.results / "logs" / f"{shard}.log"
        self.cluster.wait_for(
            lambda: self.cluster.running(shard) and log.is_file() and log.stat().st_mtime >= since,
            f"worker of {shard}",
        )
        return int(self.cluster.running(shard)[-1])

    def history(self, shard: str) -> list[str]:
        """States of this study's Slurm jobs for a shard, oldest first."""
        jobs = self.cluster.jobs()
        return [jobs[job][0] for job in sorted(jobs) if job > self.before and shard in jobs[job][2]]

    def check(self, reference: dict[str, Any]) -> None:
        """Nothing lost, nothing doubled: the gate passes and every row is the undisturbed run's."""
        assert integrity.check(self.results, self.config)["ok"]
        for name in self.names:
            assert rows_of(self.results, name) == reference[name], f"{name} differs from the undisturbed run"


def submitted(output: str) -> int:
    """How many Slurm jobs a call submitted."""
    return len(re.findall(r"has been submitted with SLURM jobid", output))


def pause() -> float:
    """Now, after a moment that file times can tell apart."""
    time.sleep(0.05)
    return time.time()
