"""The catalogue's figures as SVG elements of the page."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from kvcert.paper.catalogue import ALL_FIGURES, figures
from kvcert.paper.figures import svg
from kvcert.paper.logs import Logs
from kvcert.report.vector import inline

#: Figure → table that holds the same numbers, for whoever cannot see the drawing.
NUMBERS = {
    "verdicts": "verdicts", "coverage": "coverage", "accuracy": "accuracy", "attribution": "attribution",
    "certificate_error": "coverage", "ess_coverage": "coverage",
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """One drawing with its name, caption and the table beside it (or None)."""

    stem: str
    title: str
    caption: str
    svg: Markup
    table: str | None


def pictures(logs: Logs) -> list[Picture]:
    """Every figure of the catalogue, drawn from the logs and the scores."""
    return [
        Picture(
            stem=stem,
            title=stem.replace("_", " ").capitalize(),
            caption=ALL_FIGURES[stem],
            # The drawing is ours, element by element; its texts went through an XML writer.
            svg=Markup(inline(svg(logs, stem), f"{stem}-", ALL_FIGURES[stem])),
            table=NUMBERS.get(stem),
        )
        for stem in figures(logs.tasks)
    ]
