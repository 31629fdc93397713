"""X1: what the user sees, what is true, and what a certificate from a sampled tail says."""

from __future__ import annotations

from typing import Any

import pandas as pd

from kvcert.paper.exhibits import Found
from kvcert.paper.render import Table

ORDER = ("none", "scale", "shift", "permutation", "rotation", "sign")
KEY = ["design", "scorer", "value_aware", "alteration", "factor"]
DESIGNS = {
    "topk": "Deterministic top-k:\nevicted values altered",
    "poisson": "Poisson: altered set\nfixed before the draw",
    "adversary": "Poisson: adversary\nwho saw the draw",
}


def table(found: Found) -> Table:
    """One row per design, score and alteration: hashes unchanged, growth of error and radius, coverage."""
    runs, heads, steps = found.rows(), found.rows("heads"), found.rows("steps")
    frame = runs.groupby(KEY, sort=False).agg(
        runs=("same", "size"), same=("same", "mean"), selection=("selection_same", "mean")
    )
    frame["error_factor"] = heads.groupby(KEY)["error_factor"].median()
    frame["radius_factor"] = heads.groupby(KEY)["radius_factor"].median()
    frame["covered"] = steps.groupby(KEY)["covered"].mean()
    frame["covered_heads"] = heads.groupby(KEY)["covered"].mean()
    frame = frame.reset_index()
    certain = frame["design"] == "topk"  # no design, no certificate: nothing that could cover
    for column in ("radius_factor", "covered", "covered_heads"):
        frame[column] = frame[column].mask(certain)
    frame = frame.sort_values(
        KEY, key=lambda c: c.map({name: i for i, name in enumerate(ORDER)}) if c.name == "alteration" else c,
        kind="stable", ignore_index=True,
    )  # fmt: skip
    titles = {
        "design": "design", "scorer": "score", "value_aware": "value-aware", "alteration": "alteration", "factor": "by",
        "runs": "runs", "same": "same SHA-256", "selection": "same selection", "error_factor": "error ×",
        "radius_factor": "radius ×", "covered": "panel covered", "covered_heads": "heads covered",
    }  # fmt: skip
    return Table(frame, titles, digits={"factor": -1, "error_factor": 2, "radius_factor": 2})


def draw(found: Found) -> Any:
    """Three panels, one per design: error, certificate and hash of everything retained, by size of the alteration."""
    from kvcert.paper.figures.style import BLUE, DOUBLE, RED, new_figure

    heads, runs = found.rows("heads"), found.rows()
    score = runs[runs["design"] == "poisson"]["scorer"].iloc[0]
    heads = heads[(heads["scorer"] == score) & ~heads["value_aware"]]
    figure, axes = new_figure(DOUBLE, 3.1, 1, 3, sharey=True)
    unit = heads[(heads["design"] == "topk") & (heads["alteration"] == "none")]["error"].median()
    covered = {entry["id"]: entry["value"] for entry in found.outcome["expectations"]}
    for axis, (design, title) in zip(axes[0], DESIGNS.items(), strict=True):
        for kind, line, marker in (("scale", "-", "o"), ("shift", "--", "s")):
            curve = medians(heads, design, kind) / unit
            look = {"linestyle": line, "marker": marker}
            axis.plot(curve.index, curve["error"], color=RED, label=f"true error, {kind}", **look)
            if design != "topk":
                hollow = look | {"markerfacecolor": "white", "label": f"certificate, {kind}"}
                axis.plot(curve.index, curve["radius"], color=BLUE, **hollow)
        whose = "missed" if design == "adversary" else "evicted"
        axis.set(xscale="log", yscale="log", title=title, xlabel=f"{whose} values altered by this factor")
        same = _hashes(axis, runs, design, score)
        words = "SHA-256 of all that is kept and put out: " + ("\nnever moves" if same else "\nmoves")
        share = covered.get(f"x1.{design}_coverage")
        words += "\n(there is no certificate)" if share is None else f"\nsteps covered: {share:.2f}"
        axis.text(0.03, 0.98, words, transform=axis.transAxes, va="top", fontsize=6.5)
    low, high = axes[0][0].get_ylim()
    axes[0][0].set(ylim=(low, 30 * high), ylabel="median per head and step\n(unaltered top-k error = 1)")
    figure.legend(*axes[0][1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def medians(heads: pd.DataFrame, design: str, kind: str) -> pd.DataFrame:
    """Median error and radius by factor, from the unaltered run (factor 1) on."""
    some = heads[(heads["design"] == design) & heads["alteration"].isin(["none", kind])]
    return some.groupby("factor")[["error", "radius"]].median()


def _hashes(axis: Any, runs: pd.DataFrame, design: str, score: str) -> bool:
    """Under each factor the first digits of one run's SHA-256 (scaling, first example and setting); are they equal?"""
    some = runs[(runs["design"] == design) & (runs["scorer"] == score) & ~runs["value_aware"]]
    first = some.iloc[0]
    for name in ("task", "example", "setting"):
        some = some[some[name] == first[name]]
    some = some[some["alteration"].isin(["none", "scale"])].drop_duplicates("factor").sort_values("factor")
    axis.set_xticks(some["factor"].tolist())
    labels = [f"×{factor:g}\n{sha[:5]}…" for factor, sha in zip(some["factor"], some["sha256"], strict=True)]
    axis.set_xticklabels(labels, fontsize=6)
    axis.minorticks_off()
    return bool(some["same"].all())
