"""A tiny model, a tiny grid of one task, and a root whose registration holds every exhibit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.tiny_grid import save_tiny_model, tiny_config

from kvcert.exhibits import EXHIBITS
from kvcert.exhibits.registration import FILE
from kvcert.grid import shards
from kvcert.runner.shard import run_shard

ROOT = Path(__file__).resolve().parents[2]
STUB = {"title": "A title", "question": "A question?", "method": "A method.", "parameters": {}}


def registered_root(folder: Path, **parameters: dict[str, Any]) -> Path:
    """The project's registration in a folder of its own; exhibits it lacks are stubs, `parameters` replace theirs."""
    shutil.copytree(ROOT / "preregistration", folder / "preregistration")
    shutil.copytree(ROOT / "config", folder / "config")
    content = yaml.safe_load((ROOT / FILE).read_text())["exhibits"]
    for name in EXHIBITS:
        line = {"id": f"stub.{name}", "statement": "A statement", "direction": "at_least", "line": 0.5}
        entry = content.setdefault(name, STUB | {"expectations": [line]})
        entry["parameters"] |= parameters.get(name, {})
    (folder / FILE).write_text(yaml.safe_dump({"exhibits": content}, sort_keys=False))
    (folder / "preregistration/EXHIBITS.json").unlink(missing_ok=True)
    return folder


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with small parameters."""
    return registered_root(
        tmp_path_factory.mktemp("root"),
        X1={"steps": 2},
        X4={"tokens": [64], "step_tokens": [64], "rows": [1], "repeats": 5},
        controls={"draws": 200, "shuffles": 50},
    )


@pytest.fixture(scope="session")
def grid(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any, cache: Path) -> dict[str, Any]:
    """The resolved configuration of a finished tiny grid: one task, two examples."""
    model = save_tiny_model(tmp_path_factory.mktemp("model"), tokenizer)
    task = {"name": "niah", "length": 320, "examples": 2, "fail_below": 0.5, "params": {}}
    results = tmp_path_factory.mktemp("results")
    config = tiny_config(model, results, cache, tasks=[task])
    for spec in shards(config):
        run_shard(spec, config["run"], progress=False)
    from kvcert.logs.integrity import check

    check(results, config)
    return config


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    """Outcome by expectation."""
    return {entry["id"]: entry["outcome"] for entry in found["expectations"]}


def read(config: dict[str, Any], name: str) -> dict[str, Any]:
    """An outcome as it lies in the results."""
    return json.loads((Path(config["run"]["results"]) / "exhibits" / f"{name}.json").read_text())
