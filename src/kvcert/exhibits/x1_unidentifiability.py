"""X1: alter what a deterministic evictor threw away, and nothing that it kept can tell. A sampled tail can."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from kvcert.exhibits import registration
from kvcert.exhibits.interval import median, share
from kvcert.exhibits.material import readings
from kvcert.exhibits.outcome import Measured, record
from kvcert.exhibits.x1_rows import heads_of, run_of, steps_of
from kvcert.exhibits.x1_runs import runs
from kvcert.runner.answer import text

Progress = Callable[[str], None]


def measure(config: dict[str, Any], root: Path, progress: Progress) -> dict[str, Any]:
    """Run X1 on the first model of the grid and record it."""
    parameters = registration.load(root)["X1"]["parameters"]
    started = time.monotonic()
    frames: dict[str, list[Any]] = {"": [], "heads": [], "steps": []}
    torch.set_num_threads(config["run"]["threads"])
    with torch.inference_mode():
        for reading in readings(config, parameters["examples_per_task"], parameters["steps"]):
            model = reading.model
            for names, seen, base in runs(reading, parameters):
                frames[""].append(run_of(names, seen, base, text(model, seen.tokens)))
                frames["heads"].append(heads_of(names, seen, base))
                frames["steps"].append(steps_of(names, seen))
            progress(
                f"X1: {reading.names['task']} example {reading.example}, {time.monotonic() - started:.0f} s"
            )
    runs_, heads, steps = pd.DataFrame(frames[""]), _all(frames["heads"]), _all(frames["steps"])
    about = {
        "model": config["study"]["models"][0]["name"], "seed": config["study"]["seed"], "runs": len(runs_),
        "examples": int(runs_[["task", "example"]].drop_duplicates().shape[0]),
        "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip
    return record(
        Path(config["run"]["results"]), root, "X1", expectations(runs_, heads, steps),
        {"": runs_, "heads": heads, "steps": steps}, about,
    )  # fmt: skip


def expectations(runs: pd.DataFrame, heads: pd.DataFrame, steps: pd.DataFrame) -> dict[str, Measured]:
    """The registered values from the rows."""
    wild, largest = ["scale", "shift"], runs["factor"].max()

    def pick(rows: pd.DataFrame, design: str, aware: bool = False) -> pd.DataFrame:
        return rows[
            (rows["design"] == design) & (rows["value_aware"] == aware) & (rows["alteration"] != "none")
        ]

    def at(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
        return rows[(rows["alteration"] == kind) & (rows["factor"] == largest)]

    blind, aware, poisson, adversary = (
        pick(runs, "topk"), pick(runs, "topk", True), pick(runs, "poisson"), pick(runs, "adversary")
    )  # fmt: skip
    errors, sampled = pick(heads, "topk"), pick(heads, "poisson")
    bounded = errors[~errors["alteration"].isin(wild)]
    panel = pick(steps, "poisson")
    defeated = pick(steps, "adversary")
    return {
        "x1.hash_blind": share(blind, "same"),
        "x1.scale_1000": median(at(errors, "scale"), "error_factor"),
        "x1.shift_1000": median(at(errors, "shift"), "error_factor"),
        "x1.unbounded": median(_growth(errors[errors["alteration"].isin(wild)]), "growth"),
        "x1.bounded": median(bounded, "error_factor"),
        "x1.bounded_changes": share(bounded.assign(changed=bounded["error_factor"] != 1.0), "changed"),
        "x1.value_aware_flip": share(aware[aware["alteration"] == "sign"], "same"),
        "x1.value_aware_scale": share(_not(aware[aware["alteration"] == "scale"]), "other"),
        "x1.poisson_sees": share(_not(poisson), "other"),
        "x1.poisson_follows": median(at(sampled, "scale"), "radius_factor"),
        "x1.poisson_coverage": share(panel, "covered"),
        "x1.poisson_coverage_heads": share(sampled, "covered"),
        "x1.adversary_hash": share(adversary, "same"),
        "x1.adversary_coverage": share(defeated[defeated["factor"] == largest], "covered"),
    }


def _all(parts: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True)


def _not(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(other=~rows["same"].astype(bool))


def _growth(rows: pd.DataFrame) -> pd.DataFrame:
    """Error at the largest factor over that at the next smaller one, per head and step."""
    factors = sorted(rows["factor"].unique())[-2:]
    key = ["task", "length", "example", "setting", "scorer", "alteration", "layer", "head", "step"]
    small, large = (rows[rows["factor"] == f].set_index(key)["error"] for f in factors)
    ratio = large / small.where(small > 0)
    return ratio.rename("growth").reset_index()
