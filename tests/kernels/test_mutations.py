"""The mutation list stays in step with the kernels; `mutations.py` runs it whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mutations import MUTANTS

from kvcert.kernels.build import source_dir


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.what)
def test_every_mutant_changes_exactly_one_place(mutant) -> None:  # type: ignore[no-untyped-def]
    assert (source_dir() / mutant.file).read_text().count(mutant.old) == 1
    assert mutant.old != mutant.new


def test_there_are_enough() -> None:
    assert len({m.what for m in MUTANTS}) == len(MUTANTS) >= 12


@pytest.mark.slow
def test_every_third_is_caught() -> None:
    """A third of the list, to keep the suite short; the script runs all of it."""
    command = [sys.executable, str(Path(__file__).parent / "mutations.py"), "--every", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    count = len(MUTANTS[::3])
    assert count >= 12
    assert done.stdout.splitlines()[-1:] == [f"caught {count}/{count}"], done.stdout + done.stderr[-2000:]
