"""Shards that exhibits need beyond the default run, as ordinary shard specifications. No torch: the DAG is built from it.

Each is run by `kvcert.runner.shard.run_shard(spec, operational(config))` and lies in `{results}/exhibits/cells`. An
exhibit is measured on the configuration's first model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvcert import grid
from kvcert.exhibits import registration
from kvcert.grid import Spec

Config = dict[str, Any]


def specs(name: str, config: Config, root: Path) -> list[Spec]:
    """Shards of exhibit `name`, in a fixed order; none for exhibits that are measured without a grid.

    Parameters
    ----------
    config : resolved configuration. root : folder of the project, with the registered parameters.
    """
    if name == "X3":
        return assumption(config, registration.load(root)["X3"]["parameters"])
    if name == "ablations":
        parameters = registration.load(root)["ablations"]["parameters"]
        return [
            spec
            for constant, values in parameters["reruns"].items()
            for value in values
            for spec in rerun(config, parameters, constant, value)
        ]
    return []


def operational(config: Config) -> dict[str, Any]:
    """How the exhibits' shards are run: `run` with their own folder, every head, and a trace in each shard."""
    run = {key: value for key, value in config["run"].items() if key != "heads"}
    folder = str(Path(run["results"]) / "exhibits" / "cells")
    return run | {"results": folder, "trace_examples": max(1, run["trace_examples"])}


def complete(name: str, config: Config, root: Path, progress: Callable[[str], None]) -> list[Spec]:
    """Run the shards that are not there yet, so that an exhibit can be measured without the DAG; returns all of them."""
    from kvcert.runner.shard import run_shard

    every = specs(name, config, root)
    for spec in every:
        run_shard(spec, operational(config), progress)
    return every


def assumption(config: Config, parameters: dict[str, Any]) -> list[Spec]:
    """X3: the registered design and its repairs on several context lengths."""
    tasks = [
        task | {"length": length, "examples": parameters["examples"]}
        for task in parameters["tasks"]
        for length in parameters["lengths"]
    ]
    study = _study(config) | {
        "tasks": tasks,
        "settings": parameters["settings"],
        "rows": parameters["rows"],
        "forced": True,
        "max_new_tokens": parameters["max_new_tokens"],
    }
    return _named("X3", config, study, parameters["examples"])


def rerun(config: Config, parameters: dict[str, Any], constant: str, value: float) -> list[Spec]:
    """Ablations: the default run's certified rows on its first examples, with one constant of the design changed."""
    study = _study(config)
    rows = [row for row in study["rows"] if row["policy"] in ("full", "poisson")]
    study |= {
        "tasks": [
            task | {"examples": min(parameters["examples"], task["examples"])}
            for task in scope(config, parameters)
        ],
        "rows": rows,
        "constants": study["constants"] | {constant: value},
    }
    return _named(f"ablations.{constant}{value:g}", config, study, parameters["examples"])


def scope(config: Config, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """The configuration's tasks that are registered for the reruns; all of them where it has none of these."""
    tasks = config["study"]["tasks"]
    return [task for task in tasks if task["name"] in parameters["tasks"]] or tasks


def _study(config: Config) -> dict[str, Any]:
    """The configured study on its first model, every step's heads logged."""
    study = {key: value for key, value in config["study"].items() if key not in grid.OPTIONAL}
    return study | {"models": study["models"][:1]}


def _named(prefix: str, config: Config, study: dict[str, Any], size: int) -> list[Spec]:
    found = grid.shards({"study": study, "run": config["run"] | {"shard_examples": size}})
    return [spec | {"shard": f"{prefix}.{spec['shard']}"} for spec in found]
