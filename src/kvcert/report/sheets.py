"""The catalogue's tables as rows of cells that the page can sort: what people read, and the number behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kvcert.paper.catalogue import TABLE_CAPTIONS, TABLES
from kvcert.paper.logs import Logs
from kvcert.paper.render import Table, text
from kvcert.paper.tables import build


@dataclass(frozen=True)
class Cell:
    """What is shown, and the number to sort by where it is one."""

    text: str
    number: str | None


@dataclass(frozen=True)
class Sheet:
    """One table: headings with their alignment, and rows of cells."""

    stem: str
    title: str
    caption: str
    heads: list[tuple[str, bool]]
    rows: list[list[Cell]]


def sheets(logs: Logs) -> list[Sheet]:
    """Every table of the catalogue."""
    return [sheet(build(logs, stem), stem, TABLE_CAPTIONS[stem]) for stem in TABLES]


def sheet(table: Table, stem: str, caption: str) -> Sheet:
    """A table for people with the raw numbers kept beside the rounded ones."""
    names = table.shown()
    shown = table.frame if table.people is None else table.people
    raws = table.frame.loc[shown.index]  # people may be shown fewer rows than the CSV holds
    numeric = {name: is_numeric(raws[name]) for name in names}
    columns = [
        [
            Cell(text(value, table.digits.get(name, 3)), key(raw) if numeric[name] else None)
            for value, raw in zip(shown[name], raws[name], strict=True)
        ]
        for name in names
    ]
    heads = [(table.titles[name], numeric[name]) for name in names]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Sheet(stem, stem.replace("_", " ").capitalize(), caption, heads, rows)


def is_numeric(column: pd.Series) -> bool:
    """Numbers are set flush right and sorted by value; truth values and text are neither."""
    return bool(pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column))


def key(value: Any) -> str | None:
    """The number as JavaScript reads it; None for a missing one, which sorts last."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    number = float(value)
    return repr(number) if math.isfinite(number) else ("Infinity" if number > 0 else "-Infinity")
