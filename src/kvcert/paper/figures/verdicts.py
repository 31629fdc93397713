"""Figure `verdicts`: one row per claim — value and interval, the line that kills it, and the paper's value."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from kvcert.paper.console import interval, number, short_title
from kvcert.paper.figures.style import BLACK, COLUMN, DOUBLE, GREY, PURPLE, VERDICTS, new_figure, nothing
from kvcert.paper.logs import CLAIMS, Logs


def draw(logs: Logs) -> Figure:
    """Seven strips with scales of their own: the claims are rates, differences and AUCs."""
    if not logs.claims:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], "no claim has been scored")
        return figure
    figure, axes = new_figure(DOUBLE, 0.62 * len(CLAIMS) + 0.7, rows=len(CLAIMS))
    for key, strip in zip(CLAIMS, axes[:, 0], strict=True):
        _strip(strip, key, logs.claims.get(key))
    handles = [
        Line2D([], [], color=BLACK, marker="o", label="this run, 95 % interval"),
        Line2D([], [], color=GREY, linestyle="--", label="line of the kill condition"),
        Line2D([], [], color=PURPLE, marker="d", linestyle="none", markersize=6, markerfacecolor="none", label="paper"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _strip(axes: Axes, key: str, claim: dict[str, Any] | None) -> None:
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-1, 1)
    if claim is None:
        nothing(axes, f"{key} has not been scored")
        return
    verdict = str(claim.get("verdict") or "not-run")
    color, shape, label = VERDICTS.get(verdict.split()[0], VERDICTS["not-run"])
    label += verdict[len(verdict.split()[0]):]
    value, low, high = (_number(claim.get(name)) for name in ("value", "ci_low", "ci_high"))
    threshold, paper = _number(claim.get("threshold")), _number(claim.get("paper_value"))
    finite = [x for x in (value, low, high, threshold, paper) if x is not None]
    if finite:
        span = max(finite) - min(finite) or 0.1
        axes.set_xlim(min(finite) - 0.12 * span, max(finite) + 0.12 * span)
    if threshold is not None:
        axes.axvline(threshold, color=GREY, linestyle="--", linewidth=1)
    if low is not None and high is not None:
        axes.plot([low, high], [0, 0], color=color, linewidth=2.2, solid_capstyle="butt")
    if value is not None:
        axes.plot(value, 0, color=color, marker=shape, markersize=6.5)
    else:
        axes.text(0.5, 0.6, "no value", ha="center", va="center", transform=axes.transAxes, color=GREY, style="italic")
    if paper is not None:
        axes.plot(paper, 0, color=PURPLE, marker="d", markersize=7, markerfacecolor="none", zorder=4)
    axes.text(-0.01, 0.62, f"{key} {short_title(claim)}", ha="right", va="center", transform=axes.transAxes, fontweight="bold")
    axes.text(-0.01, 0.25, str(claim.get("statistic") or "")[:44], ha="right", va="center", transform=axes.transAxes,
              color=GREY, fontsize=6.5)  # fmt: skip
    note = "" if claim.get("decisive") or verdict.startswith(("not-run", "underpowered")) else ", not decisive"
    axes.text(1.01, 0.62, label + note, va="center", transform=axes.transAxes, color=color, fontweight="bold")
    axes.text(1.01, 0.25, f"{number(value)} {interval(low, high)}", va="center", transform=axes.transAxes, fontsize=6.5)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
