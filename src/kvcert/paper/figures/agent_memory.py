"""Figure `agent_memory`: what an agent still knows, and what its certificate says, by the number of compressed turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.errors import KvcertError
from kvcert.paper.figures.bars import categories, points, shifts
from kvcert.paper.figures.rows import label
from kvcert.paper.figures.style import (
    COLUMN,
    DOUBLE,
    GREEN,
    GREY,
    ORANGE,
    POLICIES,
    new_figure,
    nothing,
    percent,
    style,
)
from kvcert.paper.logs import Logs
from kvcert.paper.stats import table_of_means

TASK = "agent_memory"
#: Columns of `runs` in the lower panels: label and look.
FIGURES: dict[str, tuple[str, dict[str, Any]]] = {
    "signal": ("certificate", {"color": GREEN, "marker": "^", "linestyle": "-."}),
    "error": ("true error", {"color": ORANGE, "marker": "v", "linestyle": "--"}),
}


def turns_of(results: Path) -> dict[tuple[str, int], int]:
    """(task, length) → number of turns, from the configuration that the integrity gate left beside the logs."""
    path = Path(results) / "config.json"
    if not path.is_file():
        return {}
    try:
        tasks = json.loads(path.read_text())["study"]["tasks"]
    except (ValueError, KeyError):
        raise KvcertError(f"{path} is not the gate's record; run `kvcert check` again") from None
    found = {(task["name"], task["length"]): task.get("params", {}).get("turns") for task in tasks}
    return {key: turns for key, turns in found.items() if key[0].startswith(TASK) and turns}


def draw(logs: Logs) -> Figure:
    """One column per budget: accuracy above; certificate and error of the Poisson rows below, with the share covered."""
    turns, free = turns_of(logs.results), logs.free
    free = free[(free["setting"] == "streaming") & free["task"].str.startswith(TASK)]
    free = free.assign(turns=_turns(free, turns))
    free = free[free["turns"].notna()]
    budgets = sorted(free.loc[free["policy"] != "full", "budget"].unique())
    if not budgets:
        figure, axes = new_figure(COLUMN, 2.0)
        known = "config.json is missing: run `kvcert check`" if not turns else "no valid multi-turn run"
        nothing(axes[0, 0], known)
        return figure
    order = sorted(free["turns"].unique())
    steps = logs.steps.assign(turns=_turns(logs.steps, turns))
    figure, axes = new_figure(
        DOUBLE if len(budgets) > 1 else COLUMN, 4.4, rows=2, columns=len(budgets), sharex=True, sharey="row"
    )
    for column, budget in enumerate(budgets):
        _accuracy(axes[0, column], free[free["budget"].isin([budget, 1.0])], order)
        axes[0, column].set_title(f"budget {percent(budget)}")
        sampled = free[(free["policy"] == "poisson") & (free["budget"] == budget)]
        _error(axes[1, column], sampled, steps[steps["budget"] == budget], order)
    axes[0, 0].set_ylabel("mean task score")
    axes[0, 0].set_ylim(-0.03, 1.03)
    axes[1, 0].set_ylabel("relative to the output, first steps")
    handles: dict[str, Any] = {}
    for panel in axes.flat:
        handles |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6)
    return figure


def _turns(frame: pd.DataFrame, turns: dict[tuple[str, int], int]) -> pd.Series:
    pairs = zip(frame["task"], frame["length"], strict=True)
    return pd.Series([turns.get(pair) for pair in pairs], index=frame.index, dtype="float64")


def _accuracy(axes: Axes, free: pd.DataFrame, order: list[float]) -> None:
    table = table_of_means(free, ["policy", "turns"], "score")
    policies = sorted(table["policy"].unique(), key=lambda name: (name != "full", name))
    for index, (policy, shift) in enumerate(zip(policies, shifts(len(policies), 0.3), strict=True)):
        look = dict(zip(("color", "marker", "linestyle"), POLICIES.get(policy, ()), strict=False))
        part = table[table["policy"] == policy]
        points(axes, order, part, "turns", shift, look or style(index), label(policy))
    categories(axes, [f"{turns:g}" for turns in order], "")


def _error(axes: Axes, runs: pd.DataFrame, steps: pd.DataFrame, order: list[float]) -> None:
    """Means over examples, on a log axis; runs whose certificate is infinite are left out of both lines and counted."""
    finite = runs[np.isfinite(runs["signal"].astype(float)) & runs["error"].notna()]
    if finite.empty:
        nothing(axes, "no Poisson run with a finite certificate")
        return
    for (column, (name, look)), shift in zip(FIGURES.items(), shifts(len(FIGURES), 0.12), strict=True):
        points(axes, order, table_of_means(finite, ["turns"], column), "turns", shift, look, name)
    axes.set_yscale("log")
    covered = steps.assign(covered=steps["error"] <= steps["certificate"])
    shares = table_of_means(covered[covered["turns"].notna()], ["turns"], "covered").set_index("turns")[
        "mean"
    ]
    for at, turns in enumerate(order):
        if turns in shares.index:
            axes.text(at, 1.0, f"{100 * shares[turns]:.0f} %\ncovered", ha="center", va="top", fontsize=5.5, color=GREY,
                      transform=axes.get_xaxis_transform())  # fmt: skip
    left = len(runs) - len(finite)
    note = f"\n({left} of {len(runs)} runs without a finite certificate)" if left else ""
    categories(axes, [f"{turns:g}" for turns in order], "turns, each followed by a compression" + note)
    axes.margins(y=0.25)
