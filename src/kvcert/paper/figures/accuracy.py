"""Figure `accuracy`: mean task score by budget and policy, one panel per setting, with the full-cache line."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.figures.bars import categories, points, shifts
from kvcert.paper.figures.style import (
    BLACK,
    COLUMN,
    DOUBLE,
    POLICIES,
    SETTINGS,
    new_figure,
    nothing,
    percent,
    style,
)
from kvcert.paper.logs import Logs
from kvcert.paper.stats import cluster_mean, table_of_means

LABELS = {
    "poisson": "Poisson",
    "topk": "top-k",
    "random": "random tail",
    "streaming": "sinks + recent",
    "full": "full cache",
}


def draw(logs: Logs) -> Figure:
    """Means over examples; draws are averaged within an example, all tasks weigh by their examples."""
    free = logs.free
    if free.empty:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], "no valid free-running run")
        return figure
    settings = [name for name in SETTINGS if (free["setting"] == name).any()] or sorted(
        free["setting"].unique()
    )
    figure, axes = new_figure(
        DOUBLE if len(settings) > 1 else COLUMN, 2.8, columns=len(settings), sharey=True
    )
    scorers = free.groupby("policy")["scorer"].transform("nunique")
    free = free.assign(policy=free["policy"].where(scorers == 1, free["policy"] + ", " + free["scorer"]))
    evicted = free[free["policy"] != "full"]
    budgets = sorted(evicted["budget"].unique())
    policies = sorted(
        evicted["policy"].unique(),
        key=lambda name: (list(POLICIES).index(name) if name in POLICIES else 99, name),
    )
    for panel, setting in zip(axes[0], settings, strict=True):
        _panel(panel, free[free["setting"] == setting], policies, budgets)
        panel.set_title(SETTINGS.get(setting, setting))
    axes[0, 0].set_ylabel("mean task score")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def _panel(axes: Axes, free: pd.DataFrame, policies: list[str], budgets: list[float]) -> None:
    full = free[free["policy"] == "full"]
    if len(full):
        mean, low, high, _ = cluster_mean(full, "score")
        axes.axhline(mean, color=BLACK, linewidth=1, label=LABELS["full"])
        if low == low:  # not NaN
            axes.axhspan(low, high, color=BLACK, alpha=0.08, linewidth=0)
    table = table_of_means(free[free["policy"] != "full"], ["policy", "budget"], "score")
    for index, (policy, shift) in enumerate(zip(policies, shifts(len(policies)), strict=True)):
        color, shape, line = POLICIES.get(policy, tuple(style(index + 5).values()))
        look = {"color": color, "marker": shape, "linestyle": line}
        points(
            axes, budgets, table[table["policy"] == policy], "budget", shift, look, LABELS.get(policy, policy)
        )
    if not budgets:
        nothing(axes, "no evicted run in this setting")
        return
    categories(axes, [percent(b) for b in budgets], "budget (kept share of the context, per KV head)")
