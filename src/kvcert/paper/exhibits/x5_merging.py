"""X5: table of slopes, and the figure of merging's error along the two interventions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.exhibits import Found
from kvcert.paper.figures.style import (
    BLACK,
    BLUE,
    DOUBLE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    new_figure,
    percent,
    style,
)
from kvcert.paper.render import Table

TITLES = {
    "variant": "strata", "budget": "budget", "units": "units", "dispersion": "slope in dispersion",
    "dispersion_low": "low", "dispersion_high": "high", "mass": "slope in mass", "mass_low": "low", "mass_high": "high",
    "mass_offset": "in mass, exact", "value_part": "value part / error", "key_part": "key part / error",
    "tightness": "value part / bound", "relative": "error / output", "to_poisson": "error / Poisson's",
}  # fmt: skip
NAMES = {"position": "blocks", "key": "nearest key", "score": "blocks, score-weighted"}


def table(found: Found) -> Table:
    """Median slopes and parts of the error per variant and budget; the regressions over units are in the CSV."""
    frame = found.rows("slopes")
    rest = [name for name in frame.columns if name not in TITLES]
    frame = frame[[*TITLES, *rest]]
    people = frame.assign(
        variant=[NAMES.get(name, name) for name in frame["variant"]],
        budget=["all" if np.isnan(budget) else percent(budget) for budget in frame["budget"]],
    )
    return Table(frame, TITLES, dict.fromkeys(("dispersion", "mass", "mass_offset"), 2), people)


def draw(found: Found) -> Figure:
    """Three panels: error against the dispersion factor, error against the mass, and the units' slopes."""
    curves, rows = found.rows("curves"), found.rows()
    first = curves["variant"].iloc[0]
    figure, axes = new_figure(DOUBLE, 2.9, columns=3)
    _dispersion(axes[0, 0], curves)
    _mass(axes[0, 1], curves[curves["variant"] == first])
    _histogram(axes[0, 2], rows[rows["variant"] == first])
    return figure


def _line(axes: Axes, part: pd.DataFrame, look: dict, label: str, band: bool) -> None:
    part = part.sort_values("x")
    axes.plot(part["x"], part["middle"], label=label, **look)
    if band:
        axes.fill_between(part["x"], part["low"], part["high"], color=look["color"], alpha=0.15, linewidth=0)


def _references(axes: Axes, flat: str, steep: str) -> None:
    x = np.array([0.22, 4.6])
    axes.plot(x, x, color=GREY, linewidth=0.8, linestyle="--", label=steep)
    axes.plot(x, np.ones(2), color=GREY, linewidth=0.8, linestyle=":", label=flat)
    axes.set(xscale="log", yscale="log", xlim=(0.2, 5), ylim=(0.2, 7))
    axes.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"], minor=False)
    axes.set_yticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"], minor=False)
    axes.minorticks_off()


def _dispersion(axes: Axes, curves: pd.DataFrame) -> None:
    part = curves[curves["line"] == "dispersion"]
    for number, variant in enumerate(part["variant"].unique()):
        here = part[part["variant"] == variant]
        _line(axes, here[here["x"] > 0], style(number), NAMES.get(variant, variant), number == 0)
    rest = float(part.loc[(part["x"] == 0) & (part["variant"] == part["variant"].iloc[0]), "middle"].iloc[0])
    axes.axhline(rest, color=RED, linewidth=0.8, linestyle=(0, (1, 1)), label="left at factor 0 (key part)")
    _references(axes, "slope 0", "slope 1: dispersion alone")
    axes.set(
        xlabel="factor of v − v̄ (mass fixed)",
        ylabel="error / error as it is",
        title="dispersion",
    )
    axes.legend(loc="upper left", handlelength=2.0, fontsize=5.8)


def _mass(axes: Axes, curves: pd.DataFrame) -> None:
    looks: dict[str, tuple[dict[str, Any], str]] = {
        "query": ({"color": BLUE, "marker": "o", "linestyle": "-"}, "query turned"),
        "query value": ({"color": GREEN, "marker": "^", "linestyle": "-."}, "query turned, value part"),
        "offset": ({"color": ORANGE, "marker": "v", "linestyle": (0, (5, 1))}, "mass alone"),
    }
    for name, (look, label) in looks.items():
        _line(axes, curves[curves["line"] == name], look, label, name == "query")
    _references(axes, "slope 0: the paper's letter", "slope 1: mass × dispersion")
    axes.set(xlabel="factor of the mass (values fixed)", title="evicted mass")
    axes.legend(loc="upper left", handlelength=2.0, fontsize=5.8)


def _histogram(axes: Axes, rows: pd.DataFrame) -> None:
    edges = np.linspace(-0.25, 1.5, 36).tolist()
    for column, label, color, hatch in (
        ("slope_dispersion", "in the dispersion", BLUE, "//"),
        ("slope_query_error", "in the mass (query turned)", RED, "\\\\"),
    ):
        values = rows[column].dropna().to_numpy()
        axes.hist(
            values.clip(edges[0], edges[-1]), edges, weights=np.full(len(values), 1 / max(1, len(values))),
            histtype="stepfilled", facecolor=(*_rgb(color), 0.25), edgecolor=color, hatch=hatch, label=label,
        )  # fmt: skip
        axes.axvline(float(np.median(values)), ymax=0.85, color=color, linewidth=1.0, linestyle="--")
    axes.axvline(1.0, ymax=0.85, color=BLACK, linewidth=0.6, linestyle=":")
    axes.set_ylim(top=1.2 * axes.get_ylim()[1])
    axes.set(
        xlabel="log-log slope of a unit's error", ylabel="share of units", title="slopes of single units"
    )
    axes.legend(loc="upper left", handlelength=1.6, fontsize=5.8)


def _rgb(color: str) -> tuple[float, float, float]:
    return tuple(int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))  # type: ignore[return-value]
