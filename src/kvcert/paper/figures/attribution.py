"""Figure `attribution` (C6): ROC of telling cache-induced from inherent failures, the certificate and its rivals."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvcert.paper.claims_json import reason, strata
from kvcert.paper.figures.bars import legend_below
from kvcert.paper.figures.style import COLUMN, DOUBLE, GREY, SETTINGS, new_figure, nothing, style
from kvcert.paper.logs import Logs

RIVALS = {
    "certificate": "certificate", "confidence": "low confidence", "two_run": "two-run",
    "topk_confidence": "top-k's low confidence", "evicted_mass": "evicted mass",
    "budget": "budget alone", "task": "task alone",
}  # fmt: skip
FORMS = {
    "pooled": "pooled over tasks and budgets",
    "conditional": "conditional: inside one task × budget",
}


def draw(logs: Logs) -> Figure:
    """Pooled and conditional curves of the streaming setting, or of the other one where streaming has none."""
    claim = logs.claims.get("C6")
    curves = (claim or {}).get("curves") or {}
    setting = next((name for name in ("streaming", "aware", *curves) if curves.get(name)), None)
    if setting is None:
        figure, axes = new_figure(COLUMN, 2.0)
        nothing(axes[0, 0], reason(claim, "C6"))
        return figure
    figure, axes = new_figure(DOUBLE, 4.6, columns=2)
    table = strata(claim)
    table = table[(table["by"] == "setting") & (table["name"] == setting)].set_index("measure")["mean"]
    for panel, (form, title) in zip(axes[0], FORMS.items(), strict=True):
        _panel(panel, curves[setting], form, table.to_dict())
        panel.set_title(title)
    figure.suptitle(
        f"failures of the Poisson design, {SETTINGS.get(setting, setting)} (AUC in the legend)", fontsize=8
    )
    return figure


def _panel(axes: Axes, curves: dict[str, Any], form: str, areas: dict[str, float]) -> None:
    drawn = False
    for index, (rival, label) in enumerate(RIVALS.items()):
        curve = (curves.get(rival) or {}).get(form) or {}
        if not curve.get("fpr"):
            continue
        look = style(index) | {"linewidth": 1.8 if rival == "certificate" else 1.0}
        marks = [round(len(curve["fpr"]) * share) for share in (0.2, 0.4, 0.6, 0.8)]
        marks = sorted({min(at + 3 * index, len(curve["fpr"]) - 1) for at in marks})
        area = areas.get(f"{form}/{rival}", float("nan"))
        axes.plot(curve["fpr"], curve["tpr"], markevery=marks, label=f"{label}  {area:.2f}", **look)
        drawn = True
    if not drawn:
        nothing(
            axes, "no task × budget holds failures of both kinds" if form == "conditional" else "no curve"
        )
        return
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="inherent failures flagged (share)",
             ylabel="cache-induced failures flagged (share)")  # fmt: skip
    legend_below(axes, 0.45, 2)
