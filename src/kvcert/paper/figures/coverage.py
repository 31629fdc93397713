"""Figure `coverage` (C1): how often the certificate covers the true error, by budget, task and ESS of the shadow."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.claims_json import coverage_strata, parts, reason
from kvcert.paper.figures.bars import categories, legend_below, points, shifts
from kvcert.paper.figures.style import (
    BLACK,
    BLUE,
    COLUMN,
    DOUBLE,
    GREEN,
    GREY,
    RED,
    new_figure,
    nothing,
    percent,
    style,
)
from kvcert.paper.logs import Logs

#: The range that the paper reports for panel means.
PAPER = (0.969, 0.977)
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "C1a": ("panel mean (C1a)", {"color": BLUE, "marker": "o", "linestyle": "-"}),
    "C1b": ("per head (C1b)", {"color": RED, "marker": "s", "linestyle": "--"}),
    "C1b guarded": ("per head, guarded", {"color": GREEN, "marker": "^", "linestyle": "-."}),
}


def draw(logs: Logs) -> Figure:
    """Three panels: by budget, panel mean by task, per head by ESS band."""
    claim = logs.claims.get("C1")
    table = coverage_strata(claim)
    table = table[table["mean"].notna()]
    if table.empty:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], reason(claim, "C1"))
        return figure
    figure, axes = new_figure(DOUBLE, 3.2, columns=3)
    budgets = sorted(table["budget"].unique())
    line = nominal(claim)
    _by_budget(axes[0, 0], table[table["by"] == "budget"], budgets, line)
    _by_task(axes[0, 1], table[(table["by"] == "budget x task") & (table["measure"] == "C1a")], budgets, line)
    _by_ess(axes[0, 2], table[(table["by"] == "budget x ess") & (table["measure"] == "C1b")], budgets, line)
    return figure


def nominal(claim: dict[str, Any] | None) -> float:
    """The registered rate, from the claim's own line."""
    return next(
        (float(part["threshold"]) for part in parts(claim or {}) if part.get("threshold") is not None), 0.95
    )


def nominal_line(axes: Axes, at: float) -> None:
    """A dashed line at the registered rate."""
    axes.axhline(at, color=GREY, linestyle="--", linewidth=0.9, zorder=1)


def ess_label(band: str) -> str:
    """`<=2`, `2-4`, `>32` as a reader writes them."""
    return band.replace("<=", "≤").replace("-", "–")


def ess_order(table: pd.DataFrame) -> list[str]:
    """Bands from few tokens to many: the claim lists them in order at each budget."""
    return sorted(
        table["group"].unique(), key=lambda band: (band[0] == ">", _first_number(band), band[0] != "<")
    )


def _first_number(band: str) -> float:
    return float(band.lstrip("<=>").split("-")[0]) - (0.5 if band[0] == "<" else 0)


def _by_budget(axes: Axes, table: pd.DataFrame, budgets: list[float], line: float) -> None:
    for (measure, (label, look)), shift in zip(KINDS.items(), shifts(len(KINDS)), strict=True):
        points(axes, budgets, table[table["measure"] == measure], "budget", shift, look, label)
    axes.axhspan(*PAPER, color=BLACK, alpha=0.12, linewidth=0, zorder=0, label="paper, 96.9–97.7 %")
    categories(axes, [percent(b) for b in budgets], "budget")
    axes.set(title="all tasks, token-forced", ylabel="share covered")
    _finish(axes, line, 1)


def _by_task(axes: Axes, table: pd.DataFrame, budgets: list[float], line: float) -> None:
    tasks = sorted(table["group"].unique())
    if not tasks:
        nothing(axes, "no figures by task")
        return
    for index, (task, shift) in enumerate(zip(tasks, shifts(len(tasks), 0.5), strict=True)):
        points(axes, budgets, table[table["group"] == task], "budget", shift, style(index), task)
    categories(axes, [percent(b) for b in budgets], "budget")
    axes.set_title("panel mean by task")
    _finish(axes, line, 2)


def _by_ess(axes: Axes, table: pd.DataFrame, budgets: list[float], line: float) -> None:
    order = ess_order(table)
    if not order:
        nothing(axes, "no head was logged")
        return
    for index, (budget, shift) in enumerate(zip(budgets, shifts(len(budgets)), strict=True)):
        points(axes, order, table[table["budget"] == budget], "group", shift, style(index), percent(budget))
    categories(axes, [ess_label(band) for band in order], "ESS of the full weights (shadow)", rotation=40)
    axes.set_title("per head by ESS band")
    _finish(axes, line, 3)


def _finish(axes: Axes, line: float, columns: int) -> None:
    nominal_line(axes, line)
    low = min(axes.get_ylim()[0], line - 0.05)
    axes.set_ylim(max(low, -0.02), 1.005)
    legend_below(axes, 0.62, columns)
