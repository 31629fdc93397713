"""X2: table of the estimator and the radius by budget and band, and the figure with what a simulation cannot see."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.claims.heads import BANDS
from kvcert.paper.exhibits import Found
from kvcert.paper.figures.bars import categories, points, shifts
from kvcert.paper.figures.coverage import ess_label
from kvcert.paper.figures.style import BLACK, DOUBLE, GREY, new_figure, nothing, percent, style
from kvcert.paper.render import Table

TITLES = {
    "by": "by", "band": "band", "budget": "budget", "units": "units", "examples": "examples",
    "ratio": "E[V̂]/MSE", "ratio_low": "low", "ratio_high": "high", "mse_share": "MSE / linearised",
    "bias_share": "bias² / MSE", "coverage": "covered", "coverage_low": "low", "coverage_high": "high",
    "guarded": "guarded",
}  # fmt: skip
NAMES = {"all": "all units", "ess": "ESS of the full weights", "r": "R"}
R_BANDS = ["<=0.1", "0.1-1", ">1"]
NOMINAL = 0.95


def table(found: Found) -> Table:
    """By budget: all units, then by band of the shadow's effective sample size, then by R."""
    frame = found.rows("bands")
    order = ["all", *BANDS, *R_BANDS]
    frame = frame.assign(
        place=frame["by"].map(list(NAMES).index), rank=[order.index(band) for band in frame["band"]]
    ).sort_values(["place", "budget", "rank"], kind="stable")
    rest = [name for name in frame.columns if name not in TITLES and name not in ("place", "rank")]
    frame = frame[[*TITLES, *rest]].reset_index(drop=True)
    people = frame.assign(by=frame["by"].map(NAMES), band=[_label(band) for band in frame["band"]])
    return Table(frame, TITLES, {"budget": -1, "bias_share": 4}, people)


def draw(found: Found) -> Figure:
    """Four panels: E[V̂]/MSE and coverage by band and budget; variance at rare units; what 100 draws measure of it."""
    bands, exact, drawn = found.rows("bands"), found.rows("analytic"), found.rows()
    figure, axes = new_figure(DOUBLE, 5.2, rows=2, columns=2)
    _by_band(axes[0, 0], bands, "ratio", "E[V̂] / MSE, median of units", 1.0, "the estimator at work")
    _by_band(
        axes[0, 1],
        bands,
        "coverage",
        "share covered, mean of units",
        NOMINAL,
        "coverage of the plain radius",
    )
    _unseen(axes[1, 0], exact)
    _seen(axes[1, 1], drawn)
    axes[0, 0].legend(title="budget", title_fontsize=6.5, loc="lower right", ncols=3)
    return figure


def _by_band(axes: Axes, bands: pd.DataFrame, name: str, label: str, line: float, title: str) -> None:
    order = ["all", *BANDS]
    part = bands[bands["by"].isin(["all", "ess"])]
    budgets = sorted(part["budget"].unique())
    for number, (budget, shift) in enumerate(zip(budgets, shifts(len(budgets)), strict=True)):
        rows = part[part["budget"] == budget].rename(columns={name: "mean"})
        rows = rows.assign(low=rows[f"{name}_low"], high=rows[f"{name}_high"])
        look = style(number)
        points(axes, order[:1], rows, "band", shift, look | {"linestyle": "none"}, "_")
        points(axes, order, rows[rows["band"] != "all"], "band", shift, look, percent(budget))
    axes.axhline(line, color=BLACK, linewidth=0.8, linestyle=":")
    axes.axvline(0.5, color=GREY, linewidth=0.5)
    categories(
        axes, ["all", *(ess_label(band) for band in BANDS)], "ESS of the full weights (shadow)", rotation=40
    )
    low = axes.get_ylim()[0]
    axes.set_ylim(low, 1.0 + 0.06 * (1.0 - low))
    axes.set(ylabel=label, title=title)


def _grades(frame: pd.DataFrame) -> list[int]:
    return sorted(int(name.split("_")[1]) for name in frame.columns if name.startswith("unseen_"))


def _unseen(axes: Axes, exact: pd.DataFrame) -> None:
    """Share of the panel's units that have at least this share of their variance at π < 1/D."""
    for number, budget in enumerate(sorted(exact["budget"].unique())):
        part = exact[exact["budget"] == budget]
        for grade, width in zip(_grades(exact), (1.4, 0.8, 0.4), strict=False):
            share = np.sort(part[f"unseen_{grade}"].to_numpy())
            if share[-1] < 1e-3:
                continue
            above = 1.0 - np.arange(len(share)) / len(share)
            look = style(number)
            axes.plot(
                share, above, color=look["color"], linestyle="-" if grade == _grades(exact)[0] else "--", linewidth=width,
                drawstyle="steps-post", label=f"{percent(budget)}, D = {grade:,}",
            )  # fmt: skip
    if not axes.lines:
        nothing(axes, "no unit holds a thousandth of its variance there")
        return
    axes.set(
        xlim=(-0.02, 1.02), yscale="log", xlabel="share of the variance at π < 1/D",
        ylabel="share of units with at least that", title="variance that D draws will mostly not see",
    )  # fmt: skip
    axes.set_ylim(top=12)
    axes.legend(loc="upper right", ncols=2)


def _seen(axes: Axes, drawn: pd.DataFrame) -> None:
    """Mean squared linearised error of D draws over its exact expectation, against the share that D draws cannot see."""
    first, last = _grades(drawn)[0], _grades(drawn)[-1]
    for number, budget in enumerate(sorted(drawn["budget"].unique())):
        part, look = drawn[drawn["budget"] == budget], style(number)
        axes.plot(
            part[f"unseen_{first}"], _found(part, first), linestyle="none", marker=look["marker"], color=look["color"],
            markersize=2.5, alpha=0.6, markeredgewidth=0, label=f"{percent(budget)}, {first:,} draws",
        )  # fmt: skip
    worst = drawn.sort_values(f"unseen_{first}").tail(max(1, len(drawn) // 20))
    axes.plot(
        worst[f"unseen_{first}"], _found(worst, last), linestyle="none", marker="_", color=BLACK, markersize=6,
        label=f"{last:,} draws (the 5 % furthest right)",
    )  # fmt: skip
    axes.plot([0, 1], [1, 0], color=GREY, linewidth=0.8, linestyle="--", label="none of the rare units drawn")
    axes.axhline(1.0, color=BLACK, linewidth=0.8, linestyle=":")
    axes.set(
        xlim=(-0.02, 1.02), ylim=(-0.03, 2.9), xlabel=f"share of the variance at π < 1/{first}",
        ylabel="simulated / exact variance (2: or more)", title="what a simulation finds of the linearised variance",
    )  # fmt: skip
    axes.legend(loc="upper right", handlelength=1.5)


def _found(rows: pd.DataFrame, draws: int) -> pd.Series:
    return (rows[f"linear_{draws}"] / rows["linear"]).clip(upper=2.0)


def _label(band: str) -> str:
    return ess_label(band).replace("≤", "≤ ").replace(">", "> ")
