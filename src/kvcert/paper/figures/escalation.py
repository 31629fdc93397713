"""Figure `escalation` (C5): score gained by running a quarter of the runs again at the largest budget."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.claims_json import reason, strata
from kvcert.paper.figures.bars import categories, legend_below, points, shifts
from kvcert.paper.figures.scheduling import GATES, LABELS
from kvcert.paper.figures.style import BLUE, COLUMN, DOUBLE, GREY, RED, SETTINGS, new_figure, nothing
from kvcert.paper.logs import Logs

DIFFERENCES = {
    "over_random": ("certificate − random", {"color": BLUE, "marker": "o", "linestyle": "none"}),
    "over_confidence": ("certificate − low confidence", {"color": RED, "marker": "s", "linestyle": "none"}),
}


def draw(logs: Logs) -> Figure:
    """Left: gain of every gate at the same mean budget. Right: the two registered differences, killed at or below 0."""
    claim = logs.claims.get("C5")
    table = strata(claim)
    table = table[table["by"].isin(["pooled", "setting"]) & table["mean"].notna()]
    if table.empty:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], reason(claim, "C5"))
        return figure
    table = table.assign(**{name: 100 * table[name] for name in ("mean", "low", "high")})
    order = ["all", *sorted(name for name in table["name"].unique() if name != "all")]
    labels = ["both settings", *(SETTINGS.get(name, name) for name in order[1:])]
    figure, axes = new_figure(DOUBLE, 2.8, columns=2)
    gates, differences = axes[0]
    for (gate, look), shift in zip(GATES.items(), shifts(len(GATES)), strict=True):
        rows = table[table["measure"] == gate]
        points(gates, order, rows, "name", shift, look | {"linestyle": "none"}, LABELS[gate])
    for (measure, (label, look)), shift in zip(DIFFERENCES.items(), shifts(2, 0.2), strict=True):
        points(differences, order, table[table["measure"] == measure], "name", shift, look, label)
    _finish(gates, labels, "score gained per run (points)", "gain at the same mean budget", 4)
    _finish(differences, labels, "difference (points)", "registered differences", 2)
    return figure


def _finish(axes: Axes, labels: list[str], name: str, title: str, columns: int) -> None:
    axes.axhline(0, color=GREY, linestyle="--", linewidth=0.9, zorder=1)
    categories(axes, labels, "")
    axes.set(ylabel=name, title=title)
    legend_below(axes, 0.26, columns, handlelength=1.2)
