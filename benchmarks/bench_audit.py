"""How long scoring, building and checking evidence take at the size of the default study, on synthetic logs.

    python benchmarks/bench_audit.py [--examples 48] [--claims C1 C6] [--keep DIR]

Writes logs of the registered grid (five tasks, 54 panel pairs a step), scores all claims, builds and checks the
bundles; every step in a process of its own, whose seconds and peak memory are printed beside the limits.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

#: Seconds, and gigabytes of memory, that the project promises.
LIMITS = {"score": (20.0, 2.0), "build": (10.0, 2.0), "check": (3.0, 2.0)}
LARGEST = 20e6


def make(results: Path, examples: int) -> None:
    """Synthetic logs of the default grid, passed by the integrity gate."""
    from kvcert.config import load
    from kvcert.logs.integrity import check
    from synthetic import write_logs

    config = load(ROOT / "config/config.yaml")
    config["study"]["tasks"] = [task | {"examples": examples} for task in config["study"]["tasks"]]
    config["run"]["results"] = str(results)
    write_logs(results, config, 0, layers=6, kv_heads=9)
    print(json.dumps(check(results, config)))


def step(what: str, results: Path, claim: str) -> None:
    """One measured step, in this process."""
    config = json.loads((results / "config.json").read_text()) if what != "check" else {}
    if what == "score":
        from kvcert.claims import score_all

        score_all(results, ROOT, config)
    elif what == "build":
        from kvcert.audit import build

        build(claim, results, ROOT, config, results / "audit" / claim)
    else:
        from kvcert.audit import check

        check(results / "audit" / claim)


def measured(what: str, results: Path, claim: str) -> tuple[float, float, float]:
    """Seconds, seconds of processor, and peak gigabytes of one step, the start of Python included."""
    began = time.perf_counter()
    command = [sys.executable, __file__, "--step", what, "--keep", str(results), "--claims", claim]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    cpu, peak = done.stdout.split()[-2:]
    return time.perf_counter() - began, float(cpu), int(peak) / 1e6


def main() -> int:
    """Print one line per step; exit 1 when a limit is broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=48)
    parser.add_argument("--claims", nargs="*", default=[f"C{n}" for n in range(1, 8)])
    parser.add_argument("--keep", type=Path, help="folder of the logs; used again when they are there")
    parser.add_argument("--step", choices=LIMITS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        step(args.step, args.keep, args.claims[0])
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(used.ru_utime + used.ru_stime, used.ru_maxrss)
        return 0
    place = args.keep or Path(tempfile.mkdtemp())
    if not (place / "integrity.json").is_file():
        make(place, args.examples)
    report = json.loads((place / "integrity.json").read_text())
    print(f"{report['runs']:,} runs, {report['steps']:,} steps, {report['heads']:,} head rows")
    broken, jobs = (
        False,
        [("score", "all"), *((what, claim) for claim in args.claims for what in ("build", "check"))],
    )
    for what, claim in jobs:
        seconds, cpu, memory = measured(what, place, claim)
        size = ""
        if what == "build":
            folder = place / "audit" / claim
            total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            size, broken = f"  {total / 1e6:5.1f} MB (<= {LARGEST / 1e6:.0f})", broken or total > LARGEST
        limit = LIMITS[what]
        broken = broken or seconds > limit[0] or memory > limit[1]
        told = f"{seconds:6.2f} s (<= {limit[0]:g}), {cpu:5.2f} s of processor  {memory:5.2f} GB (<= {limit[1]:g})"
        print(f"{what:6} {claim:4} {told}{size}", flush=True)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
