"""Tables and figures of the exhibits, one file each: `kvcert.paper.exhibits.<name>.draw(found)` and `.table(found)`.

Drawn from `results/exhibits/` alone; no torch here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from kvcert.errors import KvcertError
from kvcert.paper.catalogue import EXHIBIT_STEMS
from kvcert.paper.render import write


@dataclass(frozen=True)
class Found:
    """A finished exhibit: its outcome, and its rows by part."""

    folder: Path
    name: str
    outcome: dict[str, Any]

    def rows(self, part: str = "") -> pd.DataFrame:
        """The rows of one part."""
        return pd.read_parquet(self.folder / f"{self.name}{'.' if part else ''}{part}.parquet")

    def value(self, expectation: str) -> dict[str, Any]:
        """One expectation with its outcome."""
        return next(entry for entry in self.outcome["expectations"] if entry["id"] == expectation)


def load(results: Path, name: str) -> Found:
    """A finished exhibit of these results.

    Raises
    ------
    KvcertError when it was not run, or its outcome cannot be read.
    """
    path = Path(results) / "exhibits" / f"{name}.json"
    try:
        return Found(path.parent, name, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise KvcertError(f"{path}: cannot be read ({error}); run `snakemake --cores all exhibits`") from None


def warning(found: Found) -> str:
    """What a reader must be told when the exhibit was not measured as registered; empty otherwise."""
    status = found.outcome["registration"]["status"]
    return "" if status in ("registered", "amended") else f"exhibits.yaml was {status} when this was measured"


def module(name: str) -> Any:
    """The file that draws an exhibit: `table(found)` and `draw(found)`."""
    return import_module(f"kvcert.paper.exhibits.{EXHIBIT_STEMS[name].lower()}")


def drawn(found: Found) -> Any:
    """The figure, stamped where the exhibit was not measured as registered. Call it inside the house style."""
    from kvcert.paper.figures.style import stamp

    figure = module(found.name).draw(found)
    if warning(found):
        stamp(figure, warning(found))
    return figure


def publish(results: Path, figures: Path, name: str) -> list[Path]:
    """Write the figure ({figures}/{stem}.pdf, .png) and the table ({results}/tables/{stem}.csv, .md, .tex) of an exhibit."""
    from kvcert.paper.figures.style import house_style, save

    found, stem = load(results, name), EXHIBIT_STEMS[name]
    caption = f"{name}: {found.outcome['title']}. {warning(found).capitalize()}".rstrip(". ") + "."
    paths = write(module(name).table(found), Path(results) / "tables", stem, caption)
    with house_style():
        return paths + save(drawn(found), Path(figures), stem)


def svg(found: Found) -> str:
    """The figure as an SVG document, for the report."""
    from kvcert.paper.figures.style import house_style, svg_text

    with house_style():
        return svg_text(drawn(found))
