"""Figure `scheduling` (C7): what recomputing a share of the runs with the full cache recovers, by how they are chosen."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.claims_json import reason, strata
from kvcert.paper.figures.bars import categories, points, shifts
from kvcert.paper.figures.style import (
    BLACK,
    BLUE,
    COLUMN,
    DOUBLE,
    GREY,
    RED,
    new_figure,
    nothing,
    percent,
)
from kvcert.paper.logs import Logs

GATES: dict[str, dict[str, Any]] = {
    "certificate": {"color": BLUE, "marker": "o", "linestyle": "-"},
    "confidence": {"color": RED, "marker": "s", "linestyle": "--"},
    "random": {"color": GREY, "marker": "D", "linestyle": ":"},
    "oracle": {"color": BLACK, "marker": "^", "linestyle": "-."},
}
LABELS = {
    "certificate": "certificate",
    "confidence": "low confidence",
    "random": "random (exact)",
    "oracle": "oracle",
}


def draw(logs: Logs) -> Figure:
    """Left: the curve over the share recomputed. Right: each budget at the registered share, with intervals."""
    claim = logs.claims.get("C7")
    curves = (claim or {}).get("curves") or {}
    if not curves.get("fraction"):
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], reason(claim, "C7"))
        return figure
    figure, axes = new_figure(DOUBLE, 2.8, columns=2, sharey=True)
    fraction = float((claim or {}).get("scope", {}).get("fraction", 0.25))
    _curve(axes[0, 0], curves, fraction)
    _budgets(axes[0, 1], claim or {}, fraction)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _curve(axes: Axes, curves: dict[str, Any], fraction: float) -> None:
    at = [100 * value for value in curves["fraction"]]
    for gate, look in GATES.items():
        values = [float("nan") if value is None else 100 * value for value in curves.get(gate) or []]
        if values:
            axes.plot(at, values, label=LABELS[gate], **look)
    axes.axvline(100 * fraction, color=GREY, linewidth=0.8, zorder=1)
    axes.text(
        100 * fraction,
        0.99,
        " registered",
        transform=axes.get_xaxis_transform(),
        va="top",
        fontsize=6.5,
        color=GREY,
    )
    axes.set(xlabel="runs recomputed with the full cache (%)", ylabel="recoverable gain recovered (%)",
             title="all budgets, streaming")  # fmt: skip


def _budgets(axes: Axes, claim: dict[str, Any], fraction: float) -> None:
    table = strata(claim)
    table = table[table["by"].isin(["pooled", "budget"])].copy()
    table[["mean", "low", "high"]] *= 100
    table["group"] = [
        name if by == "budget" else "all" for name, by in zip(table["name"], table["by"], strict=True)
    ]
    order = [*sorted((group for group in table["group"].unique() if group != "all"), key=float), "all"]
    if table.empty:
        nothing(axes, "no strata by budget")
        return
    for (gate, look), shift in zip(GATES.items(), shifts(len(GATES)), strict=True):
        rows = table[(table["measure"] == gate) & table["mean"].notna()]
        points(axes, order, rows, "group", shift, look | {"linestyle": "none"}, LABELS[gate])
    categories(axes, [group if group == "all" else percent(float(group)) for group in order], "budget")
    axes.set_title(f"{percent(fraction)} of the runs recomputed")
