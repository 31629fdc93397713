"""Every table of the catalogue: build it from the logs and scores, write it as CSV, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError
from kvcert.paper import table_coverage, table_logs, table_scores
from kvcert.paper.catalogue import TABLE_CAPTIONS, TABLES
from kvcert.paper.claims_json import exploratory
from kvcert.paper.logs import Logs
from kvcert.paper.render import Table, write

BUILDERS: dict[str, Callable[[Logs], Table]] = {
    "verdicts": table_scores.verdicts,
    "coverage": table_coverage.coverage,
    "accuracy": table_logs.accuracy,
    "attribution": table_scores.attribution,
    "failures": table_scores.failures,
    "cost": table_logs.cost,
    "summary": table_logs.summary,
}


def build(logs: Logs, stem: str) -> Table:
    """One table of the catalogue."""
    if stem not in BUILDERS:
        raise KvcertError(f"no table {stem!r}; there are {', '.join(TABLES)}")
    return BUILDERS[stem](logs)


def write_all(
    results: Path, config: dict[str, Any] | None = None, stems: Sequence[str] | None = None
) -> list[Path]:
    """Write {results}/tables/{stem}.csv, .md and .tex for every table, or for those named; returns the paths.

    Parameters
    ----------
    results : Path
        Folder of the logs and scores.
    config : dict, optional
        The resolved configuration; it names the primary scorer, everything else is in the logs.
    stems : sequence of str, optional
        Tables to write; all of them by default.

    Raises
    ------
    KvcertError
        When a name is unknown, or a Parquet file or a claim's JSON cannot be read.
    """
    logs = Logs(Path(results), config)
    paths = []
    warning = exploratory(logs.claims)
    for stem in stems or TABLES:
        table = build(logs, stem)
        caption = f"{TABLE_CAPTIONS[stem]} {warning.capitalize()}." if warning else TABLE_CAPTIONS[stem]
        paths += write(table, Path(results) / "tables", stem, caption)
    return paths
