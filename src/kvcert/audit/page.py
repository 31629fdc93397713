"""The verdict page of a bundle: Markdown, and the same as one HTML file that needs no network."""

from __future__ import annotations

import json
from typing import Any

from kvcert.document import as_html, block, cell, grid

NONE = "–"


def number(value: Any, digits: int = 4) -> str:
    """A number for people; `–` for none."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return str(value)


def markdown(claim: dict[str, Any], derived: dict[str, Any], provenance: dict[str, Any]) -> str:
    """The page of one claim from its JSON, the second computation and the provenance."""
    second, registration = derived["second"], claim["registration"]
    status = str(registration["status"])
    mark = "" if status == "registered" else " — exploratory, not the registered grid"
    verdict = f"**{claim['verdict']}**{', decisive' if claim['decisive'] else ', not decisive'}"
    head = [
        f"# {claim['claim']} {claim['title']}: {claim['verdict']}{mark}",
        f"Verdict: {verdict}. The paper: {claim['paper_verdict']}, {claim['paper_value']}. "
        f"Scored as *{status}* under registration `{registration['sha256']}`"
        f"{_amended(registration)}.",
        "## What was registered",
        f"{claim['statement']}\n\nStatistic: {claim['definition']}\n\nKilled when: {claim['kill_condition']}",
    ]
    if claim["reasons"]:
        head.append("Reasons: " + "; ".join(map(str, claim["reasons"])) + ".")
    body = ["## The registered lines, computed twice", _parts(claim, second)]
    body += ["## Negative controls", _controls(derived["controls"]["controls"])]
    body += ["## Without one task", _without(second), "## With another line", _moved(second)]
    if second["fail_below"]:
        body += ["## With another failure threshold for every task", _fail_below(second)]
    body += ["## Every stratum", _strata(claim, second)]
    body += ["## Runs", *(_example(entry) for entry in derived["examples"]["examples"])]
    body += ["## Provenance", block(json.dumps(provenance, indent=1, sort_keys=True, ensure_ascii=False))]
    return "\n\n".join([*head, *body]) + "\n"


def page(claim: dict[str, Any], text: str) -> str:
    """The HTML of the page."""
    return as_html(f"{claim['claim']} {claim['title']}", text)


def _amended(registration: dict[str, Any]) -> str:
    chain = registration.get("amendments") or {}
    return f", {chain['count']} amendments up to `{chain['head']}`" if chain.get("count") else ""


def _parts(claim: dict[str, Any], second: dict[str, Any]) -> str:
    rows = []
    for part in claim["parts"]:
        error = second["jackknife_error"].get(part["name"])
        rows.append([
            part["name"], part["label"], number(part["value"], 6), number(second["parts"].get(part["name"]), 6),
            f"[{number(part['ci_low'])}, {number(part['ci_high'])}]", number(error),
            f"{part['direction']} {part['threshold']:g}", number(part["passed"]), part["role"],
        ])  # fmt: skip
    heads = [
        "line",
        "what",
        "scored",
        "second computation",
        "95 % interval",
        "jackknife error",
        "passes",
        "passed",
        "role",
    ]
    return grid(heads, rows) if rows else "No line has a value on these logs."


def _controls(entries: list[dict[str, Any]]) -> str:
    rows = [
        [e["control"], e["figure"] or NONE, number(e.get("expected")), number(e.get("mean")), number(e.get("sd")),
         number(e.get("observed")), number(e.get("reached")), number(e["behaved"]), e["note"]]
        for e in entries
    ]  # fmt: skip
    heads = [
        "control",
        "figure",
        "expected",
        "mean",
        "sd",
        "unshuffled",
        "share of rounds that reached it",
        "behaved",
        "what",
    ]
    return grid(heads, rows)


def _without(second: dict[str, Any]) -> str:
    rows = [
        [task, name, number(value)]
        for task, parts in second["without_task"].items()
        for name, value in parts.items()
    ]
    return grid(["left out", "line", "value"], rows) if rows else "No rows."


def _moved(second: dict[str, Any]) -> str:
    rows = [[entry["part"], f"{entry['line']:g}", number(entry["passes"])] for entry in second["line_moved"]]
    return grid(["line", "moved to", "would pass"], rows) if rows else "No line has a value."


def _fail_below(second: dict[str, Any]) -> str:
    rows = [
        [line, name, number(value)]
        for line, parts in second["fail_below"].items()
        for name, value in parts.items()
    ]
    return grid(["fails below", "line", "value"], rows)


def _strata(claim: dict[str, Any], second: dict[str, Any]) -> str:
    again = {(s["by"], s["name"], s["measure"]): s["value"] for s in second["strata"]}
    rows = [
        [s["by"], s["name"], s["measure"], number(s["value"]), number(again.get((s["by"], s["name"], s["measure"]))),
         f"[{number(s['ci_low'])}, {number(s['ci_high'])}]", number(s["n_runs"]), number(s["n_clusters"])]
        for s in claim["strata"]
    ]  # fmt: skip
    heads = ["by", "name", "measure", "scored", "second computation", "95 % interval", "runs", "examples"]
    return grid(heads, rows) if rows else "None."


def _example(entry: dict[str, Any]) -> str:
    trace = [
        [number(step[k]) for k in ("step", "logp", "certificate", "error", "covered")]
        for step in entry["trace"]
    ]
    told = {key: entry[key] for key in ("accepted", "answer", "answer_full_cache")}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in told.items()]
    scores = f"score {number(entry['score'])}, full cache {number(entry['score_full_cache'])}"
    facts = f"{scores}, prompt `{entry['prompt_sha256']}`"
    return "\n\n".join([
        f"### {cell(entry['way'])}: {cell(entry['run_id'])}", facts, block("\n".join(lines)),
        grid(["step", "log-probability", "certificate", "true error", "covered"], trace),
    ])  # fmt: skip
