"""The registration as a document in the order of an OSF preregistration: Markdown, and one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvcert.config import load
from kvcert.document import as_html, grid
from kvcert.errors import KvcertError
from kvcert.files import write_atomic
from kvcert.registry.amendments import AMENDMENTS
from kvcert.registry.claims_file import CLAIMS, load_claims
from kvcert.registry.frozen import CONFIG, FILES, registered, unchanged

TITLE = "Error certificates for KV-cache eviction: a preregistered reproduction"


def export(root: Path, out: Path) -> list[Path]:
    """Write {out}/preregistration.md and .html and return their paths.

    Raises
    ------
    KvcertError
        When a frozen file changed: only what is registered can be exported as registered.
    """
    text = document(Path(root))
    paths = [Path(out) / "preregistration.md", Path(out) / "preregistration.html"]
    for path, content in zip(paths, (text, as_html(TITLE, text)), strict=True):
        write_atomic(path, content)
    return paths


def document(root: Path) -> str:
    """The whole document as Markdown."""
    found = registered(root)
    unchanged(root, found)
    claims, study = load_claims(root), load(root / CONFIG)["study"]
    record = found.record
    parts = [
        f"# {TITLE}",
        f"Registration `{found.sha256}`, frozen on {record['date']} with kvcert {record['kvcert']}. "
        f"{len(found.chain)} amendments{f', the last `{found.head}`' if found.head else ''}.",
        "## Study information",
        f"### Title\n\n{TITLE}",
        f"### Description\n\nA reproduction in software of {claims['paper'].strip()} "
        "Every claim has a kill condition; a claim that the run kills is reported killed.",
        "### Hypotheses",
        *(_hypothesis(claim) for claim in claims["claims"].values()),
        "## Design plan",
        "### Study type\n\nComputational experiment; every example is decoded under every policy, budget and draw.",
        "### Blinding\n\nNone is needed: outcomes are scored by code that was written before the run.",
        f"### Study design\n\n{grid(['model', 'pinned as', 'weights'], _models(study))}\n\n"
        + grid(["task", "tokens", "examples", "fails below", "parameters"], _tasks(study))
        + "\n\n"
        + grid(["policy", "budgets", "draws"], _rows(study)),
        f"### Randomisation\n\nCounter-based draws keyed by what they are for; study seed {study['seed']}.",
        "## Sampling plan",
        "### Existing data\n\nRegistered before the measured run; the pilot used other seeds and is kept in the repository.",
        "### Sample size, and stopping rule\n\nAs listed above; every cell is run once, and nothing is added after a look.",
        f"### Sample size rationale\n\n{_rationale(claims)}",
        "## Variables",
        f"### Manipulated\n\nSettings {', '.join(study['settings'])}; policies, budgets and draws as listed. Constants:\n\n"
        + grid(["constant", "value"], [[key, f"{value:g}"] for key, value in study["constants"].items()]),
        "### Measured\n\nTask score, failure, mean log-probability, step certificate and true step error "
        "(docs/schema.md describes every column).",
        "## Analysis plan",
        _demoted((root / FILES[1]).read_text()),
        "### Our reading, for all claims\n\n" + _bullets(claims["common"]["our_reading"]),
        "## Other",
        "### Frozen files\n\n"
        + grid(["file", "SHA-256"], [*found.files.items(), [f"{CONFIG}: study", found.study]]),
    ]
    if found.versions is not None:
        code = sorted(found.versions["code"].items())
        parts.append("### Versions of code\n\n" + grid(["file", "SHA-256"], code))
    if found.chain:
        entries = [[e["number"], e["date"], e["reason"], ", ".join(c["name"] for c in e["changes"]) or "none", e["sha256"]]
                   for e in found.chain]  # fmt: skip
        heads = ["number", "date", "reason", "changes", "chain"]
        parts.append(f"### Amendments ({AMENDMENTS.name})\n\n" + grid(heads, entries))
    return "\n\n".join(parts) + "\n"


def _hypothesis(claim: dict[str, Any]) -> str:
    lines = [
        [name, line["label"], f"{line['passes']} {line['threshold']:g}", line["role"]]
        for name, line in claim["lines"].items()
    ]
    least = ", ".join(f"{key} {value:g}" for key, value in claim["minimum"].items())
    return "\n\n".join([
        f"#### {claim['id']} {claim['title']}",
        claim["statement"],
        f"*Statistic.* {claim['statistic'].strip()}",
        grid(["line", "what", "passes", "role"], lines),
        f"*Killed when.* {claim['kill_condition'].strip()} *Minimum.* {least}.",
        f"*The paper.* {claim['paper']['verdict']}: {claim['paper']['value']} ({claim['source']})",
        "*Our reading.*\n\n" + _bullets(claim["our_reading"]),
    ])  # fmt: skip


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"* {' '.join(line.split())}" for line in lines)


def _models(study: dict[str, Any]) -> list[list[Any]]:
    pins = ("wheel_sha256", "revision", "path")
    return [
        [
            m["name"],
            m.get("wheel") or m.get("repo") or m.get("path"),
            next((m[k] for k in pins if m.get(k)), "–"),
        ]
        for m in study["models"]
    ]


def _tasks(study: dict[str, Any]) -> list[list[Any]]:
    return [
        [t["name"], t["length"], t["examples"], f"{t['fail_below']:g}",
         ", ".join(f"{k} {v}" for k, v in (t.get("params") or {}).items()) or "–"]
        for t in study["tasks"]
    ]  # fmt: skip


def _rows(study: dict[str, Any]) -> list[list[Any]]:
    return [
        [r["policy"], ", ".join(f"{b:g}" for b in r.get("budgets") or []) or "–", r.get("draws", 1)]
        for r in study["rows"]
    ]


def _rationale(claims: dict[str, Any]) -> str:
    told = [
        f"{name}: a true effect of the paper's size is killed with probability {claim['false_kill']['probability']:g} "
        f"at {claim['false_kill']['clusters']} examples."
        for name, claim in claims["claims"].items()
        if "false_kill" in claim
    ]
    return " ".join(told) or "See the analysis plan."


def _demoted(text: str) -> str:
    """The plan's headings two levels down, its title left out; code blocks as they are."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("# "):
        raise KvcertError(f"{FILES[1]}: begins with no title (of {CLAIMS})")
    return "\n".join(f"#{line}" if line.startswith("## ") else line for line in lines[1:]).strip()
