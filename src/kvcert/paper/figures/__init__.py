"""Every figure of the catalogue, one file each: `kvcert.paper.figures.{stem}.draw(logs)` returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError
from kvcert.paper.catalogue import ALL_FIGURES
from kvcert.paper.catalogue import figures as promised
from kvcert.paper.claims_json import exploratory
from kvcert.paper.logs import Logs


def draw(results: Path | Logs, stem: str, figures: Path) -> list[Path]:
    """Draw one figure as {figures}/{stem}.pdf and .png; returns the two paths.

    Raises
    ------
    KvcertError
        When there is no such figure, or a Parquet file or a claim's JSON cannot be read.
    """
    if stem not in ALL_FIGURES:
        raise KvcertError(f"no figure {stem!r}; there are {', '.join(ALL_FIGURES)}")
    from kvcert.paper.figures.style import house_style, save

    logs = results if isinstance(results, Logs) else Logs(Path(results))
    with house_style():
        return save(_drawn(logs, stem), Path(figures), stem)


def _drawn(logs: Logs, stem: str) -> Any:
    """The figure; stamped where its claims were not scored as registered."""
    from kvcert.paper.figures.style import stamp

    figure, warning = import_module(f"kvcert.paper.figures.{stem}").draw(logs), exploratory(logs.claims)
    if warning:
        stamp(figure, warning)
    return figure


def svg(logs: Logs, stem: str) -> str:
    """One figure as an SVG document, letters as outlines: for the report, not among the promised files."""
    if stem not in ALL_FIGURES:
        raise KvcertError(f"no figure {stem!r}; there are {', '.join(ALL_FIGURES)}")
    from kvcert.paper.figures.style import house_style, svg_text

    with house_style():
        return svg_text(_drawn(logs, stem))


def draw_all(
    results: Path, figures: Path, config: dict[str, Any] | None = None, stems: Sequence[str] | None = None
) -> list[Path]:
    """Draw every figure that the grid's tasks promise, or those named; the logs are read once.

    Parameters
    ----------
    results, figures : Path
        Folder of the logs and scores; folder to draw into.
    config : dict, optional
        The resolved configuration; it names the primary scorer, everything else is in the logs.
    stems : sequence of str, optional
        Figures to draw; all of them by default.
    """
    logs = Logs(Path(results), config)
    paths = []
    for stem in stems or promised(logs.tasks):
        paths += draw(logs, stem, figures)
    return paths
