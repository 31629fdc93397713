"""Negative controls: what had to happen, and whether it did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.exhibits.outcome import AS_EXPECTED, NOT_MEASURED
from kvcert.paper.exhibits import Found
from kvcert.paper.exhibits.words import outcome_table
from kvcert.paper.render import Table

#: Control → (what is drawn of its coverage, column).
COVERAGE = (
    ("right design", "coverage", "right design"),
    ("declared pi = 1", "coverage", "declared π = 1"),
    ("offset off", "coverage", "offset off"),
    ("shuffled pi", "coverage", "shuffled π (may rise)"),
    ("needle missed", "coverage", "needle missed"),
    ("needle caught alone", "coverage", "needle caught, plain"),
    ("needle caught alone", "coverage_guarded", "needle caught, guarded"),
)
BIAS = (
    ("reference", "unbiased total"),
    ("right design", "right design"),
    ("offset off", "offset off"),
    ("shuffled pi", "shuffled π"),
)


def table(found: Found) -> Table:
    """Every control with its line and its outcome."""
    return outcome_table(found.outcome)


def draw(found: Found) -> Any:
    """Three panels: bias in standard errors, coverage per unit, attribution AUC under shuffled labels."""
    from kvcert.paper.figures.style import BLUE, DOUBLE, GREY, RED, new_figure, nothing

    rows = found.rows()
    figure, axes = new_figure(DOUBLE, 2.7, 1, 3, width_ratios=[1.1, 1.1, 0.9])
    bias, cover, labels = axes[0]
    for place, (control, _) in enumerate(BIAS):
        values = rows[rows["control"] == control]["bias"].to_numpy(float)
        _strip(bias, values, place, BLUE if control in ("reference", "right design") else RED)
    bias.axvline(3, color="black", linewidth=0.8, linestyle="--")
    bias.annotate("3 standard errors", (3, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -7),
                  textcoords="offset points", fontsize=6)  # fmt: skip
    bias.set(
        xscale="log",
        xlabel="|bias| in Monte Carlo standard errors",
        title="Bias at fixed query",
    )
    _names(bias, [name for _, name in BIAS])
    for place, (control, column, _) in enumerate(COVERAGE):
        values = rows[rows["control"] == control][column].to_numpy(float)
        _strip(
            cover, values, place, BLUE if control == "right design" or column == "coverage_guarded" else RED
        )
    cover.axvline(0.95, color="black", linewidth=0.8, linestyle="--")
    cover.set(xlabel="coverage per head (dot) and mean (bar)", title="Coverage", xlim=(-0.04, 1.04))
    _names(cover, [name for _, _, name in COVERAGE])
    _labels(labels, found, nothing, BLUE, RED, GREY)
    return figure


def _strip(axis: Any, values: np.ndarray, place: int, color: str) -> None:
    """One dot per unit, spread evenly in a band in the order of the rows, and a bar at the mean."""
    if len(values):
        spread = place + 0.28 * np.linspace(-1, 1, len(values))
        axis.plot(values, spread, ".", color=color, markersize=2.5, alpha=0.5, markeredgewidth=0)
        axis.plot([values.mean()] * 2, [place - 0.36, place + 0.36], color=color, linewidth=1.8)


def _names(axis: Any, names: list[str]) -> None:
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.6)


def _labels(axis: Any, found: Found, nothing: Any, blue: str, red: str, grey: str) -> None:
    shuffles: pd.DataFrame = found.rows("labels")
    if shuffles.empty:
        nothing(axis, "these logs hold no failures of both classes")
        return
    bins = np.linspace(0.3, 0.7, 21)
    for column, color, line in (("pooled", blue, "-"), ("conditional", red, "--")):
        values = shuffles[column].dropna()
        if len(values):
            axis.hist(values, bins, histtype="step", color=color, linestyle=line, label=column)
    axis.axvline(0.5, color="black", linewidth=0.8)
    outcomes = [entry["outcome"] for entry in found.outcome["expectations"]]
    held, measured = outcomes.count(AS_EXPECTED), len(outcomes) - outcomes.count(NOT_MEASURED)
    axis.set(xlabel="attribution AUC", ylabel="shuffles", title="Shuffled labels")
    axis.set_ylim(0, 1.35 * axis.get_ylim()[1])
    axis.legend(loc="upper left")
    axis.figure.supxlabel(f"{held} of {measured} controls did what they must", fontsize=7, color=grey)
