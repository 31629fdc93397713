"""From a resolved configuration to shards, rows and run identifiers. No torch here: the DAG is built from it.

A *row* is one way of keeping the cache (policy, budget, draw); a *cell* is one row in one setting of one
(model, task, length); a *shard* is the unit of work, a slice of the examples of one (model, task, length).
"""

from __future__ import annotations

from typing import Any

from kvcert.files import sha256_json
from kvcert.pace import shard_size

Spec = dict[str, Any]

#: Version of the measurement. Raise it by one when a change to the measuring code (runner, cache, kernels, survey,
#: policies, scorers, prompts, tasks) changes what is logged: every shard then has another specification, the gate refuses
#: the old logs and the workflow repeats them. Version 1 is written by leaving the key out, so that logs made before the
#: constant existed keep their hash.
MEASURE = 1

#: Keys of `study` that are part of a specification only where the configuration gives them.
OPTIONAL = ("heads_every",)

#: Policies whose selection depends on no importance score.
SCORELESS = frozenset({"full", "random", "streaming"})
#: Policies with known inclusion probabilities, hence a certificate.
CERTIFIED = frozenset({"poisson"})


def expand_rows(study: dict[str, Any]) -> list[dict[str, Any]]:
    """Every (policy, budget, draw) of the study, `full` first: `[{"policy", "budget", "draw", "scorer"}, ...]`."""
    rows = []
    for entry in study["rows"]:
        policy = entry["policy"]
        for budget in entry.get("budgets") or [1.0]:
            for draw in range(entry.get("draws", 1)):
                scorer = "none" if policy in SCORELESS else entry.get("scorer") or study["scorer"]
                rows.append({"policy": policy, "budget": float(budget), "draw": draw, "scorer": scorer})
    return sorted(rows, key=lambda row: row["policy"] != "full")


def shards(config: dict[str, Any]) -> list[Spec]:
    """One specification per shard, in a fixed order; everything a worker needs and nothing it does not."""
    study, rows = config["study"], expand_rows(config["study"])
    common = {
        key: study[key] for key in ("seed", "settings", "scorer", "forced", "max_new_tokens", "constants")
    }
    common |= {key: study[key] for key in OPTIONAL if key in study}
    common |= {"measure": MEASURE} if MEASURE > 1 else {}
    specs = []
    for model in study["models"]:
        for task in study["tasks"]:
            size = shard_size(study, config["run"], model, task, len(rows))
            for part, start in enumerate(range(0, task["examples"], size)):
                name = f"{model['name']}.{task['name']}.{task['length']}.{part}"
                examples = list(range(start, min(start + size, task["examples"])))
                specs.append(
                    common
                    | {
                        "shard": name,
                        "model": model,
                        "task": task,
                        "examples": examples,
                        "rows": [dict(row) for row in rows],
                    }
                )
    return specs


def spec_sha256(spec: Spec) -> str:
    """Hash of a shard's specification, written into its files and checked by the integrity gate."""
    return sha256_json(spec)


def run_id(spec: Spec, example: int, setting: str, row: dict[str, Any], regime: str) -> str:
    """The readable key of a run: model/task/length/example/setting/scorer/policy/budget/draw/regime."""
    task = spec["task"]
    parts = (
        spec["model"]["name"],
        task["name"],
        task["length"],
        example,
        setting,
        row["scorer"],
        row["policy"],
    )
    return "/".join(map(str, parts)) + f"/{row['budget']:g}/{row['draw']}/{regime}"


def expected_run_ids(spec: Spec) -> list[str]:
    """All run identifiers that a complete shard holds, in writing order."""
    ids = []
    for example in spec["examples"]:
        for setting in spec["settings"]:
            ids += [run_id(spec, example, setting, row, "free") for row in spec["rows"]]
            if spec["forced"]:
                certified = [row for row in spec["rows"] if row["policy"] in CERTIFIED]
                ids += [run_id(spec, example, setting, row, "forced") for row in certified]
    return ids
