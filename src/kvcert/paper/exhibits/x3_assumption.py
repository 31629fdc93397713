"""Table and figure of X3: R·m by context length, the oracle, the replay, the defensive mixture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.exhibits import Found
from kvcert.paper.figures.bars import categories, points
from kvcert.paper.figures.style import (
    BLACK,
    BLUE,
    DOUBLE,
    GREEN,
    GREY,
    PURPLE,
    RED,
    new_figure,
    percent,
    style,
)
from kvcert.paper.render import Table

TITLES = {
    "part": "part", "where": "where", "what": "what", "value": "value", "low": "low", "high": "high", "n": "units",
}  # fmt: skip
LOOKS: dict[str, dict[str, Any]] = {
    "deployed": {"color": BLACK, "marker": "o", "linestyle": "-"},
    "oracle": {"color": PURPLE, "marker": "D", "linestyle": "--"},
}


def table(found: Found) -> Table:
    """Every number of the figure, one a row, with its interval over examples where it has one."""
    lines: list[tuple[Any, ...]] = []
    for row in found.rows().to_dict("records"):
        where = f"{row['length']} tokens, {percent(row['budget'])}"
        lines.append(("referee's test", where, "largest R m", row["rm_max"], None, None, row["units"]))
        lines.append(
            ("referee's test", where, "units above the limit", row["share_above"], None, None, row["units"])
        )
    for row in found.rows("slopes").to_dict("records"):
        what = f"slope of {row['response']} in {row['slope']}"
        lines.append(
            (
                f"regression, {row['level']}",
                row["model"],
                what,
                row["value"],
                row["low"],
                row["high"],
                row["n"],
            )
        )
    for row in found.rows("oracle").to_dict("records"):
        where = f"π from {'the score' if row['design'] == 'deployed' else 'attention itself'}, {percent(row['budget'])}"
        interval = (row["coverage_low"], row["coverage_high"], row["units"])
        lines.append(("redrawn", where, "coverage", row["coverage"], *interval))
        lines.append(
            ("redrawn", where, "linearised variance", row["exact_variance"], None, None, row["units"])
        )
        lines.append(
            ("redrawn", where, "estimate / mean squared error", row["calibration"], None, None, row["units"])
        )
    for row in found.rows("replay").to_dict("records"):
        what = "coverage, " + ("plain radius" if row["radius"] == "radius" else "guarded radius")
        where = f"{row['source']}: {row['group']}"
        lines.append(("replay", where, what, row["value"], row["low"], row["high"], row["units"]))
    for row in found.rows("designs").to_dict("records"):
        where = f"{row['policy']}, {percent(row['budget'])}"
        interval = (row["coverage_low"], row["coverage_high"], row["units"])
        lines.append(("mixture", where, "coverage per head", row["coverage"], *interval))
        lines.append(("mixture", where, "median relative radius", row["width"], None, None, row["units"]))
        lines.append(("mixture", where, "largest R m", row["rm_max"], None, None, row["units"]))
        interval = (row["score_change_low"], row["score_change_high"], None)
        lines.append(("mixture", where, "score against Poisson", row["score_change"], *interval))
    frame = pd.DataFrame(lines, columns=list(TITLES)).astype({"n": "Int64"})
    return Table(frame.astype(dict.fromkeys(("value", "low", "high"), float)), TITLES)


def draw(found: Found) -> Figure:
    """Above: R·m against the tail's size, the oracle, the replay. Below: the mixture's coverage, width and score by λ."""
    figure, axes = new_figure(DOUBLE, 4.9, rows=2, columns=3)
    _sizes(axes[0, 0], found.rows(), float(found.outcome["about"]["limit"]))
    _oracle(axes[0, 1], found.rows("oracle"))
    _replay(axes[0, 2], found.rows("replay"))
    designs = found.rows("designs")
    designs["lam"] = [
        0.0 if p == "poisson" else float(p.split("=")[1].rstrip("]")) for p in designs["policy"]
    ]
    _by_lambda(axes[1, 0], designs, "coverage", "share of (layer, head, step) covered")
    axes[1, 0].axhline(0.95, color=BLACK, linewidth=0.8, linestyle=(0, (1, 2)))
    _by_lambda(axes[1, 1], designs, "width", "median relative radius")
    _by_lambda(axes[1, 2], designs, "score_change", "score, mixture − Poisson")
    axes[1, 2].axhline(0.0, color=BLACK, linewidth=0.8, linestyle=(0, (1, 2)))
    handles, labels = axes[1, 1].get_legend_handles_labels()
    figure.legend(
        handles, [f"budget {label}" for label in labels], loc="outside lower center", ncols=len(labels)
    )
    return figure


def _sizes(axes: Axes, table: pd.DataFrame, limit: float) -> None:
    for index, budget in enumerate(sorted(table["budget"].unique())):
        some, look = table[table["budget"] == budget].sort_values("n_tail"), style(index)
        axes.plot(some["n_tail"], some["rm_max"], label=percent(float(budget)), **look)
        axes.plot(some["n_tail"], some["rm_q99"], **(look | {"linestyle": ":"}), markersize=2.5)
        axes.plot(some["n_tail"], some["rm_median"], **(look | {"linestyle": ":"}), markersize=1.5, alpha=0.6)
    axes.axhline(limit, color=RED, linewidth=0.9, linestyle="--")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="tail tokens $n_{tail}$",
        ylabel="R·m",
        title="R·m: largest, 99 %, median",
    )
    ticks = sorted({int(round(value, -2)) for value in table["n_tail"]})[::2]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


def _oracle(axes: Axes, table: pd.DataFrame) -> None:
    names = {"deployed": "π from the score", "oracle": "π ∝ attention"}
    order = sorted(table["budget"].unique())
    for (design, look), shift in zip(LOOKS.items(), (-0.08, 0.08), strict=True):
        some = table[table["design"] == design].rename(
            columns={"coverage": "mean", "coverage_low": "low", "coverage_high": "high"}
        )
        points(axes, order, some, "budget", shift, look, names[design])
    categories(axes, [percent(float(budget)) for budget in order], "budget")
    axes.axhline(0.95, color=BLACK, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set(ylabel="share of draws covered", title="The oracle redrawn each step")
    axes.legend(loc="lower right")


def _replay(axes: Axes, table: pd.DataFrame) -> None:
    some = table[table["source"] == "default run"].rename(columns={"value": "mean"})
    order = list(dict.fromkeys(some["group"]))[1:]
    looks = {
        "radius": ("plain", {"color": BLUE, "marker": "o"}),
        "guarded": ("guarded", {"color": GREEN, "marker": "^"}),
    }
    for (radius, (label, look)), shift in zip(looks.items(), (-0.12, 0.12), strict=True):
        points(
            axes, order, some[some["radius"] == radius], "group", shift, look | {"linestyle": "none"}, label
        )
    categories(axes, [_wrap(name) for name in order], "")
    axes.tick_params(axis="x", labelsize=5.5)
    axes.axhline(0.95, color=BLACK, linewidth=0.8, linestyle=(0, (1, 2)))
    counts = some[some["radius"] == "radius"].set_index("group")["units"]
    low = min(0.9, float(np.nanmin(some["low"].fillna(some["mean"]))) - 0.04)
    axes.set_ylim(low, 1.0 + 0.12 * (1.0 - low))
    for at, name in enumerate(order):
        axes.text(at, 0.995, f"{int(counts[name]):,}", transform=axes.get_xaxis_transform(), ha="center", va="top",
                  fontsize=5.5, color=GREY)  # fmt: skip
    axes.set(ylabel="share of units covered", title="Replay: heavy tail tokens")
    axes.legend(loc="center left")


def _wrap(name: str) -> str:
    return name.replace("no token with ", "none with\n").replace(", ", "\n").replace("R m", "R·m")


def _by_lambda(axes: Axes, table: pd.DataFrame, column: str, label: str) -> None:
    order = sorted(table["lam"].unique())
    bounds = {column: "mean", f"{column}_low": "low", f"{column}_high": "high"}
    shown = table.rename(columns=bounds)
    for name in ("low", "high"):
        shown[name] = shown.get(name, np.nan)
    for index, budget in enumerate(sorted(shown["budget"].unique())):
        some = shown[shown["budget"] == budget]
        points(axes, order, some, "lam", 0.1 * (index - 1), style(index), percent(float(budget)))
    categories(axes, [f"{value:g}" for value in order], "mixture weight λ (0: Poisson)")
    axes.set_ylabel(label)
