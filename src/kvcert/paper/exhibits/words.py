"""An expectation of an exhibit in words: its line, its value, its interval; and the table that every exhibit has."""

from __future__ import annotations

from typing import Any

import pandas as pd

from kvcert.exhibits.outcome import AS_EXPECTED, NOT_AS_EXPECTED, NOT_MEASURED
from kvcert.paper.render import Table

MARKS = {AS_EXPECTED: "✓", NOT_AS_EXPECTED: "✗", NOT_MEASURED: "–"}
SIGNS = {"at_least": "≥", "at_most": "≤", "above": ">", "below": "<", "equal": "="}


def short(value: Any) -> str:
    """Three decimals for what is near one, three digits for the rest; `–` for nothing, `∞` for infinity."""
    if value is None:
        return "–"
    number = float(value)
    if number in (float("inf"), float("-inf")):
        return "∞" if number > 0 else "−∞"
    if number == 0 or number == int(number):
        return f"{int(number):,}".replace("-", "−")
    text = (
        f"{number:.3f}"
        if 0.01 <= abs(number) < 10
        else f"{number:,.1f}"
        if 10 <= abs(number) < 1e6
        else f"{number:.2g}"
    )
    return text.replace("-", "−")


def facts_of(about: dict[str, Any]) -> str:
    """What stands beside the outcome, in words: `model smollm2-135m; units 44,712; lengths 448, 640`."""
    return "; ".join(
        f"{name.replace('_', ' ')} {_said(value)}" for name, value in about.items() if value is not None
    )


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{name} {_said(inner)}" for name, inner in value.items()) + ")"
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value >= 10_000 else str(value)
    return short(value) if isinstance(value, float) else str(value)


def line_of(entry: dict[str, Any]) -> str:
    """`≥ 0.95`."""
    return f"{SIGNS[entry['direction']]} {short(entry['line'])}"


def value_of(entry: dict[str, Any]) -> str:
    """The value."""
    return short(entry["value"])


def interval_of(entry: dict[str, Any]) -> str:
    """`[0.91, 0.97]`, or `–`."""
    if entry["low"] is None or entry["high"] is None:
        return "–"
    return f"[{short(entry['low'])}, {short(entry['high'])}]"


def outcome_table(outcome: dict[str, Any]) -> Table:
    """The expectations of one exhibit as a table: the numbers in the CSV, words for people."""
    names = ("id", "statement", "direction", "line", "value", "low", "high", "n", "outcome", "note")
    frame = pd.DataFrame([{name: entry[name] for name in names} for entry in outcome["expectations"]])
    people = frame.assign(
        line=[line_of(entry) for entry in outcome["expectations"]],
        value=[value_of(entry) for entry in outcome["expectations"]],
        low=[interval_of(entry) for entry in outcome["expectations"]],
        outcome=[f"{MARKS[entry['outcome']]} {entry['outcome']}" for entry in outcome["expectations"]],
    )
    titles = {"statement": "expectation", "low": "interval"}
    titles |= {name: name for name in ("line", "value", "n", "outcome")}
    return Table(frame, titles, people=people)
