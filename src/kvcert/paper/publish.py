"""A run's verdicts, tables and figures as a folder to commit: everything but the logs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from kvcert.errors import KvcertError
from kvcert.files import write_atomic
from kvcert.paper.catalogue import EXHIBIT_STEMS, FIGURE_SUFFIXES, TABLE_SUFFIXES, TABLES
from kvcert.paper.catalogue import figures as promised
from kvcert.paper.logs import Logs

SINGLE = ("verdicts.csv", "integrity.json", "config.json", "report/index.html")


def publish(results: Path, figures: Path, out: Path, note: str = "") -> list[Path]:
    """Copy what a reader needs into `out` and write its README.

    Parameters
    ----------
    results, figures : folders of a finished run. out : replaced as a whole.
    note : a paragraph for the README (commit, machine, minutes).

    Raises
    ------
    KvcertError naming the first file that the run lacks; `out` is then left as it was.
    """
    results, figures, out = Path(results), Path(figures), Path(out)
    pairs = [(results / name, out / name) for name in SINGLE]
    pairs += [(results / "claims" / f"C{n}.json", out / "claims" / f"C{n}.json") for n in range(1, 8)]
    stems = promised(Logs(results).tasks)
    shown = [name for name in EXHIBIT_STEMS if (results / "exhibits" / f"{name}.json").is_file()]
    pairs += [(results / "exhibits" / f"{n}.json", out / "exhibits" / f"{n}.json") for n in shown]
    own = [EXHIBIT_STEMS[name] for name in shown]
    for stem in (*TABLES, *own):
        pairs += [
            (results / "tables" / f"{stem}{end}", out / "tables" / f"{stem}{end}") for end in TABLE_SUFFIXES
        ]
    for stem in (*stems, *own):
        pairs += [(figures / f"{stem}{end}", out / "figures" / f"{stem}{end}") for end in FIGURE_SUFFIXES]
    for source, _ in pairs:
        if not source.is_file():
            raise KvcertError(f"{source} is missing: finish the run before it is published")
    if out.exists():
        shutil.rmtree(out)
    for source, target in pairs:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    write_atomic(out / "README.md", _page(results, note, stems, own))
    return [target for _, target in pairs]


def _page(results: Path, note: str, figures: Sequence[str], exhibits: Sequence[str]) -> str:
    def table(stem: str) -> str:
        return (results / "tables" / f"{stem}.md").read_text().strip()

    pictures = "\n\n".join(f"### {stem}\n\n![{stem}](figures/{stem}.png)" for stem in figures)
    parts = ["# A finished run", note, "## Verdicts", table("verdicts"), "## What ran", table("summary")]
    parts += [
        "The whole run on one page, every answer included: `report/index.html` (open it from a checkout)."
    ]
    parts += ["## Figures", "How to read them: [docs/figures.md](../figures.md).", pictures]
    if exhibits:
        parts += ["## Exhibits", "What they are: [docs/exhibits.md](../exhibits.md)."]
        for stem in exhibits:
            parts += [f"### {stem}", f"![{stem}](figures/{stem}.png)", table(stem)]
    parts += [
        "## Tables",
        "All tables are in [tables/](tables/) as CSV, Markdown and LaTeX; every stratum in [claims/](claims/).",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
