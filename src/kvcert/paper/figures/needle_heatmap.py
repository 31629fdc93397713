"""Figure `needle_heatmap`: mean score on RULER's needle tasks, policy by budget, one panel per setting."""

from __future__ import annotations

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kvcert.paper.catalogue import TASK_FIGURES
from kvcert.paper.figures.rows import NAMES, label
from kvcert.paper.figures.style import (
    BLACK,
    COLUMN,
    DOUBLE,
    POLICIES,
    SETTINGS,
    new_figure,
    nothing,
    percent,
)
from kvcert.paper.logs import Logs
from kvcert.paper.stats import CLUSTER

#: From white (0) to dark blue (1): its lightness falls steadily, so a grey print keeps the order.
MAP = colormaps["Blues"]
#: Above this score the number in a cell is white.
DARK = 0.75


def draw(logs: Logs) -> Figure:
    """Means over examples, draws averaged within an example; all needle tasks of the grid together."""
    free = logs.free
    free = free[free["task"].str.startswith(TASK_FIGURES["needle_heatmap"][0])] if len(free) else free
    if free.empty:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], "no valid free-running run of a needle task")
        return figure
    scorers = free[free["policy"] != "full"].groupby("policy")["scorer"].nunique()
    several = free["policy"].map(scorers).fillna(1) > 1
    free = free.assign(policy=free["policy"].mask(several, free["policy"] + ", " + free["scorer"]))
    evicted = free[free["policy"] != "full"]
    policies = sorted(
        evicted["policy"].unique(),
        key=lambda name: (list(POLICIES).index(name) if name in POLICIES else 99, name),
    )
    budgets = sorted(evicted["budget"].unique())
    settings = [name for name in SETTINGS if (free["setting"] == name).any()]
    figure, axes = new_figure(
        DOUBLE if len(settings) > 1 else COLUMN,
        1.25 + 0.27 * len(policies),
        columns=len(settings),
        sharey=True,
    )
    for panel, setting in zip(axes[0], settings, strict=True):
        _panel(panel, free[free["setting"] == setting], policies, budgets)
        panel.set_title(SETTINGS[setting])
    examples = len(free.drop_duplicates(list(CLUSTER)))
    figure.supxlabel(
        f"budget (kept share of the context, per KV head) · mean score of {examples} examples, "
        f"{free['task'].nunique()} needle tasks, {_lengths(free)} tokens",
        fontsize=7,
    )
    return figure


def _panel(axes: Axes, free: pd.DataFrame, policies: list[str], budgets: list[float]) -> None:
    """The full cache as one wide cell on top, below it a cell for each policy and budget."""
    _cell(axes, -0.5, -1.15, len(budgets), _mean(free[free["policy"] == "full"]))
    for row, policy in enumerate(policies):
        for column, budget in enumerate(budgets):
            cell = free[(free["policy"] == policy) & (free["budget"] == budget)]
            _cell(axes, column - 0.5, row, 1, _mean(cell))
    axes.set_xlim(-0.52, len(budgets) - 0.48)
    axes.set_ylim(len(policies) - 0.48, -1.67)
    axes.set_xticks(range(len(budgets)), [percent(budget) for budget in budgets])
    axes.set_yticks([-1.15, *range(len(policies))], [NAMES["full"], *map(label, policies)])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)


def _cell(axes: Axes, left: float, middle: float, width: int, value: float | None) -> None:
    """One cell with its number; hatched where there is no such run."""
    shown = value is not None
    axes.add_patch(
        Rectangle(
            (left, middle - 0.5),
            width,
            1,
            facecolor=MAP(0.9 * value) if value is not None else "white",
            edgecolor="white" if shown else "#bbbbbb",
            hatch=None if shown else "////",
            linewidth=1,
        )
    )
    if value is None:
        return
    axes.text(
        left + width / 2,
        middle,
        f"{value:.2f}",
        ha="center",
        va="center",
        color="white" if value > DARK else BLACK,
    )


def _mean(rows: pd.DataFrame) -> float | None:
    if rows.empty:
        return None
    return float(rows.groupby(list(CLUSTER), observed=True)["score"].mean().mean())


def _lengths(free: pd.DataFrame) -> str:
    lengths = sorted(free["length"].unique())
    return f"{lengths[0]:,}" if len(lengths) == 1 else f"{lengths[0]:,}–{lengths[-1]:,}"
