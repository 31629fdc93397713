"""The referee's test of Assumption 2: how large R·m gets, and how R moves with the tail sample m and the tail size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Plan, Statistic, estimate
from kvcert.exhibits.units import Units

#: Model → its regressors beside the constant and the tasks' and settings' levels; the response.
MODELS: dict[str, tuple[tuple[str, ...], str]] = {
    "joint": (("log m", "log n_tail"), "log R"),
    "m alone": (("log m",), "log R"),
    "n_tail alone": (("log n_tail",), "log R"),
    "fixed budget": (("log n_tail", "budget"), "log R m"),
}


def sizes(units: Units, limit: float) -> pd.DataFrame:
    """R·m by context length and budget: quantiles and largest value, and the shares of units and of steps above `limit`."""
    heads = _with_runs(units)
    heads["above"] = heads["rm"] > limit
    lines = []
    for _, some in heads.groupby(["length", "budget"]):
        steps = some.groupby(["run", "step"])["above"].any()
        lines.append(
            {
                "length": int(some["length"].iloc[0]), "budget": float(some["budget"].iloc[0]),
                "units": len(some), "steps": len(steps),
                "m": some["m"].mean(), "n_tail": some["tail"].mean(), "r_max": some["r_max"].max(),
                "rm_median": some["rm"].median(), "rm_q90": some["rm"].quantile(0.9),
                "rm_q99": some["rm"].quantile(0.99), "rm_max": some["rm"].max(),
                "share_above": some["above"].mean(), "steps_above": steps.mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(lines)


def slopes(units: Units, plan: Plan) -> pd.DataFrame:
    """Least-squares slopes with cluster bootstrap intervals, on units and on the largest R of each step.

    `joint` has log m and log n_tail in one regression: the budgets move m at almost the same n_tail and identify the
    first slope, the context lengths move both and identify the second. `fixed budget` has log(R·m) on log n_tail with a
    level for each budget: what happens to R·m when contexts grow and the budget stays. A slope that the grid does not
    identify (one length) is NaN.
    """
    heads = _with_runs(units)
    heads = heads[heads["r_max"] > 0]
    logs = pd.DataFrame(
        {
            "run": heads["run"], "step": heads["step"], "log m": np.log(heads["m"]),
            "log n_tail": np.log(heads["tail"]), "log R": np.log(heads["r_max"]), "log R m": np.log(heads["rm"]),
        }
    )  # fmt: skip
    largest = logs.groupby(["run", "step"], as_index=False).agg(
        {"log m": "mean", "log n_tail": "mean", "log R": "max", "log R m": "max"}
    )
    lines: list[dict[str, Any]] = []
    for name, data in (("unit", logs), ("largest of a step", largest)):
        for model, (regressors, response) in MODELS.items():
            lines += _fit(units.runs, data, name, model, regressors, response, plan)
    return pd.DataFrame(lines)


def _with_runs(units: Units) -> pd.DataFrame:
    run = units.heads["run"].to_numpy()
    about = units.runs[["length", "budget"]].iloc[run].reset_index(drop=True)
    heads = pd.concat([units.heads.reset_index(drop=True), about], axis=1)
    return heads.assign(rm=heads["r_max"] * heads["m"])


def _fit(
    runs: pd.DataFrame, data: pd.DataFrame, level: str, model: str, regressors: tuple[str, ...], response: str, plan: Plan
) -> list[dict[str, Any]]:  # fmt: skip
    run = data["run"].to_numpy()
    slopes = [name for name in regressors if name != "budget"]
    columns = [np.ones(len(data))] + [(data[name] - data[name].mean()).to_numpy() for name in slopes]
    for factor in ("task", "setting", *(name for name in regressors if name == "budget")):
        codes, names = pd.factorize(runs[factor], sort=True)
        columns += [(codes[run] == code).astype(float) for code in range(1, len(names))]
    found = estimate(
        runs,
        least_squares(np.column_stack(columns), data[response].to_numpy(), run, len(runs), len(slopes)),
        slopes,
        plan,
    )
    return [
        {
            "level": level, "model": model, "response": response, "slope": name, "value": found.value(name),
            "low": found.interval(name)[0], "high": found.interval(name)[1], "n": len(data),
            "clusters": found.clusters,
        }
        for name in slopes
    ]  # fmt: skip


def least_squares(x: np.ndarray, y: np.ndarray, run: np.ndarray, runs: int, wanted: int) -> Statistic:
    """Coefficients 1 to `wanted` of the regression of `y` (n,) on `x` (n, k), constant first, weights by `run` (n,).

    The moments are summed once a run, so that a resample costs one k × k system; NaN where it has no unique solution.
    """
    k = x.shape[1]
    pairs = [np.bincount(run, x[:, i] * x[:, j], minlength=runs) for i in range(k) for j in range(k)]
    moments = np.column_stack(pairs + [np.bincount(run, x[:, i] * y, minlength=runs) for i in range(k)])

    def statistic(weights: np.ndarray) -> np.ndarray:
        total = weights @ moments
        gram, right = total[:, : k * k].reshape(-1, k, k), total[:, k * k :]
        size = np.sqrt(np.maximum(np.einsum("bii->bi", gram), 1e-300))
        scaled = gram / size[:, :, None] / size[:, None, :]
        sound = np.linalg.eigvalsh(scaled)[:, 0] > 1e-9
        found = np.full((len(weights), k), np.nan)
        found[sound] = np.linalg.solve(scaled[sound], (right / size)[sound][..., None])[..., 0] / size[sound]
        return found[:, 1 : 1 + wanted]

    return statistic
