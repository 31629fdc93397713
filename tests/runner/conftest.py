"""A tiny model on disk and one finished tiny grid, made once."""

from __future__ import annotations

import pytest
from tests.tiny_grid import save_tiny_model, tiny_config

from kvcert.grid import shards
from kvcert.runner.shard import run_shard


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory, tokenizer):
    return save_tiny_model(tmp_path_factory.mktemp("tiny-model"), tokenizer)


@pytest.fixture(scope="session")
def finished(tmp_path_factory, tiny_folder, cache):
    """(results folder, config) of a finished tiny grid. Never changed by a test: copy it."""
    results = tmp_path_factory.mktemp("tiny-results")
    config = tiny_config(tiny_folder, results, cache)
    for spec in shards(config):
        assert run_shard(spec, config["run"], progress=False)
    return results, config
