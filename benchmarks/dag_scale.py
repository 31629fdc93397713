"""How the graph grows: seconds and memory of a dry run with 100, 1,000 and 5,000 cell jobs.

Every job is one shard of one example; nothing is run and nothing is prepared. The parent only waits, and the kernel tells
what the child used (`wait4`). The best of the repeats counts, since a busy machine only adds.

    python benchmarks/dag_scale.py [--jobs 100 1000 5000] [--repeats 2]

Last line: `ratio seconds_per_job_last_over_second <value>`: what one job costs in the largest graph over what it costs in
the one before, start-up subtracted. 1 is linear; above 2 something is quadratic.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("Snakefile", "workflow", "src", "config", "profiles", "slurm", "environment.yml", "preregistration")


def dry_run(jobs: int, place: Path) -> tuple[float, float]:
    """Seconds and megabytes of `snakemake -n` on a grid of `jobs` shards."""
    tasks = [{"name": "niah", "length": 768, "examples": jobs, "fail_below": 0.5, "params": {"needles": 10}}]
    overlay = place / f"{jobs}.yaml"
    overlay.write_text(yaml.safe_dump({"study": {"tasks": tasks}, "run": {"shard_examples": 1}}))
    command = [sys.executable, "-m", "snakemake", "-n", "--cores", "1", "--configfile", str(overlay)]
    started = time.perf_counter()
    child = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert child.stdout is not None
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status) != 0 or f"to run {jobs}" not in output:
        raise SystemExit(f"the dry run of {jobs} jobs failed:\n{output[-3000:]}")
    return seconds, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    sizes = sorted({1, *options.jobs})
    if len(sizes) < 3:
        raise SystemExit("give at least two different numbers of jobs above 1")
    best: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="kvcert-dag-") as name:
        place = Path(name)
        for part in PARTS:
            (place / part).symlink_to(ROOT / part)
        print(f"{'cell jobs':>10} {'seconds':>9} {'memory MB':>10}", flush=True)
        for jobs in sizes:
            runs = [dry_run(jobs, place) for _ in range(options.repeats)]
            best[jobs] = min(seconds for seconds, _ in runs)
            print(f"{jobs:>10,} {best[jobs]:>9.2f} {max(memory for _, memory in runs):>10.0f}", flush=True)
    *_, second, last = sizes
    each = [(best[jobs] - best[1]) / (jobs - 1) for jobs in (second, last)]
    print(f"one more job costs {1000 * each[1]:.2f} ms in the graph of {last:,}")
    print(f"ratio seconds_per_job_last_over_second {each[1] / each[0]:.2f}")


if __name__ == "__main__":
    main()
