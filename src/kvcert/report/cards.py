"""Verdict cards: one claim each, our value beside the paper's, and under which registration it was scored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvcert import registry
from kvcert.paper.claims_json import finite, paper_text
from kvcert.paper.console import MARKS, interval, number, short_title
from kvcert.paper.logs import CLAIMS

REGISTERED, EXPLORATORY = "registered", "exploratory"


@dataclass(frozen=True)
class Card:
    """A claim as the page shows it; every field is text for people, or None where there is nothing to say."""

    key: str
    title: str
    statement: str
    definition: str
    kill: str
    kind: str
    mark: str
    verdict: str
    label: str
    value: str
    interval: str
    threshold: str
    counts: str
    paper: str
    paper_value: str
    agrees: str
    decisive: str
    status: str
    sha256: str | None
    reasons: list[str]
    readings: list[str]
    parts: list[dict[str, str]]


def cards(claims: dict[str, dict[str, Any]], standing: str) -> list[Card]:
    """Cards of the scored claims, in order.

    Parameters
    ----------
    claims : the claims' JSON by identifier.
    standing : `registered` when the configuration at hand is the frozen one. A claim is shown as registered only
        when its own file says so *and* the configuration is: an exploratory run is never shown as more.
    """
    return [_card(key, claims[key], standing) for key in CLAIMS if key in claims]


def tally(listed: list[Card]) -> str:
    """`2 survived, 5 killed; 3 of 7 agree with the paper`: the page in one line."""
    kinds = [(kind, sum(card.kind == kind for card in listed)) for kind in MARKS]
    words = ", ".join(f"{count} {kind}" for kind, count in kinds if count)
    same = sum(card.agrees == "yes" for card in listed)
    return f"{words}; {same} of {len(listed)} agree with the paper"


def standing(root: Path, config: dict[str, Any]) -> str:
    """`registered` or `exploratory`, for the configuration at hand."""
    return registry.status(Path(root), config)


def _card(key: str, claim: dict[str, Any], run: str) -> Card:
    verdict = str(claim.get("verdict") or "not-run")
    doubt = (
        "" if claim.get("decisive") or not verdict.startswith(("survived", "killed")) else ", not decisive"
    )
    kind = verdict.split()[0] if verdict.split()[0] in MARKS else "not-run"
    registration = claim.get("registration") or {}
    return Card(
        key=key, title=short_title(claim), statement=str(claim.get("statement") or ""),
        definition=str(claim.get("definition") or ""), kill=str(claim.get("kill_condition") or ""),
        kind=kind, mark=MARKS[kind][0], verdict=verdict + doubt, label=str(claim.get("statistic") or ""),
        value=number(claim.get("value")), interval=interval(claim.get("ci_low"), claim.get("ci_high")),
        threshold=_line(claim), counts=f"{claim.get('n_runs') or 0:,} runs, {claim.get('n_clusters') or 0:,} examples",
        paper=paper_text(claim), paper_value=str(claim.get("paper_value") or "–"),
        agrees={True: "yes", False: "no", None: "no verdict to compare"}[claim.get("agrees")],
        decisive="yes" if claim.get("decisive") else "no",
        status=REGISTERED if run == registration.get("status") == REGISTERED else EXPLORATORY,
        sha256=registration.get("sha256"),
        reasons=[str(line) for line in claim.get("reasons") or []],
        readings=[str(line) for line in claim.get("our_reading") or []],
        parts=[_part(part) for part in claim.get("parts") or []],
    )  # fmt: skip


def _line(claim: dict[str, Any]) -> str:
    threshold = finite(claim.get("threshold"))
    return "–" if threshold is None else f"{_sign(claim.get('direction'))} {number(threshold, 2)}"


def _sign(direction: Any) -> str:
    return {">=": "≥", "<=": "≤"}.get(str(direction), str(direction or ""))


def _part(part: dict[str, Any]) -> dict[str, str]:
    passed = part.get("passed")
    return {
        "name": str(part.get("name")), "label": str(part.get("label") or ""),
        "value": number(part.get("value")), "interval": interval(part.get("ci_low"), part.get("ci_high")),
        "threshold": _line(part), "role": str(part.get("role") or ""),
        "held": "–" if passed is None else "held" if passed else "not held",
    }  # fmt: skip
