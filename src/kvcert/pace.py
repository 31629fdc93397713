"""How long an example takes, and how many examples make a job. No torch here: the graph is sized with it.

The constants were measured with a 135M-parameter model in float32 on one thread; a larger model, a GPU or a busy machine
has another pace, which `run.throughput` states: prompt tokens that one job measures per second, everything done on an
example included. `kvcert cells` prints what finished shards reached.
"""

from __future__ import annotations

import math
from typing import Any

PREFILL_PER_TOKEN = 0.0045
STEP_FIXED = 0.12
STEP_PER_ROW_TOKEN = 1.7e-5
FORCED = 1.4 / 768
LOAD = 6.0

#: Value of `run.shard_examples` and `run.throughput` that leaves the number to this file.
AUTO = "auto"


def example_seconds(length: int, rows: int, new_tokens: int, forced: bool) -> float:
    """Rough seconds of one example on one thread, by the reference model.

    Parameters
    ----------
    length : prompt tokens. rows : rows of all settings together. new_tokens : longest answer. forced : the forced pass too.
    """
    step = STEP_FIXED + STEP_PER_ROW_TOKEN * rows * length
    return PREFILL_PER_TOKEN * length + new_tokens * step + (FORCED * length if forced else 0.0)


def stated(run: dict[str, Any], model: str) -> float | None:
    """Prompt tokens per second that `run.throughput` states for a model; None where it is left to the estimate."""
    value = run.get("throughput", AUTO)
    if isinstance(value, dict):
        value = value.get(model, AUTO)
    return None if value == AUTO else float(value)


def spec_seconds(spec: dict[str, Any], run: dict[str, Any]) -> float:
    """Seconds that a shard should take: from the stated throughput where there is one, else from the reference."""
    rows = len(spec["rows"]) * len(spec["settings"])
    length, steps = spec["task"]["length"], spec["max_new_tokens"]
    return LOAD + len(spec["examples"]) * _each(
        run, spec["model"]["name"], length, rows, steps, spec["forced"]
    )


def _each(run: dict[str, Any], model: str, length: int, rows: int, steps: int, forced: bool) -> float:
    """Seconds of one example with an answer of `steps` tokens."""
    pace = stated(run, model)
    if pace is not None:
        return length / pace + steps * float(run.get("step_seconds", 0.0))
    return example_seconds(length, rows, steps, forced)


def shard_size(
    study: dict[str, Any], run: dict[str, Any], model: dict[str, Any], task: dict[str, Any], rows: int
) -> int:
    """Examples in each shard of a (model, task, length).

    A number in `run.shard_examples` is taken as it is. `auto` makes shards of equal size that last about
    `run.job_minutes`, for `rows` rows a setting.
    """
    size = run["shard_examples"]
    if size != AUTO:
        return int(size)
    steps = task.get("max_new_tokens", study["max_new_tokens"])
    all_rows = rows * len(study["settings"])
    each = _each(run, model["name"], task["length"], all_rows, steps, study["forced"])
    most = max(1, math.floor((60.0 * run["job_minutes"] - LOAD) / each))
    return math.ceil(task["examples"] / math.ceil(task["examples"] / most))
