"""Synthetic results of several kinds, scored once each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kinds import KINDS, small

from kvcert.claims import score_all
from synthetic import write_logs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def scored(base_config: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`scored(kind)`: a results folder with logs, the stored configuration and scored claims; made once per kind."""
    made: dict[str, Path] = {}

    def get(kind: str) -> Path:
        if kind not in made:
            config = small(base_config)
            if kind == "tiny":
                config = small(base_config, examples=2, tasks=("niah",))
                config["study"]["rows"] = [
                    {"policy": "full"}, {"policy": "topk", "budgets": [0.25]},
                    {"policy": "poisson", "budgets": [0.25], "draws": 2},
                ]  # fmt: skip
            results = tmp_path_factory.mktemp(kind)
            config["run"]["results"] = str(results)
            write_logs(results, config, seed=1, **KINDS[kind])
            (results / "config.json").write_text(json.dumps(config))
            score_all(results, ROOT, config)
            made[kind] = results
        return made[kind]

    return get


@pytest.fixture
def logs_only(base_config: dict[str, Any], tmp_path: Path) -> Path:
    """Logs that nobody has scored."""
    write_logs(tmp_path, small(base_config, examples=2), seed=1)
    return tmp_path
