"""The exhibits' outcomes on the console: expectation, line, value, interval, outcome."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from kvcert.errors import KvcertError
from kvcert.exhibits import EXHIBITS
from kvcert.exhibits.outcome import AS_EXPECTED, NOT_AS_EXPECTED, NOT_MEASURED
from kvcert.paper.console import plain_console
from kvcert.paper.exhibits import Found, load
from kvcert.paper.exhibits.words import MARKS, interval_of, line_of, value_of

COLORS = {AS_EXPECTED: "green", NOT_AS_EXPECTED: "red", NOT_MEASURED: "dim"}


def finished(results: Path) -> list[Found]:
    """The exhibits of these results that were measured, in order."""
    folder = Path(results) / "exhibits"
    return [load(results, name) for name in EXHIBITS if (folder / f"{name}.json").is_file()]


def outcome_table(found: list[Found]) -> Table:
    """Every expectation of the finished exhibits."""
    table = Table(
        title="Exhibits", title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for name in ("expectation", "line", "value", "interval", "outcome"):
        right = name in ("line", "value", "interval")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "expectation")
    for one in found:
        status = one.outcome["registration"]["status"]
        table.add_row(Text(f"{one.name}: {one.outcome['title']} ({status})", style="bold"))
        for entry in one.outcome["expectations"]:
            table.add_row(
                f"  {entry['statement']}", line_of(entry), value_of(entry), interval_of(entry),
                Text(f"{MARKS[entry['outcome']]} {entry['outcome']}", style=COLORS[entry["outcome"]]),
            )  # fmt: skip
    return table


def print_outcomes(results: Path, names: Sequence[str] = (), file: TextIO | None = None) -> None:
    """Print the outcomes of the finished exhibits, or of those named.

    Raises
    ------
    KvcertError when none was measured.
    """
    found = [one for one in finished(results) if not names or one.name in names]
    if not found:
        raise KvcertError(f"no exhibits in {results}/exhibits; run `snakemake --cores all exhibits` first")
    console = plain_console(file)
    console.print(outcome_table(found))
    for status in sorted({one.outcome["registration"]["status"] for one in found} - {"registered"}):
        names = ", ".join(one.name for one in found if one.outcome["registration"]["status"] == status)
        console.print(f"Measured while preregistration/exhibits.yaml was {status}: {names}.")


def require_controls(results: Path) -> None:
    """Print the controls and refuse when one did not do what it must; one that could not be measured is named only.

    Raises
    ------
    KvcertError naming the failed controls.
    """
    found = load(results, "controls")
    for entry in found.outcome["expectations"]:
        word = {AS_EXPECTED: "pass", NOT_AS_EXPECTED: "FAIL", NOT_MEASURED: "not measured"}[entry["outcome"]]
        print(f"{word:12s} {entry['statement']}: {value_of(entry)} ({line_of(entry)})")
    failed = [entry["id"] for entry in _failed(found.outcome)]
    if failed:
        raise KvcertError(f"negative controls failed, the instrument is broken: {', '.join(failed)}")


def _failed(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in outcome["expectations"] if entry["outcome"] == NOT_AS_EXPECTED]
