"""X3, Assumption 2: the referee's test on real attention, the oracle π ∝ a, the replay, and the defensive mixture."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kvcert import grid
from kvcert.claims.bootstrap import Plan
from kvcert.errors import KvcertError
from kvcert.exhibits import grids, oracle, referee, registration, repair, units
from kvcert.exhibits.outcome import record
from kvcert.exhibits.x3_outcome import expectations, judge, worth
from kvcert.registry import load_claims


def measure(config: dict[str, Any], root: Path, progress: Callable[[str], None]) -> None:
    """Measure X3 on its own shards (run here where they are missing) and write its rows and its outcome."""
    started = time.monotonic()
    parameters = registration.load(root)["X3"]["parameters"]
    interval = load_claims(root)["common"]["interval"]
    plan = Plan(interval["level"], interval["resamples"], interval["seed"])
    specs = grids.complete("X3", config, root, progress)
    cells = Path(grids.operational(config)["results"])
    every = units.read(cells, [spec["shard"] for spec in specs])
    runs, limit = every.runs, parameters["limit"]
    poisson = every.where((runs["policy"] == "poisson") & (runs["regime"] == "forced"))
    if len(poisson.heads) == 0:
        raise KvcertError(
            "X3: no token-forced Poisson unit in its shards; lower its budgets or raise its lengths"
        )
    frames = {
        "": referee.sizes(poisson, limit),
        "slopes": referee.slopes(poisson, plan),
        "replay": replay_table(poisson, default_run(config), limit, plan),
        "designs": repair.designs(every, plan),
    }
    progress("X3: the referee's test, the replay and the mixture are done; π ∝ a follows")
    redrawn = oracle.measure(specs, cells, parameters["draws"], config["study"]["scorer"], progress)
    frames["oracle"] = oracle_table(redrawn, plan)
    weights = (poisson.heads["r_max"] * poisson.heads["m"]).to_numpy()
    above = units.share(poisson, weights > limit, np.ones(len(weights), bool), plan)
    verdict = judge(frames, above, float(weights.max()), limit)
    measured = expectations(frames, above, float(weights.max()), every, parameters, plan)
    about = {
        "model": specs[0]["model"]["name"], "steps": poisson.steps(), "units": len(weights),
        "lengths": sorted({spec["task"]["length"] for spec in specs}), "examples": int(runs["cluster"].nunique()),
        "limit": limit, "share_above": above["value"], "rm_max": float(weights.max()), "verdict": verdict,
        "worth": worth(every, parameters, plan), "redrawn_units": int((redrawn["design"] == "oracle").sum()),
        "draws": parameters["draws"], "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip
    record(Path(config["run"]["results"]), root, "X3", measured, frames, about)


def default_run(config: dict[str, Any]) -> units.Units:
    """Token-forced Poisson units of the configuration's own logs: retained heavy tokens are rare, and these are many."""
    every = units.read(
        Path(config["run"]["results"]), [spec["shard"] for spec in grid.shards(config)], ("poisson",)
    )
    return every.where(every.runs["regime"] == "forced")


def replay_table(own: units.Units, default: units.Units, limit: float, plan: Plan) -> pd.DataFrame:
    """The replay on both sources."""
    sources = {"default run": default, "own lengths": own}
    return pd.concat(
        [repair.replay(found, limit, plan).assign(source=name) for name, found in sources.items()],
        ignore_index=True,
    )


def oracle_table(redrawn: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Coverage and variance of both designs by budget: shares of draws, clusters are examples."""
    keys = ["task", "length", "example", "setting", "budget", "design"]
    sums = redrawn.groupby(keys, as_index=False).agg(
        covered=("covered", "mean"), covered_guarded=("covered_guarded", "mean"), exact=("exact", "sum"),
        variance=("variance", "sum"), mse=("mse", "sum"), rm_max=("rm", "max"), units=("rm", "size"),
    )  # fmt: skip
    sums["stratum"] = sums[
        "task"
    ]  # a trace is kept of one example a task and length: too few for finer strata
    sums["cluster"] = sums["task"] + "/" + sums["length"].astype(str) + "/" + sums["example"].astype(str)
    lines = []
    for (budget, design), some in sums.groupby(["budget", "design"]):
        some = some.reset_index(drop=True)
        plain, guarded = (units.mean(some, some[c].to_numpy(), plan) for c in ("covered", "covered_guarded"))
        lines.append(
            {
                "budget": budget, "design": design, "units": int(some["units"].sum()), "clusters": plain["clusters"],
                "coverage": plain["value"], "coverage_low": plain["low"], "coverage_high": plain["high"],
                "guarded": guarded["value"], "exact_variance": some["exact"].sum() / some["units"].sum(),
                "mean_estimate": some["variance"].sum() / some["units"].sum(),
                "mse": some["mse"].sum() / some["units"].sum(), "rm_max": some["rm_max"].max(),
            }
        )  # fmt: skip
    table = pd.DataFrame(lines)
    return table.assign(calibration=table["mean_estimate"] / table["mse"])
