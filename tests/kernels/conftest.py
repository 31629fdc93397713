"""The drivers are compiled once per session."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parent))
import shim

from kvcert.kernels.build import compiler

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The device kernels under the CPU executor, built once for all workers of a parallel run."""
    if not compiler():
        pytest.skip("no C++ compiler")
    base = tmp_path_factory.getbasetemp()
    target = (base if worker_id == "master" else base.parent) / "simt-driver"
    with FileLock(f"{target}.lock"):
        if not target.exists():
            shim.build(target)
    return target
