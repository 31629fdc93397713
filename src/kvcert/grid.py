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
CERTIFIED = frozenset({"poisson", "mixture", "uniform"})
#: Policies with parameters: name of each → smallest and largest value. All must be given: none has a default.
PARAMS: dict[str, dict[str, tuple[float, float]]] = {
    "mixture": {"lam": (1e-6, 1.0)},
    "adakv": {"safeguard": (0.0, 1.0)},
}
#: Policies that are a rule together with a score of their own: policy → scorer. Their rows name none.
OWN_SCORE = {"lru": "last_used"}


def expand_rows(study: dict[str, Any]) -> list[dict[str, Any]]:
    """Every (policy, budget, draw) of the study, `full` first: `[{"policy", "budget", "draw", "scorer"}, ...]`.

    A policy with parameters has its row's `params` beside these.
    """
    rows = []
    for entry in study["rows"]:
        policy, params = entry["policy"], entry.get("params")
        for budget in entry.get("budgets") or [1.0]:
            for draw in range(entry.get("draws", 1)):
                named = OWN_SCORE.get(policy) or entry.get("scorer") or study["scorer"]
                scorer = "none" if policy in SCORELESS else named
                row = {"policy": policy, "budget": float(budget), "draw": draw, "scorer": scorer}
                rows.append(row | ({"params": dict(params)} if params else {}))
    return sorted(rows, key=lambda row: row["policy"] != "full")


def label(row: dict[str, Any]) -> str:
    """The policy as the logs name it, its parameters in brackets: `poisson`, `mixture[lam=0.3]`."""
    inside = ",".join(f"{key}={value:g}" for key, value in sorted(row.get("params", {}).items()))
    return row["policy"] + (f"[{inside}]" if inside else "")


def certified(policy: str) -> bool:
    """True when a policy, as the logs name it, has known inclusion probabilities."""
    return policy.partition("[")[0] in CERTIFIED


def shards(config: dict[str, Any]) -> list[Spec]:
    """One specification per shard, in a fixed order; everything a worker needs and nothing it does not."""
    study, rows = config["study"], expand_rows(config["study"])
    common = {key: study[key] for key in ("seed", "settings", "scorer", "forced", "constants")}
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
                        "max_new_tokens": task.get("max_new_tokens", study["max_new_tokens"]),
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
        label(row),
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
