"""Where the page's figures come from: versions, registration, how to cite, and the licences of the texts shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

import kvcert
from kvcert.paper.logs import Logs

#: Task → whose text it shows. The synthetic tasks' answers are our own words.
LICENCES = {
    "squad_long": (
        "SQuAD 2.0",
        "Rajpurkar, Jia and Liang, Know What You Don't Know: Unanswerable Questions for SQuAD, ACL 2018. "
        "Paragraphs from Wikipedia.",
        "CC BY-SA 4.0",
    ),
    "hotpot_long": (
        "HotpotQA",
        "Yang, Qi, Zhang, Bengio, Cohen, Salakhutdinov and Manning, HotpotQA: A Dataset for Diverse, Explainable Multi-hop "
        "Question Answering, EMNLP 2018. Paragraphs from Wikipedia.",
        "CC BY-SA 4.0",
    ),
}
#: The same for all tasks whose names begin with `longbench_`.
LONGBENCH = (
    "LongBench",
    "Bai, Lv, Zhang et al., LongBench: A Bilingual, Multitask Benchmark for Long Context Understanding, ACL 2024.",
    "MIT; the constituent datasets keep their own licences",
)


def licences(logs: Logs) -> list[tuple[str, str, str]]:
    """Name, reference and licence of each data set whose words this page shows."""
    tasks = sorted(logs.runs["task"].unique())
    found = [LICENCES[task] for task in tasks if task in LICENCES]
    return found + ([LONGBENCH] if any(task.startswith("longbench_") for task in tasks) else [])


def frozen(logs: Logs) -> str:
    """Day on which the registration of these scores was frozen; empty where it says none."""
    found = {(claim.get("registration") or {}).get("date") for claim in logs.claims.values()}
    return ", ".join(sorted(str(date) for date in found if date))


def gate(results: Path) -> dict[str, Any]:
    """Counts of the integrity gate's report; empty where there is none."""
    path = Path(results) / "integrity.json"
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {
        name: f"{count:,}"
        for name, count in report.items()
        if isinstance(count, int) and not isinstance(count, bool)
    }


def citation(root: Path) -> dict[str, str] | None:
    """CITATION.cff as it stands, and as one line and BibTeX; None where there is no such file."""
    path = Path(root) / "CITATION.cff"
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    title, version = str(content["title"]), str(content.get("version", kvcert.__version__))
    authors = " and ".join(_name(author) for author in content.get("authors", []))
    bibtex = (
        f"@software{{kvcert,\n  title   = {{{title}}},\n  author  = {{{{{authors}}}}},\n  version = {{{version}}}\n}}\n"
        "@misc{xie2026certificates,\n  title  = {Error Certificates for KV-Cache Eviction via Randomized Design},\n"
        "  author = {Xie, Peng},\n  year   = {2026},\n  note   = {arXiv:2607.21475}\n}"
    )
    return {"line": f"{authors}: {title}, version {version}.", "bibtex": bibtex, "cff": text.strip()}


def _name(author: dict[str, Any]) -> str:
    whole = author.get("name") or f"{author.get('given-names', '')} {author.get('family-names', '')}"
    return str(whole).strip()
