"""The finished exhibits as the page shows them: question, outcomes, figure, table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from kvcert.paper.catalogue import EXHIBIT_STEMS
from kvcert.paper.exhibits import module, svg, warning
from kvcert.paper.exhibits.console import finished
from kvcert.paper.exhibits.words import MARKS, facts_of, interval_of, line_of, value_of
from kvcert.report.sheets import Sheet, sheet
from kvcert.report.vector import inline


@dataclass(frozen=True)
class Shown:
    """One exhibit: every field is text for people, but the drawing and the table."""

    name: str
    title: str
    question: str
    warning: str
    facts: str
    lines: list[dict[str, str]]
    svg: Markup
    sheet: Sheet


def exhibits(results: Path) -> list[Shown]:
    """Every finished exhibit of these results, in order; none where none was measured."""
    found = []
    for one in finished(results):
        stem, outcome = EXHIBIT_STEMS[one.name], one.outcome
        lines = [
            {"statement": entry["statement"], "line": line_of(entry), "value": value_of(entry),
             "interval": interval_of(entry), "outcome": entry["outcome"], "mark": MARKS[entry["outcome"]],
             "note": entry["note"]}
            for entry in outcome["expectations"]
        ]  # fmt: skip
        label = f"{one.name}: {outcome['title']}"
        found.append(
            Shown(
                one.name, outcome["title"], outcome["question"], warning(one), facts_of(outcome["about"]), lines,
                # The drawing is ours, element by element; its texts went through an XML writer.
                Markup(inline(svg(one), f"{stem}-", label)),
                sheet(module(one.name).table(one), stem, label),
            )
        )  # fmt: skip
    return found
