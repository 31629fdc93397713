"""The benchmark against kvpress runs: its own checks hold (same kept tokens), and the shard is the faster side."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from tests.tiny_grid import ROOT

pytestmark = pytest.mark.slow


def test_one_short_example(cache):
    pytest.importorskip("kvpress")
    if (ROOT / ".kvcert").resolve() != cache.resolve():
        pytest.skip("the benchmark reads the model from .kvcert")
    done = subprocess.run(
        [sys.executable, "benchmarks/bench_kvpress.py", "--examples", "1", "--length", "320", "--new", "4"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    found = re.search(r"in all 16 cells; same answer in (\d+) of 16", done.stdout)
    assert found is not None
    assert int(found.group(1)) >= 14  # near-equal scores may order two tokens the other way
    ratio = re.fullmatch(r"ratio kvpress_over_ours (\d+\.\d\d)", lines[-1])
    assert ratio is not None
    assert float(ratio.group(1)) > 1
