"""Score claims from the logs, hold them against the registered lines and write JSON and the verdict table."""

from __future__ import annotations

import csv
import dataclasses
import importlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvcert import registry
from kvcert.claims import frames
from kvcert.claims.bootstrap import Plan
from kvcert.claims.outcome import Outcome, as_json
from kvcert.errors import KvcertError
from kvcert.files import write_atomic

MODULES = {
    "C1": "c1_coverage", "C2": "c2_parity", "C3": "c3_damage", "C4": "c4_prediction", "C5": "c5_escalation",
    "C6": "c6_attribution", "C7": "c7_scheduling",
}  # fmt: skip
#: Columns of results/verdicts.csv, in this order.
COLUMNS = (
    "claim", "title", "statistic", "value", "ci_low", "ci_high", "n_runs", "n_clusters", "threshold", "verdict", "decisive",
    "paper_value", "paper_verdict", "agrees",
)  # fmt: skip
Scorer = Callable[[frames.Study, dict[str, Any], Plan], Outcome]


def score_all(results: Path, root: Path, config: dict[str, Any]) -> list[dict[str, Any]]:
    """Score C1 to C7; write results/claims/C*.json and results/verdicts.csv.

    Parameters
    ----------
    results : folder with `runs`, `steps`, `heads` and the integrity gate's report.
    root : folder of the project, with `preregistration/`.
    config : resolved configuration of these results.

    Raises
    ------
    KvcertError
        When a frozen file changed, the integrity gate was not passed, or a log file cannot be read.
    """
    return _score(tuple(MODULES), Path(results), Path(root), config)


def score_one(claim: str, results: Path, root: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Score one claim, write its JSON and renew its row in results/verdicts.csv."""
    if claim not in MODULES:
        raise KvcertError(f"unknown claim {claim!r}; the claims are {', '.join(MODULES)}")
    return _score((claim,), Path(results), Path(root), config)[0]


def _score(names: tuple[str, ...], results: Path, root: Path, config: dict[str, Any]) -> list[dict[str, Any]]:
    registration = registry.standing(root, config)
    claims = registry.load_claims(root)
    study = frames.load(results, config, claims["common"])
    interval = claims["common"]["interval"]
    plan = Plan(interval["level"], interval["resamples"], interval["seed"])
    scored = []
    for number, name in enumerate(MODULES):
        if name not in names:
            continue
        scorer: Scorer = importlib.import_module(f"kvcert.claims.{MODULES[name]}").score
        claim = claims["claims"][name]
        # Each claim has its own stream: scoring one alone gives the same interval as scoring all.
        outcome = scorer(study, claim, dataclasses.replace(plan, seed=plan.seed + number))
        content = as_json(claim, outcome, registration)
        write_atomic(
            results / "claims" / f"{name}.json", json.dumps(content, indent=1, allow_nan=False) + "\n"
        )
        scored.append(content)
    write_atomic(results / "verdicts.csv", table(results))
    return scored


def table(results: Path) -> str:
    """The verdict table as CSV, from the claims' JSON files that exist; missing values are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for name in MODULES:
        path = results / "claims" / f"{name}.json"
        if path.is_file():
            content = json.loads(path.read_text())
            writer.writerow({key: "" if content[key] is None else content[key] for key in COLUMNS})
    return text.getvalue()
