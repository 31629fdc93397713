"""One shard of a tiny model with every policy under every scorer in both settings, run once."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from tests.tiny_grid import save_tiny_model, tiny_config

from kvcert.grid import shards
from kvcert.presses import PRESSES
from kvcert.runner.shard import run_shard
from kvcert.scorers import SCORERS

#: Policies that take any score, with the parameters that they need.
SCORED = {
    "topk": None,
    "poisson": None,
    "mixture": {"lam": 0.3},
    "uniform": None,
    "uncorrected": None,
    "adakv": {"safeguard": 0.2},
}
#: Policies without a score, or with one of their own.
OTHER = ("random", "streaming", "lru")
ALL_SCORERS = (*SCORERS, *PRESSES)
BUDGET = 0.3


def rows(scorers=ALL_SCORERS):
    """Configuration rows of the matrix."""
    found = [{"policy": "full"}, *({"policy": policy, "budgets": [BUDGET]} for policy in OTHER)]
    for policy, params in SCORED.items():
        for scorer in scorers:
            row = {"policy": policy, "budgets": [BUDGET], "scorer": scorer}
            found.append(row | ({"params": params} if params else {}))
    return found


@pytest.fixture(scope="session")
def matrix(tmp_path_factory, tokenizer, cache):
    """(results folder, configuration, runs by run id) of the whole matrix; never changed by a test."""
    pytest.importorskip("kvpress")
    folder = save_tiny_model(tmp_path_factory.mktemp("matrix-model"), tokenizer)
    results = tmp_path_factory.mktemp("matrix")
    task = {"name": "niah", "length": 400, "examples": 1, "fail_below": 0.5, "params": {}}
    config = tiny_config(folder, results, cache, tasks=[task], rows=rows(), max_new_tokens=3)
    (spec,) = shards(config)
    assert run_shard(spec, config["run"], progress=False)
    runs = pq.read_table(results / "runs" / f"{spec['shard']}.parquet").to_pylist()
    return results, config, {run["run_id"]: run for run in runs}
