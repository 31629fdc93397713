"""A folder that is the whole project for Snakemake, with results and a lock of its own. Used by the workflow's tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("Snakefile", "workflow", "src", "config", "profiles", "slurm", "environment.yml", "preregistration")


def build(folder: Path, *, snapshot: bool = False) -> Path:
    """Lay the project out in `folder`: links to this checkout, or with `snapshot` copies that an edit here won't reach."""
    for part in PARTS:
        source, target = ROOT / part, folder / part
        if not source.exists():
            continue
        if not snapshot:
            target.symlink_to(source)
        elif source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy2(source, target)
    return folder


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "snakemake", *arguments]


def environment() -> dict[str, str]:
    """This process's environment with one thread a worker."""
    return os.environ | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "TOKENIZERS_PARALLELISM": "false"}


def snakemake(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake there to its end; standard output and error come together."""
    return subprocess.run(
        command(*arguments), cwd=project, env=environment(), text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def dry(project: Path, *arguments: str) -> str:
    """Output of a dry run that must succeed."""
    done = snakemake(project, "-n", *arguments)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def jobs(output: str) -> dict[str, int]:
    """The table of job counts that Snakemake prints; empty when there is nothing to do."""
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}
