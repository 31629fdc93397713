"""Figure `accuracy`: mean task score by budget and policy, one panel per setting, with the full-cache line."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.figures.bars import categories, points, shifts
from kvcert.paper.figures.rows import NAMES, fewer, label, looks, named, ordered
from kvcert.paper.figures.style import BLACK, COLUMN, DOUBLE, SETTINGS, new_figure, nothing, percent
from kvcert.paper.logs import Logs
from kvcert.paper.stats import cluster_mean, table_of_means

#: Rows that fit into one line of the legend, at the usual height.
USUAL = 5


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
    few = len(rows) < USUAL
    columns = USUAL if few else 4 if len(settings) > 1 else 2
    lines = -(-(len(rows) + 1) // columns)
    figure, axes = new_figure(
        DOUBLE if len(settings) > 1 else COLUMN,
        2.8 if few else 2.8 + 0.15 * lines,
        columns=len(settings),
        sharey=True,
    )
    for panel, setting in zip(axes[0], settings, strict=True):
        _panel(panel, free[free["setting"] == setting], rows, budgets)
        panel.set_title(SETTINGS.get(setting, setting))
    axes[0, 0].set_ylabel("mean task score")
    title = f"{left_out} further rows, with other scores: see the table" if left_out else None
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=columns, title=title
    )
    return figure


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
