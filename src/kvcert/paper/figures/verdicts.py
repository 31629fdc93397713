"""Figure `verdicts`: one strip per claim — its registered lines, this run's values with intervals, the paper's value."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from kvcert.paper.claims_json import finite, paper_number, paper_text, parts, reason
from kvcert.paper.console import interval, number, short_title
from kvcert.paper.figures.style import COLUMN, DOUBLE, GREY, PURPLE, VERDICTS, new_figure, nothing
from kvcert.paper.logs import CLAIMS, Logs

#: A claim with several lines is killed by those that fail: each line shows how it fared by itself.
PARTS = {True: VERDICTS["survived"], False: VERDICTS["killed"]}
ROW, HEAD = 0.19, 0.34  # inches of a line, and of a strip's own ticks


def draw(logs: Logs) -> Figure:
    """Strips have scales of their own: coverage moves by hundredths, an AUC by tenths."""
    if not logs.claims:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], "no claim has been scored")
        return figure
    rows = [max(2, len(parts(logs.claims[key])) if key in logs.claims else 2) for key in CLAIMS]
    heights = [ROW * count + HEAD for count in rows]
    figure, axes = new_figure(DOUBLE, sum(heights) + 0.5, rows=len(CLAIMS), height_ratios=heights)
    for key, strip in zip(CLAIMS, axes[:, 0], strict=True):
        _strip(strip, key, logs.claims.get(key))
    handles = [
        Line2D([], [], color=VERDICTS["survived"][0], marker="o", label="this run, 95 % interval, line held"),
        Line2D([], [], color=VERDICTS["killed"][0], marker="X", label="the same, line not held"),
        Line2D(
            [],
            [],
            color=GREY,
            marker="|",
            linestyle="none",
            markersize=9,
            markeredgewidth=1.6,
            label="registered line",
        ),
        Line2D(
            [],
            [],
            color=PURPLE,
            marker="d",
            linestyle="none",
            markersize=6,
            markerfacecolor="none",
            label="paper",
        ),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _strip(axes: Axes, key: str, claim: dict[str, Any] | None) -> None:
    if claim is None:
        nothing(axes, reason(None, key))
        return
    lines = parts(claim)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_yticks(range(len(lines)), [str(line["name"]).replace("_", " ") for line in lines])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)
    verdict = str(claim.get("verdict") or "not-run")
    look = VERDICTS.get(verdict.split()[0], VERDICTS["not-run"])
    for at, line in enumerate(lines):  # a line per registered part
        _line(axes, at, line, claim, look)
    if not any(finite(line.get("value")) is not None for line in lines):
        axes.text(
            0.5,
            0.5,
            reason(claim, key),
            ha="center",
            va="center",
            transform=axes.transAxes,
            color=GREY,
            style="italic",
        )
        axes.set(xticks=[], yticks=[])
    axes.margins(x=0.1)
    axes.set_title(f"{key} {short_title(claim)}", loc="left", fontweight="bold", pad=3)
    words = look[2] + verdict[len(verdict.split()[0]) :]
    if claim.get("verdict") and not claim.get("decisive") and verdict.startswith(("survived", "killed")):
        words += ", not decisive"
    axes.set_title(f"{words}   (paper: {paper_text(claim)})", loc="right", color=look[0], pad=3)


def _line(
    axes: Axes, at: int, line: dict[str, Any], claim: dict[str, Any], look: tuple[str, str, str]
) -> None:
    value, low, high = (finite(line.get(name)) for name in ("value", "ci_low", "ci_high"))
    threshold, paper = finite(line.get("threshold")), paper_number(claim, str(line["name"]))
    color, shape, _ = look if line.get("passed") is None else PARTS[bool(line["passed"])]
    if low is not None and high is not None:
        axes.plot([low, high], [at, at], color=color, linewidth=2, solid_capstyle="butt")
    if value is not None:
        axes.plot(value, at, color=color, marker=shape, markersize=5.5)
    if threshold is not None:
        axes.plot(threshold, at, color=GREY, marker="|", markersize=11, markeredgewidth=1.6, zorder=1)
    if paper is not None:
        axes.plot(paper, at, color=PURPLE, marker="d", markersize=6.5, markerfacecolor="none", zorder=4)
    text = f"{number(value)} {interval(low, high)}" if value is not None else ""
    axes.text(1.01, at, text, va="center", transform=axes.get_yaxis_transform(), fontsize=6.5)
