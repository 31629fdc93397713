"""Figure `ess_coverage`: where the plain radius fails — few tokens carry the weight — and what the guarded one covers."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.figures.bars import categories, points, shifts
from kvcert.paper.figures.coverage import ESS_EDGES, nominal_line
from kvcert.paper.figures.style import BLUE, COLUMN, DOUBLE, GREEN, GREY, new_figure, nothing, percent
from kvcert.paper.logs import Logs
from kvcert.paper.stats import bands, covered, table_of_means

KINDS = (
    ("covered", "plain radius", {"color": BLUE, "marker": "o", "linestyle": "-"}),
    ("covered_guarded", "guarded radius", {"color": GREEN, "marker": "^", "linestyle": "-."}),
)


def draw(logs: Logs) -> Figure:
    """One panel per budget; the numbers under the ticks' panel are (layer, head, step) triples."""
    heads = logs.heads
    if heads.empty:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], "no head of a token-forced Poisson run was logged")
        return figure
    heads = covered(heads, "radius").assign(band=bands(heads["ess_full"], ESS_EDGES))
    budgets = sorted(heads["budget"].unique())
    width = DOUBLE if len(budgets) > 1 else COLUMN
    figure, axes = new_figure(width, 2.7, columns=len(budgets), sharey=True)
    order = [band for band in heads["band"].cat.categories if (heads["band"] == band).any()]
    for panel, budget in zip(axes[0], budgets, strict=True):
        _panel(panel, heads[heads["budget"] == budget], order)
        panel.set_title(f"budget {percent(budget)}")
    axes[0, 0].set_ylabel("share of (layer, head, step) covered")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _panel(axes: Axes, heads: pd.DataFrame, order: list[str]) -> None:
    for (column, label, look), shift in zip(KINDS, shifts(2, 0.2), strict=True):
        points(axes, order, table_of_means(heads, ["band"], column), "band", shift, look, label)
    nominal_line(axes)
    categories(axes, order, "ESS of the full weights (shadow)", rotation=40)
    counts = heads["band"].value_counts()
    axes.set_ylim(max(-0.02, min(axes.get_ylim()[0], 0.88)), 1.04)
    for at, band in enumerate(order):
        axes.text(at, 1.015, _short(int(counts.get(band, 0))), ha="center", va="bottom", fontsize=5.5, color=GREY)


def _short(count: int) -> str:
    """1234 → `1.2k`: fits above a tick."""
    return f"{count}" if count < 1000 else f"{count / 1000:.1f}k" if count < 100_000 else f"{count / 1000:.0f}k"
