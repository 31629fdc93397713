"""The prepared GPU script is rehearsed on the CPU, so that it does not fail for a trifle on the day."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "device_check.py"


@pytest.mark.slow
def test_rehearsal(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--out", str(tmp_path)]
    env = {
        "PYTHONPATH": ":".join(sys.path),
        "PATH": "/usr/bin:/bin",
        "OMP_NUM_THREADS": "1",
        "HOME": str(Path.home()),
    }
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "cpu-rehearsal-no-gpu.json").read_text())
    assert report["correctness"]["cases"] == 60
    assert max(report["correctness"]["worst_error_over_bound"].values()) < 1.0
    assert report["draws"]["units"] >= 1000
    assert report["backend"] == "cpu"


def test_it_imports_only_what_it_says() -> None:
    text = SCRIPT.read_text()
    found = {
        line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))
    }
    assert found - set(sys.stdlib_module_names) <= {"torch", "numpy", "kvcert"}
    assert "kvcert.kernels" in text
