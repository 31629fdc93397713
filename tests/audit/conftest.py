"""A frozen and amended project of its own, measured synthetically, scored, and audited once."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audit_project import Project, small_study

from kvcert import audit, registry
from kvcert.claims import score_all
from kvcert.logs.integrity import check as gate
from synthetic import write_logs


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("project")
    config = small_study(root)
    registry.freeze(root, config)
    registry.amend(root, config, "A first note, before anything was measured.")
    results = root / "results"
    write_logs(results, config, 3, layers=2, kv_heads=2)
    gate(results, config)
    score_all(results, root, config)
    return Project(root, results, config)


@pytest.fixture(scope="session")
def bundle(project: Project) -> Callable[[str], Path]:
    """`bundle("C6")`: the untouched bundle of a claim, built once."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = project.root / "audit" / name
            audit.build(name, project.results, project.root, project.config, made[name])
        return made[name]

    return get


@pytest.fixture
def copied(bundle: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A bundle to damage."""

    def get(name: str) -> Path:
        place = tmp_path / name
        shutil.copytree(bundle(name), place)
        return place

    return get


@pytest.fixture
def config(project: Project) -> dict[str, Any]:
    return copy.deepcopy(project.config)
