"""The exhibits in the graph: on request only, each with what it reads, and no claim is scored again for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from roots import registered_root
from tests.house.project import build, dry, jobs

from kvcert.exhibits import EXHIBITS


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project with a registration that holds every exhibit."""
    folder = build(tmp_path)
    for name in ("preregistration", "config"):
        (folder / name).unlink()
    return registered_root(folder)


def test_all_exhibits_and_the_page(project: Path) -> None:
    found = jobs(dry(project, "exhibits", "--quiet", "host"))
    assert found["exhibit"] == found["exhibit_page"] == len(EXHIBITS)
    assert found["report"] == found["setup"] == 1
    assert "controls_hold" not in found


def test_controls_alone(project: Path) -> None:
    output = dry(project, "controls", "--quiet", "host")
    found = jobs(output)
    assert (found["exhibit"], found["exhibit_page"], found["controls_hold"]) == (1, 1, 1)
    assert "score" not in found
    assert "exhibits/X1.json" not in output
