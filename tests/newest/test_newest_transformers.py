"""The hook on the newest transformers 5.x, laid over the installed one: the same exactness tests in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]
NEWEST = ("transformers==5.24.0", "tokenizers==0.23.3")


@pytest.fixture(scope="session")
def overlay() -> Path:
    """A folder that holds the newest transformers alone, fetched once."""
    folder = ROOT / "build" / "newest" / NEWEST[0]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.parent / "lock"):
        if not (folder / "tokenizers").exists():
            command = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "-q",
                "--no-deps",
                "--target",
                str(folder),
                *NEWEST,
            ]
            subprocess.run(command, check=True)
    return folder


@pytest.mark.slow
def test_exactness_on_the_newest_release(overlay, cache):
    environment = os.environ | {
        "PYTHONPATH": f"{overlay}:{ROOT / 'src'}:{ROOT}",
        "KVCERT_CACHE": str(cache.resolve()),
    }
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    version = subprocess.run(
        [sys.executable, "-c", "import transformers; print(transformers.__version__)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.strip() == NEWEST[0].partition("==")[2]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        "tests/cache",
        "tests/models/test_prompts.py",
    ]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-3000:]
    assert " passed" in found.stdout
