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


def publish(results: Path, figures: Path, name: str) -> list[Path]:
    """Write the figure ({figures}/{stem}.pdf, .png) and the table ({results}/tables/{stem}.csv, .md, .tex) of an exhibit."""
    from kvcert.paper.figures.style import house_style, save

    found, stem = load(results, name), EXHIBIT_STEMS[name]
    module = import_module(f"kvcert.paper.exhibits.{stem.lower()}")
    paths = write(module.table(found), Path(results) / "tables", stem, f"{name}: {found.outcome['title']}.")
    with house_style():
        return paths + save(module.draw(found), Path(figures), stem)
