"""What X3 concludes: the referee's rule in words, the price of the repair, and the registered quantities."""

from __future__ import annotations

from typing import Any

import pandas as pd

from kvcert.claims.bootstrap import Plan
from kvcert.exhibits import repair, units
from kvcert.exhibits.outcome import Measured


def slope(frames: dict[str, pd.DataFrame], model: str, name: str, level: str = "unit") -> dict[str, Any]:
    """One registered slope."""
    return _one(frames["slopes"], model=model, slope=name, level=level)


def judge(frames: dict[str, pd.DataFrame], above: dict[str, Any], largest: float, limit: float) -> str:
    """The referee's rule in words: the assumption fails when R·m exceeds the limit or grows with n_tail."""
    grows = {m: slope(frames, m, "log n_tail") for m in ("joint", "fixed budget")}
    named = {"joint": "at fixed m", "fixed budget": "at a fixed budget"}
    growth = [named[m] for m, found in grows.items() if found["low"] > 0]
    reasons = []
    if largest > limit:
        reasons.append(
            f"R m reaches {largest:.3g} and exceeds {limit:g} in {100 * above['value']:.2g} % of the units"
        )
    if growth:
        reasons.append(f"R m grows with n_tail {' and '.join(growth)}")
    if reasons:
        return "Assumption 2 fails for the deployed configuration: " + "; ".join(reasons) + "."
    return (
        f"Assumption 2 is not contradicted here: R m stays below {limit:g} (largest {largest:.3g}) and does not grow "
        "with n_tail."
    )


def worth(every: units.Units, parameters: dict[str, Any], plan: Plan) -> str:
    """Is the repair worth its price, by the registered lines: coverage gained per head against accuracy lost."""
    gain, loss = parameters["worth"]["coverage_gain"], parameters["worth"]["score_loss"]
    words = []
    for policy in sorted(set(every.runs["policy"]) - {"poisson", "full"}):
        found = repair.pooled(every, policy, plan)
        gained, score = found["coverage"]["value"], found["score"]["value"]
        answer = "worth its price" if gained >= gain and -score <= loss else "not worth its price"
        words.append(f"{policy}: coverage per head {gained:+.4f}, score {score:+.4f}: {answer}")
    return "; ".join(words)


def expectations(
    frames: dict[str, pd.DataFrame], above: dict[str, Any], largest: float, every: units.Units, parameters: dict[str, Any],
    plan: Plan,
) -> dict[str, Measured]:  # fmt: skip
    """The registered quantities by id."""
    joint, fixed = slope(frames, "joint", "log n_tail"), slope(frames, "fixed budget", "log n_tail")
    in_m = slope(frames, "joint", "log m")
    plain, guarded, missed = (
        _one(frames["replay"], source="default run", group=f"R > 1, {fate}", radius=radius)
        for fate, radius in (("retained", "radius"), ("retained", "guarded"), ("missed", "radius"))
    )
    drawn = dict(iter(frames["oracle"].groupby("design")))
    variance = {name: float(some["exact_variance"].mean()) for name, some in drawn.items()}
    oracle = drawn["oracle"]
    lam = f"mixture[lam={parameters['lam']:g}]"
    mixed = repair.pooled(every, lam, plan)
    return {
        "X3-limit": Measured(largest, n=above["units"], note=f"share of units above: {above['value']:.4g}"),
        "X3-growth": _measured(joint),
        "X3-growth-budget": _measured(fixed),
        "X3-slope-m": _measured(in_m),
        "X3-oracle-coverage": Measured(float(oracle["coverage"].mean()), n=int(oracle["units"].sum())),
        "X3-oracle-variance": Measured(
            variance["oracle"] / variance["deployed"], n=int(oracle["units"].sum())
        ),
        "X3-replay-plain": _measured(plain, "units"),
        "X3-replay-guarded": _measured(guarded, "units"),
        "X3-replay-missed": _measured(missed, "units"),
        "X3-mixture-coverage": _measured(mixed["coverage"]),
        "X3-mixture-width": Measured(repair.width_ratio(every, lam)),
        "X3-mixture-score": _measured(mixed["score"]),
    }


def _measured(found: Any, size: str = "clusters") -> Measured:
    return Measured(float(found["value"]), float(found["low"]), float(found["high"]), int(found[size]))


def _one(table: pd.DataFrame, **key: str) -> dict[str, Any]:
    """The only row of a table with these values."""
    for column, value in key.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return {str(name): value for name, value in row.items()}
