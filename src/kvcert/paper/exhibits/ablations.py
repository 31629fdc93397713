"""Table and figure of the ablations: every choice against coverage and attribution."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.exhibits import Found
from kvcert.paper.figures.style import BLACK, DOUBLE, GREY, new_figure, percent, style
from kvcert.paper.render import Table

NAMES = {
    "query heads": "query heads", "panel layers": "panel layers", "signal steps": "window (steps)", "floor": "floor",
    "delta": "δ", "radius": "radius", "rho": "ρ (rerun)", "epsilon": "ε (rerun)", "registered": "registered",
}  # fmt: skip
#: Coverage below this is written beside the axis: one absurd choice would flatten all others.
OFF = 0.6
KEY = ["factor", "value", "registered", "of"]


def table(found: Found) -> Table:
    """One row per choice: C1a and C1b by budget, both AUCs with the pooled one's interval, numbers behind them."""
    rows = found.rows()
    rows["column"] = [
        m if pd.isna(b) else f"{m} {percent(b)}" for m, b in zip(rows["measure"], rows["budget"], strict=True)
    ]
    columns = list(dict.fromkeys(rows["column"]))
    wide = rows.set_index([*KEY, "column"])["estimate"].unstack("column")[columns]
    wide = wide.loc[list(dict.fromkeys(rows.set_index(KEY).index))]
    pooled = rows[rows["measure"] == "AUC pooled"].set_index(KEY)[["low", "high", "runs"]]
    frame = wide.join(pooled).reset_index()
    titles = {"factor": "choice", "value": "value", "registered": "registered", "of": "logs"}
    titles |= {name: name for name in columns} | {
        "low": "pooled low",
        "high": "pooled high",
        "runs": "failures",
    }
    people = frame.assign(factor=frame["factor"].map(NAMES))
    return Table(frame.astype({"runs": "Int64"}), titles, people=people.astype({"runs": "Int64"}))


def draw(found: Found) -> Figure:
    """One line per choice, grouped by factor; a filled dot at the registered value, a rule at the default run's figure."""
    rows = found.rows()
    rows = rows[rows["factor"] != "registered"]
    lines = list(dict.fromkeys(zip(rows["factor"], rows["value"], rows["registered"], strict=True)))
    places, labels, at = {}, [], 0.0
    for number, (factor, value, registered) in enumerate(lines):
        at -= 1.0 if number and lines[number - 1][0] == factor else 1.7
        places[(factor, value)] = at
        labels.append((at, f"{value} *" if registered else value))
    figure, axes = new_figure(DOUBLE, 7.4, columns=3, sharey=True)
    base = found.rows()
    base = base[base["factor"] == "registered"]
    titles = {"C1a": "panel coverage (C1a)", "C1b": "coverage per head (C1b)"}
    for panel, (measure, title) in zip(axes[0, :2], titles.items(), strict=True):
        _coverage(panel, rows[rows["measure"] == measure], base[base["measure"] == measure], places)
        panel.set_xlabel(title)
    _attribution(axes[0, 2], rows, base, places)
    first = axes[0, 0]
    first.set_yticks([y for y, _ in labels], [text for _, text in labels])
    first.tick_params(axis="y", labelsize=6)
    tops: dict[str, float] = {}
    for (factor, _), y in places.items():
        tops.setdefault(factor, y)
    for factor, y in tops.items():
        first.text(-0.02, y + 0.75, NAMES[factor], transform=first.get_yaxis_transform(), ha="right", va="center",
                   fontsize=6.5, fontweight="bold")  # fmt: skip
    first.set_ylim(at - 0.8, 0.2 - 0.9 + 0.4)
    for panel in axes[0]:
        panel.grid(axis="y", visible=False)
    figure.legend(*first.get_legend_handles_labels(), loc="outside lower left", ncols=4, title_fontsize=6.5)
    handles = axes[0, 2].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower right", ncols=2)
    return figure


def _coverage(
    axes: Axes, rows: pd.DataFrame, base: pd.DataFrame, places: dict[tuple[str, str], float]
) -> None:
    for index, budget in enumerate(sorted(rows["budget"].unique())):
        some, look = rows[rows["budget"] == budget], style(index)
        y = [places[key] + 0.22 * (1 - index) for key in zip(some["factor"], some["value"], strict=True)]
        spread = _spread(some)
        axes.errorbar(some["estimate"], y, xerr=spread, label=f"budget {percent(float(budget))}", linestyle="none",
                      color=look["color"], marker=look["marker"], markersize=3, elinewidth=0.7)  # fmt: skip
        for value in base[base["budget"] == budget]["estimate"]:
            axes.axvline(value, color=look["color"], linewidth=0.6, linestyle=":")
    axes.axvline(0.95, color=BLACK, linewidth=0.8, linestyle="--", label="nominal")
    shown = rows[rows["estimate"] >= OFF]
    axes.set_xlim(min(shown["estimate"].min(), shown["low"].min(), 0.9) - 0.02, 1.01)
    off = rows[rows["estimate"] < OFF].sort_values("budget")
    for (factor, choice), at in places.items():
        some = off[(off["factor"] == factor) & (off["value"] == choice)]
        if len(some):
            text = "◀ " + ", ".join(f"{value:.2f}" for value in some["estimate"])
            axes.text(0.01, at, text, transform=axes.get_yaxis_transform(), va="center", fontsize=5.5)


def _attribution(
    axes: Axes, rows: pd.DataFrame, base: pd.DataFrame, places: dict[tuple[str, str], float]
) -> None:
    for index, form in enumerate(("pooled", "conditional")):
        some, look = rows[rows["measure"] == f"AUC {form}"], style(index + 3)
        y = [places[key] + 0.15 * (1 - 2 * index) for key in zip(some["factor"], some["value"], strict=True)]
        axes.errorbar(some["estimate"], y, xerr=_spread(some), label=f"AUC {form}", linestyle="none",
                      color=look["color"], marker=look["marker"], markersize=3, elinewidth=0.7)  # fmt: skip
        for value in base[base["measure"] == f"AUC {form}"]["estimate"]:
            axes.axvline(value, color=look["color"], linewidth=0.6, linestyle=":")
    axes.axvline(0.5, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_xlabel("attribution AUC (C6)")


def _spread(rows: pd.DataFrame) -> list[pd.Series]:
    low, high = rows["low"].fillna(rows["estimate"]), rows["high"].fillna(rows["estimate"])
    return [(rows["estimate"] - low).clip(lower=0), (high - rows["estimate"]).clip(lower=0)]
