"""Figure `coverage`: how often the certificate covers the true error, by budget, task and ESS of the shadow."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.figures.bars import categories, points, shifts
from kvcert.paper.figures.style import BLACK, BLUE, COLUMN, DOUBLE, GREEN, GREY, RED, new_figure, nothing, percent, style
from kvcert.paper.logs import Logs
from kvcert.paper.stats import NOMINAL, bands, covered, table_of_means

#: The range that the paper reports for panel means.
PAPER = (0.969, 0.977)
#: Edges of the bands of the shadow's effective sample size, in tokens.
ESS_EDGES = (1, 2, 4, 8, 16, 32, 64)
KINDS = (
    ("panel mean (C1a)", {"color": BLUE, "marker": "o", "linestyle": "-"}),
    ("per head (C1b)", {"color": RED, "marker": "s", "linestyle": "--"}),
    ("per head, guarded", {"color": GREEN, "marker": "^", "linestyle": "-."}),
)


def draw(logs: Logs) -> Figure:
    """Three panels: by budget, panel mean by task, per head by ESS band."""
    steps, heads = covered(logs.steps), covered(logs.heads, "radius")
    if steps.empty:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], "no token-forced Poisson step with a certificate")
        return figure
    figure, axes = new_figure(DOUBLE, 2.9, columns=3)
    budgets = sorted(steps["budget"].unique())
    _by_budget(axes[0, 0], steps, heads, budgets)
    _by_task(axes[0, 1], steps, budgets)
    _by_ess(axes[0, 2], heads, budgets)
    return figure


def nominal_line(axes: Axes, paper: bool = False) -> None:
    """The 95 % line and, for panel means by budget, the paper's range."""
    axes.axhline(NOMINAL, color=GREY, linestyle="--", linewidth=0.9, zorder=1)
    if paper:
        axes.axhspan(*PAPER, color=BLACK, alpha=0.12, linewidth=0, zorder=0, label="paper, 96.9–97.7 %")


def _by_budget(axes: Axes, steps: pd.DataFrame, heads: pd.DataFrame, budgets: list[float]) -> None:
    data = ((steps, "covered"), (heads, "covered"), (heads, "covered_guarded"))
    for (frame, column), (label, look), shift in zip(data, KINDS, shifts(3), strict=True):
        if len(frame):
            points(axes, budgets, table_of_means(frame, ["budget"], column), "budget", shift, look, label)
    nominal_line(axes, paper=True)
    categories(axes, [percent(b) for b in budgets], "budget")
    axes.set(title="all tasks, token-forced", ylabel="share covered")
    _finish(axes, 1)


def _by_task(axes: Axes, steps: pd.DataFrame, budgets: list[float]) -> None:
    tasks = sorted(steps["task"].unique())
    table = table_of_means(steps, ["task", "budget"], "covered")
    for index, (task, shift) in enumerate(zip(tasks, shifts(len(tasks), 0.5), strict=True)):
        points(axes, budgets, table[table["task"] == task], "budget", shift, style(index), task)
    nominal_line(axes)
    categories(axes, [percent(b) for b in budgets], "budget")
    axes.set_title("panel mean by task")
    _finish(axes, 2)


def _by_ess(axes: Axes, heads: pd.DataFrame, budgets: list[float]) -> None:
    if heads.empty:
        nothing(axes, "no head was logged")
        return
    heads = heads.assign(band=bands(heads["ess_full"], ESS_EDGES))
    order = [band for band in heads["band"].cat.categories if (heads["band"] == band).any()]
    table = table_of_means(heads, ["band", "budget"], "covered")
    for index, (budget, shift) in enumerate(zip(budgets, shifts(len(budgets)), strict=True)):
        points(axes, order, table[table["budget"] == budget], "band", shift, style(index), percent(budget))
    nominal_line(axes)
    categories(axes, order, "ESS of the full weights (shadow)", rotation=40)
    axes.set_title("per head by ESS band")
    _finish(axes, 3)


def _finish(axes: Axes, columns: int) -> None:
    low = min(axes.get_ylim()[0], 0.9)
    axes.set_ylim(max(low, -0.02), 1.005)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.26), ncols=columns, columnspacing=0.8)
