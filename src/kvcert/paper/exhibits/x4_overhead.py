"""X4: time with the certificate over time without, by context length, rows and backend."""

from __future__ import annotations

from typing import Any

from kvcert.paper.exhibits import Found
from kvcert.paper.render import Table

WHAT = {"kernel": "one attention call", "step": "one decode step of the model"}
NAMES = {"cpu": "compiled CPU", "torch": "torch expression", "cuda": "CUDA"}


def table(found: Found) -> Table:
    """One row per cell: milliseconds and ratios."""
    frame = found.rows()
    titles = {
        "what": "what", "backend": "backend", "rows": "rows", "tokens": "tokens", "on_ms": "with, ms",
        "off_ms": "without, ms", "two_pass_ms": "two passes, ms", "ratio": "with / without",
        "two_pass_ratio": "two passes / with",
    }  # fmt: skip
    digits = {"ratio": 2, "two_pass_ratio": 2}
    return Table(frame, {name: title for name, title in titles.items() if name in frame}, digits)


def draw(found: Found) -> Any:
    """Two panels: an attention call and a decode step; the paper's two as a line."""
    from kvcert.paper.figures.style import DOUBLE, GREY, new_figure, style

    frame, paper = found.rows(), found.outcome["about"]["paper"]
    figure, axes = new_figure(DOUBLE, 2.9, 1, 2, sharey=True, width_ratios=[2, 1])
    for axis, (what, title) in zip(axes[0], WHAT.items(), strict=True):
        some = frame[frame["what"] == what]
        lengths = sorted(some["tokens"].unique())
        pairs = some[["backend", "rows"]].drop_duplicates().itertuples(index=False)
        for number, (backend, rows) in enumerate(pairs):
            cell = some[(some["backend"] == backend) & (some["rows"] == rows)].sort_values("tokens")
            label = f"{NAMES[backend]}, {rows} row{'s' if rows > 1 else ''}"
            axis.plot([lengths.index(n) for n in cell["tokens"]], cell["ratio"], label=label, **style(number))
        axis.axhline(1, color="black", linewidth=0.8)
        axis.axhline(paper, color=GREY, linestyle="--", linewidth=1)
        axis.set(
            title=title.capitalize(),
            xlabel="tokens in the cache",
            yscale="log",
            xlim=(-0.4, len(lengths) - 0.6),
        )
        axis.set_xticks(range(len(lengths)), [f"{n:,}" for n in lengths])
        axis.minorticks_off()
    left = axes[0][0]
    place = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "fontsize": 6.5,
        "color": GREY,
    }
    axes[0][1].annotate(f"the paper's own: about {paper:g}", (0.0, paper), xytext=(3, 2), **place)
    bottom, top = (
        min(0.8, 0.9 * float(frame["ratio"].min())),
        max(3.0, 1.3 * float(frame["ratio"].max())),
    )
    ticks = [tick for tick in (0.5, 0.8, 1, 1.5, 2, 3, 5, 10, 20, 50) if bottom <= tick <= top]
    left.set(ylim=(bottom, top), ylabel="time with the certificate / without")
    left.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    left.set_title(found.outcome["about"]["machine"], loc="left", fontsize=5.5, color=GREY, y=1.12)
    return figure
