"""What a shard asks of a machine: memory, minutes, partition, and the bytes of its logs. No torch here.

All of it follows from the specification and, where the model is already there, from its config.json; before that the
default model's dimensions stand in. Rough on purpose: a retry asks for more.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from kvcert.grid import CERTIFIED, Spec, expected_run_ids
from kvcert.pace import spec_seconds

#: Dimensions of the default model, used until a model's own config.json can be read.
REFERENCE = {"layers": 30, "heads": 9, "kv_heads": 3, "head_dim": 64, "weights": 540e6}
#: Compressed bytes of one row, measured on the default grid (zstd), and of one traced float.
ROW_BYTES = {"runs": 120.0, "steps": 25.0, "heads": 72.0}
TRACE_FLOAT = 4
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
#: Shortest time limit of a job, minutes: starting a job and loading a model on a cold file system take their time.
SHORTEST = 30


def folder(model: dict[str, Any], cache: Path) -> Path | None:
    """Where a model's config.json and weights lie, if they are there already."""
    if "hub" in model:
        home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
        hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
        place = hub / f"models--{model['hub'].replace('/', '--')}" / "snapshots" / str(model.get("revision"))
    else:
        place = Path(model["path"]) if "path" in model else Path(cache) / "models" / model["name"]
    return place if (place / "config.json").is_file() else None


def dimensions(model: dict[str, Any], cache: Path) -> dict[str, float]:
    """`layers`, `heads`, `kv_heads`, `head_dim` and `weights` (bytes in the model's own type) of a model."""
    place = folder(model, cache)
    if place is None:
        return dict(REFERENCE)
    try:
        config = json.loads((place / "config.json").read_text())
        heads = int(config["num_attention_heads"])
        return {
            "layers": int(config["num_hidden_layers"]),
            "heads": heads,
            "kv_heads": int(config.get("num_key_value_heads") or heads),
            "head_dim": int(config.get("head_dim") or config["hidden_size"] // heads),
            "weights": float(sum(file.stat().st_size for file in place.glob("*.safetensors"))),
        }
    except (KeyError, TypeError, ValueError, OSError):
        return dict(REFERENCE)


def memory_mb(spec: Spec, run: dict[str, Any], attempt: int = 1) -> int:
    """Main memory of a shard's job, megabytes; every attempt asks for as much again as the first.

    Weights (twice while they load), the full cache and its shadow, the retained rows as wide as the widest budget,
    the growing logs, and a base for Python and torch. Measured on the default grid: 2.3 to 3.4 GB, asked: 4.2 GB.
    """
    stated = run["cluster"]["mem_mb"]
    if stated:
        return int(stated * attempt)
    size = dimensions(spec["model"], Path(run["cache"]))
    rows = [row for row in spec["rows"] if row["policy"] != "full"]
    widest = max((row["budget"] for row in rows), default=0.0)
    token = 2 * size["layers"] * size["kv_heads"] * size["head_dim"] * BYTES[spec["model"]["dtype"]]
    kv = spec["task"]["length"] * token * (2 + len(rows) * len(spec["settings"]) * widest)
    base = 1500 + 60 * len(spec["examples"])
    return math.ceil((base + (2.5 * size["weights"] + 1.5 * kv) / 1e6) * attempt)


def minutes(spec: Spec, run: dict[str, Any], attempt: int = 1) -> int:
    """Time limit of a job, minutes: four times the estimate, at least half an hour; an attempt adds as much again."""
    cluster = run["cluster"]
    one = cluster["minutes"] or max(SHORTEST, math.ceil(4 * spec_seconds(spec, run) / 60))
    return int(one * cluster["group"] * attempt)


def partition(spec: Spec, run: dict[str, Any], attempt: int = 1) -> str:
    """The first of `run.cluster.partitions` that the job fits into, the last if none does."""
    known = run["cluster"]["partitions"]
    for entry in known:
        fits = (
            (minutes(spec, run, attempt), entry["minutes"]),
            (memory_mb(spec, run, attempt), entry["mem_mb"]),
        )
        if all(limit == 0 or need <= limit for need, limit in fits):
            return str(entry["name"])
    return str(known[-1]["name"])


def log_bytes(spec: Spec, run: dict[str, Any]) -> dict[str, float]:
    """Bytes that a shard leaves on disk, per table and for the traces; every answer as long as allowed."""
    size, panel = dimensions(spec["model"], Path(run["cache"])), spec["constants"]["panel_layers"]
    runs, steps = len(expected_run_ids(spec)), spec["max_new_tokens"]
    rows = sum(row["policy"] in CERTIFIED for row in spec["rows"])
    certified = len(spec["examples"]) * len(spec["settings"]) * rows * (2 if spec["forced"] else 1)
    layers = min(panel, size["layers"])
    pairs = layers * (size["kv_heads"] if run["heads"] == "panel" else size["heads"])
    traced = min(run["trace_examples"], len(spec["examples"]))
    floats = (
        layers * spec["task"]["length"] * size["kv_heads"] * 2 * (size["head_dim"] + len(spec["settings"]))
    )
    return {
        "runs": runs * ROW_BYTES["runs"],
        "steps": runs * steps * ROW_BYTES["steps"],
        "heads": certified * math.ceil(steps / spec.get("heads_every", 1)) * pairs * ROW_BYTES["heads"],
        "traces": float(traced * floats * TRACE_FLOAT),
    }
