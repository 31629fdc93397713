"""The verdict table on the console."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kvcert.errors import KvcertError
from kvcert.paper.claims_json import exploratory, paper_text, registration_lines
from kvcert.paper.logs import CLAIMS, read_claims

#: Mark and colour of a verdict: told apart by the mark and the word, the colour only helps.
MARKS = {
    "survived": ("✓", "green"),
    "killed": ("✗", "red"),
    "underpowered": ("?", "yellow"),
    "not-run": ("–", "dim"),
}
#: Width used when the output is no terminal: a log file or a pipe.
PLAIN_WIDTH = 100


def number(value: Any, digits: int = 3) -> str:
    """A float for people: `0.974`, `−0.013`, `∞`, and `–` for none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):  # infinities are text in the claims' JSON
        value = float(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}f}".replace("-", "−")


def interval(low: Any, high: Any, digits: int = 3) -> str:
    """`[0.960, 0.981]`, or `–` when there is none."""
    if low is None or high is None:
        return "–"
    return f"[{number(low, digits)}, {number(high, digits)}]"


def mark(verdict: str | None) -> str:
    """`✓ survived`, `✗ killed (…)`: the first word decides the mark."""
    text = verdict or "not-run"
    return f"{MARKS.get(text.split()[0], ('?', ''))[0]} {text}"


def plain_console(file: TextIO | None = None) -> Console:
    """A console that stays at 100 columns where there is no terminal, and never wider than the terminal."""
    file = file or sys.stdout
    return Console(file=file, width=None if file.isatty() else PLAIN_WIDTH, highlight=False, soft_wrap=False)


def verdict_table(claims: dict[str, dict[str, Any]]) -> Table:
    """The seven verdicts as a rich table of at most 100 columns."""
    warning = exploratory(claims)
    table = Table(
        title=f"Verdicts ({warning})" if warning else "Verdicts",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for name in ("claim", "value", "95 % interval", "line", "runs", "verdict", "decisive", "paper"):
        right = name in ("value", "95 % interval", "line", "runs")
        table.add_column(name, justify="right" if right else "left", no_wrap=name not in ("claim", "verdict"))
    for key, claim in claims.items():
        verdict = claim.get("verdict") or "not-run"
        color = MARKS.get(verdict.split()[0], ("", ""))[1]
        same = (
            {True: "= ", False: "≠ "}.get(bool(claim["agrees"]), "")
            if claim.get("agrees") is not None
            else "  "
        )
        table.add_row(
            f"{key} {short_title(claim)}", number(claim.get("value")), interval(claim.get("ci_low"), claim.get("ci_high")),
            number(claim.get("threshold"), 2), f"{claim.get('n_runs') or 0:,}", Text(mark(verdict), style=color),
            "yes" if claim.get("decisive") else "no", same + paper_text(claim),
        )  # fmt: skip
    return table


def short_title(claim: dict[str, Any]) -> str:
    """The claim's title without its identifier."""
    title = str(claim.get("title") or "")
    key = str(claim.get("claim") or "")
    return title.removeprefix(key).lstrip(" :·-–—")


def print_verdicts(results: Path, file: TextIO | None = None) -> None:
    """Print the verdict table of a results folder to standard output.

    Raises
    ------
    KvcertError
        When no claim has been scored there.
    """
    claims = read_claims(Path(results))
    if not claims:
        raise KvcertError(
            f"no scored claims in {results}/claims; run `kvcert score` (or `make reproduce`) first"
        )
    console = plain_console(file)
    console.print(verdict_table(claims))
    missing = [key for key in CLAIMS if key not in claims]
    if missing:
        console.print(f"Not scored: {', '.join(missing)}.")
    console.print("line: the registered line nearest to killing the claim. paper: = same verdict, ≠ another.")
    for line in registration_lines(claims):
        console.print(line)
    console.print(f"Parts and strata: {results}/claims/C*.json")
