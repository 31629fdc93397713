"""X3's replay of retained unbounded tokens, and the defensive mixture beside the plain Poisson design."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Plan
from kvcert.exhibits.units import Units, mean, share

KEY = ["task", "length", "example", "setting", "budget", "draw"]
UNIT = ["step", "layer", "head"]


def replay(units: Units, limit: float, plan: Plan) -> pd.DataFrame:
    """Coverage of both radii among units by what happened to a token with R > 1 (or R·m > `limit`): retained, missed, none.

    R > 1: the token's weight a/π exceeds the whole normaliser Σ a.
    """
    heads = units.heads
    kept, most = heads["r_kept"].to_numpy(), heads["r_max"].to_numpy()
    kept_rm = kept * heads["m"].to_numpy()
    groups = {
        "every unit": np.ones(len(heads), bool),
        "no token with R > 1": most <= 1,
        "R > 1, missed": (most > 1) & (kept <= 1),
        "R > 1, retained": kept > 1,
        f"R m > {limit:g}, retained": kept_rm > limit,
    }
    lines = []
    for name, among in groups.items():
        for radius in ("radius", "guarded"):
            inside = (heads["error"] <= heads[radius]).to_numpy()
            lines.append({"group": name, "radius": radius} | share(units, inside, among, plan))
    return pd.DataFrame(lines)


def designs(units: Units, plan: Plan) -> pd.DataFrame:
    """Coverage per head, width, error, R·m and score of every certified design, each against Poisson at the same budget.

    Coverage, width, error and R·m come from token-forced runs, hence from equal queries at step 1 and equal tokens
    throughout; scores from free-running ones. Differences are paired by example, setting, budget and draw.
    """
    lines = []
    for (policy, budget), forced, free in _groups(units):
        base = units.runs[(units.runs["policy"] == "poisson") & (units.runs["budget"] == budget)]
        heads = forced.heads
        relative = heads["norm"].clip(lower=1e-12)
        line: dict[str, Any] = {"policy": policy, "budget": float(budget), "units": len(heads)}
        for name, radius in (("coverage", "radius"), ("guarded", "guarded")):
            inside = (heads["error"] <= heads[radius]).to_numpy()
            found = share(forced, inside, np.ones(len(heads), bool), plan)
            line |= {name: found["value"], f"{name}_low": found["low"], f"{name}_high": found["high"]}
        line |= {
            "width": float((heads["radius"] / relative).median()),
            "relative_error": float((heads["error"] / relative).median()),
            "rm_q99": float((heads["r_max"] * heads["m"]).quantile(0.99)),
            "rm_max": float((heads["r_max"] * heads["m"]).max()),
        }
        line |= _difference("coverage", forced.runs, _covered(forced), _covered(units), base, plan)
        scores = units.runs["score"].to_numpy(float)
        line |= {"score": float(free.runs["score"].mean())}
        line |= _difference("score", free.runs, free.runs["score"].to_numpy(float), scores, base, plan)
        lines.append(line)
    return pd.DataFrame(lines)


def pooled(units: Units, policy: str, plan: Plan) -> dict[str, dict[str, Any]]:
    """Paired differences of a design to Poisson over all its budgets: per-head `coverage` (forced) and `score` (free)."""
    base = units.runs[units.runs["policy"] == "poisson"]
    values = {"coverage": _covered(units), "score": units.runs["score"].to_numpy(float)}
    found = {}
    for name, regime in (("coverage", "forced"), ("score", "free")):
        rows = units.runs[(units.runs["policy"] == policy) & (units.runs["regime"] == regime)]
        change = _difference(name, rows, values[name][rows.index.to_numpy()], values[name], base, plan)
        ends = {"value": "", "low": "_low", "high": "_high"}
        found[name] = {key: change[f"{name}_change{end}"] for key, end in ends.items()}
        found[name]["clusters"] = int(rows["cluster"].nunique())
    return found


def _groups(units: Units) -> Iterator[tuple[tuple[str, float], Units, Units]]:
    runs = units.runs
    for key in sorted(
        set(zip(runs["policy"], runs["budget"], strict=True)), key=lambda x: (x[0] != "poisson", x)
    ):
        mine = (runs["policy"] == key[0]) & (runs["budget"] == key[1])
        forced = units.where(mine & (runs["regime"] == "forced"))
        if len(forced.heads):
            yield key, forced, units.where(mine & (runs["regime"] == "free"))


def _covered(units: Units) -> np.ndarray:
    """Share of covered units of every run; NaN without units."""
    inside = (units.heads["error"] <= units.heads["radius"]).to_numpy(float)
    return (
        pd.Series(inside)
        .groupby(units.heads["run"].to_numpy())
        .mean()
        .reindex(range(len(units.runs)))
        .to_numpy()
    )


def _difference(
    name: str, rows: pd.DataFrame, values: np.ndarray, every: np.ndarray, base: pd.DataFrame, plan: Plan
) -> dict[str, Any]:
    """Mean paired difference to the Poisson run of the same example, setting, budget, draw and regime."""
    key = [*KEY, "regime"]
    rival = base[key].assign(rival=every[base.index.to_numpy()])
    paired = rows[key].merge(rival, on=key, how="left", validate="one_to_one")["rival"].to_numpy(float)
    found = mean(rows, values - paired, plan)
    return {
        f"{name}_change": found["value"],
        f"{name}_change_low": found["low"],
        f"{name}_change_high": found["high"],
    }


def width_ratio(units: Units, policy: str) -> float:
    """Median over units of radius(policy) / radius(poisson), the same unit of the same token-forced run."""
    forced = units.where(units.runs["regime"] == "forced")
    about = forced.runs[[*KEY, "policy"]].iloc[forced.heads["run"].to_numpy()].reset_index(drop=True)
    frame = pd.concat([about, forced.heads[[*UNIT, "radius"]].reset_index(drop=True)], axis=1)
    mine, base = frame[frame["policy"] == policy], frame[frame["policy"] == "poisson"]
    both = mine.merge(base, on=[*KEY, *UNIT], suffixes=("", "_base"), validate="one_to_one")
    both = both[np.isfinite(both["radius"]) & np.isfinite(both["radius_base"]) & (both["radius_base"] > 0)]
    return float((both["radius"] / both["radius_base"]).median())
