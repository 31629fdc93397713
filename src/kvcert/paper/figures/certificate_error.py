"""Figure `certificate_error`: every step's true error against its certificate, one panel per budget."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.claims_json import coverage_strata
from kvcert.paper.figures.style import BLACK, COLUMN, DOUBLE, new_figure, nothing, percent, style
from kvcert.paper.logs import Logs

#: More points than this are thinned evenly for the drawing; the printed numbers use all of them.
MOST_POINTS = 4000


def draw(logs: Logs) -> Figure:
    """Log–log, with the diagonal: a step below it is covered."""
    steps = logs.steps
    usable = steps[np.isfinite(steps["certificate"]) & (steps["certificate"] > 0) & (steps["error"] > 0)]
    if usable.empty:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(
            axes[0, 0],
            "no token-forced step with a finite certificate"
            if len(steps)
            else "no token-forced Poisson step",
        )
        return figure
    budgets = sorted(steps["budget"].unique())
    tasks = sorted(steps["cell"].unique())
    width = DOUBLE if len(budgets) > 1 else COLUMN
    figure, axes = new_figure(width, 2.75, columns=len(budgets), sharex=True, sharey=True)
    values = usable[["certificate", "error"]].to_numpy()
    low, high = values.min() / 1.5, values.max() * 1.5
    for panel, budget in zip(axes[0], budgets, strict=True):
        part = steps[steps["budget"] == budget]
        _panel(panel, usable[usable["budget"] == budget], tasks)
        text = f"{len(part):,} steps\n" + _scored(logs, budget, part)
        panel.text(0.03, 0.98, text, transform=panel.transAxes, va="top", fontsize=6.5, zorder=5)
        panel.plot([low, high], [low, high], color=BLACK, linewidth=0.9)
        panel.set(
            xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), title=f"budget {percent(budget)}"
        )
        panel.set_xlabel("certificate (relative radius)")
    axes[0, 0].set_ylabel("true relative error")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(tasks)), markerscale=1.6)
    return figure


def _panel(axes: Axes, usable: pd.DataFrame, tasks: list[str]) -> None:
    thin = usable.iloc[:: -(-len(usable) // MOST_POINTS)] if len(usable) else usable
    for index, task in enumerate(tasks):
        part = thin[thin["cell"] == task]
        look = style(index) | {"linestyle": "none"}
        axes.plot(part["certificate"], part["error"], markersize=2.2, alpha=0.45, markeredgewidth=0, rasterized=True,
                  label=task, **look)  # fmt: skip


def _scored(logs: Logs, budget: float, steps: pd.DataFrame) -> str:
    """C1's own figures for this budget, so that they are those of the table; plain shares where C1 is not scored."""
    found = coverage_strata(logs.claims.get("C1"))
    values = (
        found[(found["by"] == "budget") & (found["budget"] == budget)].set_index("measure")["mean"].to_dict()
    )
    covered = values.get("C1a", (steps["error"] <= steps["certificate"]).mean())
    rank = values.get("rank correlation", float("nan"))
    return f"covered {100 * covered:.1f} %" + (f"\nrank correlation {rank:.2f}" if rank == rank else "")
