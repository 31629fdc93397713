"""A small grid, scoring of synthetic logs, and studies made of a few hand-written runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kvcert import registry
from kvcert.claims import frames
from kvcert.claims.bootstrap import Plan
from kvcert.claims.frames import Study
from kvcert.claims.outcome import as_json
from kvcert.claims.score import MODULES
from synthetic import write_logs

ROOT = Path(__file__).resolve().parents[2]
Scored = dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def small(base_config: dict[str, Any]) -> dict[str, Any]:
    """Three tasks with 24 examples each, one shard a task."""
    config = copy.deepcopy(base_config)
    config["study"]["tasks"] = [task | {"examples": 24} for task in config["study"]["tasks"][1:4]]
    config["study"]["max_new_tokens"] = 5
    config["run"]["shard_examples"] = 24
    return config


@pytest.fixture
def scored(small: dict[str, Any], registered: dict[str, Any], tmp_path: Path) -> Callable[..., Scored]:
    """Write synthetic logs with the given effects and score claims on them, with few resamples for speed."""

    def run(
        *names: str, config: dict[str, Any] = small, seed: int = 0, resamples: int = 200, **effects: Any
    ) -> Scored:
        write_logs(tmp_path, config, seed, **({"layers": 2, "kv_heads": 2} | effects))
        study, found = frames.load(tmp_path, config, registered["common"]), {}
        for name in names or MODULES:
            claim, score = registered["claims"][name], import_module(f"kvcert.claims.{MODULES[name]}").score
            outcome = score(study, claim, Plan(0.95, resamples, 1))
            found[name] = as_json(claim, outcome, {"status": "exploratory"})
        return found

    return run


@pytest.fixture(scope="session")
def registered() -> dict[str, Any]:
    """The registration of the repository."""
    return registry.load_claims(ROOT)


@pytest.fixture
def plan() -> Plan:
    """Few resamples: hand-computed tests look at point estimates."""
    return Plan(0.95, 50, 7)


@pytest.fixture
def study_of(registered: dict[str, Any], tmp_path: Path) -> Callable[[list[dict[str, Any]]], Study]:
    """A study of hand-written runs; what a test does not say gets a plain default."""

    def make(rows: list[dict[str, Any]]) -> Study:
        default = {
            "model": "m", "task": "niah", "length": 10, "example": 0, "setting": "streaming", "scorer": "snapkv",
            "policy": "poisson", "budget": 0.25, "draw": 0, "regime": "free", "valid": True, "identity": False,
            "answer": "", "score": 0.0, "fail_below": 0.5, "logp_mean": -1.0, "logp_first6": -1.0, "signal": 1.0,
            "signal_guarded": 1.0, "evicted_mass": 0.5, "seconds_prefill": 3.0, "seconds_decode": 1.0, "kept_bytes": 1,
        }  # fmt: skip
        full = {"policy": "full", "scorer": "none", "budget": 1.0, "identity": True, "signal": None}
        runs = pd.DataFrame([default | (full if row.get("policy") == "full" else {}) | row for row in rows])
        runs["fail"] = runs["score"] < runs["fail_below"]
        runs["run_id"] = [f"run{number}" for number in range(len(runs))]
        runs["stratum"], runs["cell"] = runs["task"], runs["task"]
        runs["cluster"] = runs["task"] + "/" + runs["example"].astype(str)
        return Study(runs, tmp_path, ("s",), "snapkv", registered["common"], 0)

    return make
