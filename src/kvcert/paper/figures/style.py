"""One look for every figure: Okabe–Ito colours, a marker beside every colour, column widths, reproducible bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kvcert.files import replacing

COLUMN, DOUBLE = 3.4, 7.0  # inches: one column, two columns
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#777777"
#: Colour, marker and line in this order for tasks, rivals and other open-ended lists: never told apart by colour only.
CYCLE = (
    (BLUE, "o", "-"), (RED, "s", "--"), (GREEN, "^", "-."), (PURPLE, "D", ":"),
    (ORANGE, "v", (0, (5, 1))), (SKY, "P", (0, (3, 1, 1, 1))), (BLACK, "X", (0, (1, 1))), (GREY, "*", (0, (7, 2))),
)  # fmt: skip
VERDICTS = {
    "survived": (GREEN, "o", "✓ survived"),
    "killed": (RED, "X", "✗ killed"),
    "underpowered": (ORANGE, "s", "? underpowered"),
    "not-run": (GREY, "D", "– not run"),
}
POLICIES = {
    "poisson": (BLUE, "o", "-"), "topk": (RED, "s", "--"), "random": (PURPLE, "D", ":"),
    "streaming": (ORANGE, "v", "-."), "full": (BLACK, "*", "-"),
    "mixture": (SKY, "P", "-"), "uniform": (GREEN, "^", "-."), "uncorrected": (GREY, "X", ":"),
    "adakv": (GREEN, "h", "--"), "lru": (BLACK, "<", ":"),
}  # fmt: skip
SETTINGS = {"aware": "question-aware", "streaming": "streaming"}

RC: Any = {
    "font.size": 7.5, "axes.titlesize": 8, "axes.labelsize": 7.5, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 6.5, "legend.frameon": False, "legend.handlelength": 3.0,
    "lines.linewidth": 1.2, "lines.markersize": 4,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd",
    "grid.linewidth": 0.5, "axes.axisbelow": True, "pdf.fonttype": 42, "pdf.compression": 9,
    "font.family": "DejaVu Sans", "figure.dpi": 100, "savefig.dpi": 220, "path.simplify": True,
}  # fmt: skip


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib defaults of the project, whatever the user's own matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """A figure of `width` × `height` inches with a grid of axes (always a 2-D array), laid out without overlaps."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def style(index: int) -> dict[str, Any]:
    """Colour, marker and line number `index` of an open-ended list."""
    color, marker, line = CYCLE[index % len(CYCLE)]
    return {"color": color, "marker": marker, "linestyle": line}


def nothing(axes: Axes, reason: str) -> None:
    """Say in words why a panel holds no data, instead of leaving empty axes."""
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, f"nothing to show:\n{reason}", ha="center", va="center", transform=axes.transAxes, color=GREY,
        fontsize=7.5, style="italic", wrap=True,
    )  # fmt: skip


def stamp(figure: Figure, text: str) -> None:
    """A line of its own above everything: what this figure must not be taken for."""
    height = figure.get_figheight()
    strip = 0.16 / height
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.set(rect=(0, 0, 1, 1 - strip))  # type: ignore[call-arg]
    figure.text(0.995, 1 - 0.02 / height, text, ha="right", va="top", fontsize=6.5, color=RED)


def percent(value: float) -> str:
    """0.125 → `12.5 %`."""
    return f"{100 * value:g} %"


def save(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write {folder}/{stem}.pdf and .png, each whole or not at all, without dates: equal logs give equal bytes."""
    paths = []
    dateless = {"CreationDate": None, "ModDate": None, "Producer": "matplotlib", "Creator": "kvcert"}
    for suffix, metadata in ((".pdf", dateless), (".png", {"Software": "kvcert"})):
        path = Path(folder) / f"{stem}{suffix}"
        with replacing(path) as temporary:
            figure.savefig(temporary, format=suffix[1:], metadata=metadata)
        paths.append(path)
    return paths


def svg_text(figure: Figure) -> str:
    """The figure as an SVG document without a date and with the same ids every time."""
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "kvcert", "savefig.dpi": 144}):
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()
