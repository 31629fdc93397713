"""Figure `ess_coverage` (C1): where the plain radius fails — few tokens carry the weight — and what the guarded covers."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.claims_json import coverage_strata, reason
from kvcert.paper.figures.bars import categories, points, shifts
from kvcert.paper.figures.coverage import ess_label, ess_order, nominal, nominal_line
from kvcert.paper.figures.style import BLUE, COLUMN, DOUBLE, GREEN, GREY, new_figure, nothing, percent
from kvcert.paper.logs import Logs

KINDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("C1b", "plain radius", {"color": BLUE, "marker": "o", "linestyle": "-"}),
    ("C1b guarded", "guarded radius", {"color": GREEN, "marker": "^", "linestyle": "-."}),
)


def draw(logs: Logs) -> Figure:
    """One panel per budget; the grey numbers are the (layer, head, step) triples in a band."""
    claim = logs.claims.get("C1")
    table = coverage_strata(claim)
    table = table[(table["by"] == "budget x ess") & table["mean"].notna()]
    if table.empty:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], reason(claim, "C1"))
        return figure
    budgets, order = sorted(table["budget"].unique()), ess_order(table)
    width = DOUBLE if len(budgets) > 1 else COLUMN
    figure, axes = new_figure(width, 2.8, columns=len(budgets), sharey=True)
    for panel, budget in zip(axes[0], budgets, strict=True):
        _panel(panel, table[table["budget"] == budget], order, nominal(claim))
        panel.set_title(f"budget {percent(budget)}")
    low = min(panel.get_ylim()[0] for panel in axes[0])
    axes[0, 0].set_ylim(
        max(-0.02, min(low, nominal(claim) - 0.07)), 1.0 + 0.09 * (1 - max(-0.02, min(low, 0.88)))
    )
    axes[0, 0].set_ylabel("share of (layer, head, step) covered")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _panel(axes: Axes, table: pd.DataFrame, order: list[str], line: float) -> None:
    for (measure, label, look), shift in zip(KINDS, shifts(2, 0.2), strict=True):
        points(axes, order, table[table["measure"] == measure], "group", shift, look, label)
    nominal_line(axes, line)
    categories(axes, [ess_label(band) for band in order], "ESS of the full weights (shadow)", rotation=40)
    counts = table.groupby("group")["n_heads"].first()
    for at, band in enumerate(order):
        axes.text(at, 0.995, _short(int(counts.get(band, 0))), transform=axes.get_xaxis_transform(), ha="center", va="top",
                  fontsize=5.5, color=GREY)  # fmt: skip


def _short(count: int) -> str:
    """1234 → `1.2k`: fits above a tick."""
    return (
        f"{count}" if count < 1000 else f"{count / 1000:.1f}k" if count < 100_000 else f"{count / 1000:.0f}k"
    )
