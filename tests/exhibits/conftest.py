"""A tiny model, a tiny grid of one task, and a root whose registration holds every exhibit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from roots import registered_root
from tests.tiny_grid import save_tiny_model, tiny_config

from kvcert.grid import shards
from kvcert.logs.integrity import check
from kvcert.runner.shard import run_shard


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
    check(results, config)
    return config
