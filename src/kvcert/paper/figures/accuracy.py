"""Figure `accuracy`: mean task score by budget and policy, one panel per setting, with the full-cache line.

Up to twelve rows are lines over budgets; more of them are listed one below the other, a mark for each budget.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.figures.bars import categories, marks, points, shifts
from kvcert.paper.figures.rows import NAMES, fewer, label, looks, named, ordered
from kvcert.paper.figures.style import BLACK, COLUMN, DOUBLE, SETTINGS, new_figure, nothing, percent, style
from kvcert.paper.logs import Logs
from kvcert.paper.stats import cluster_mean, table_of_means

#: Rows that fit into one line of the legend, at the usual height; rows that can be told apart as lines.
USUAL, LINES = 5, 12


def draw(logs: Logs) -> Figure:
    """Means over examples; draws are averaged within an example, all tasks weigh by their examples."""
    free = logs.free
    if free.empty:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], "no valid free-running run")
        return figure
    settings = [name for name in SETTINGS if (free["setting"] == name).any()] or sorted(
        free["setting"].unique()
    )
    free, left_out = fewer(named(free), logs.scorer)
    evicted = free[free["policy"] != "full"]
    budgets = sorted(evicted["budget"].unique())
    rows = ordered(list(evicted["row"].unique()))
    width = DOUBLE if len(settings) > 1 else COLUMN
    parts = [(SETTINGS.get(name, name), free[free["setting"] == name]) for name in settings]
    note = f"{left_out} further rows, with other scores: see the table accuracy" if left_out else None
    if len(rows) > LINES:
        figure, axes = _listed(parts, rows, budgets, width)
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=USUAL, title=note)
        return figure
    few = len(rows) < USUAL
    columns = USUAL if few else 4 if len(settings) > 1 else 2
    height = 2.8 if few else 2.8 + 0.15 * -(-(len(rows) + 1) // columns)
    figure, axes = new_figure(width, height, columns=len(settings), sharey=True)
    for panel, (title, part) in zip(axes[0], parts, strict=True):
        _panel(panel, part, rows, budgets)
        panel.set_title(title)
    axes[0, 0].set_ylabel("mean task score")
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=columns, title=note)
    return figure


def _listed(
    parts: list[tuple[str, pd.DataFrame]], rows: list[str], budgets: list[float], width: float
) -> tuple[Figure, Any]:
    """Rows from top to bottom, the score to the right."""
    figure, axes = new_figure(width, 1.1 + 0.16 * len(rows), columns=len(parts), sharex=True, sharey=True)
    for panel, (title, part) in zip(axes[0], parts, strict=True):
        full = part[part["policy"] == "full"]
        if len(full):
            panel.axvline(cluster_mean(full, "score")[0], color=BLACK, linewidth=1, label=NAMES["full"])
        table = table_of_means(part[part["policy"] != "full"], ["row", "budget"], "score")
        for index, (budget, shift) in enumerate(zip(budgets, shifts(len(budgets), 0.4), strict=True)):
            marks(
                panel,
                rows,
                table[table["budget"] == budget],
                "row",
                shift,
                style(index),
                f"{percent(budget)} kept",
            )
        panel.set_yticks(range(len(rows)), [label(row) for row in rows])
        panel.set_ylim(len(rows) - 0.5, -0.5)
        panel.set_title(title)
        panel.set_xlabel("mean task score")
    return figure, axes


def _panel(axes: Axes, free: pd.DataFrame, rows: list[str], budgets: list[float]) -> None:
    full = free[free["policy"] == "full"]
    if len(full):
        mean, low, high, _ = cluster_mean(full, "score")
        axes.axhline(mean, color=BLACK, linewidth=1, label=NAMES["full"])
        if low == low:  # not NaN
            axes.axhspan(low, high, color=BLACK, alpha=0.08, linewidth=0)
    table = table_of_means(free[free["policy"] != "full"], ["row", "budget"], "score")
    sideways = shifts(len(rows), 0.36 if len(rows) < USUAL else 0.7)
    for row, shift, look in zip(rows, sideways, looks(rows), strict=True):
        points(axes, budgets, table[table["row"] == row], "budget", shift, look, label(row))
    if not budgets:
        nothing(axes, "no evicted run in this setting")
        return
    categories(axes, [percent(b) for b in budgets], "budget (kept share of the context, per KV head)")
