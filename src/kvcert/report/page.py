"""The whole page: what is on it, and how it becomes one file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import kvcert
from kvcert.errors import KvcertError
from kvcert.files import write_atomic
from kvcert.paper.claims_json import registration_lines
from kvcert.paper.logs import CLAIMS, Logs
from kvcert.registry.honest import require_honest
from kvcert.report import cards, origin
from kvcert.report.embed import embedded_json, policy
from kvcert.report.exhibits import exhibits
from kvcert.report.explorer import explorer_data
from kvcert.report.pictures import pictures
from kvcert.report.sheets import sheets

SCRIPTS = ("tables.js", "chart.js", "explorer.js", "start.js")


def write(results: Path, figures: Path, config: dict[str, Any], root: Path) -> Path:
    """Write {results}/report/index.html and return its path.

    Parameters
    ----------
    results : folder of the logs, with scored claims.
    figures : folder of the printed figures; the page names it and draws its own.
    config : resolved configuration of these results.
    root : folder of the project, with `preregistration/` and CITATION.cff.

    Raises
    ------
    KvcertError
        When no claim has been scored, a score calls itself registered and is not, or a log or a score cannot be read.
    """
    require_honest(results, root)
    path = Path(results) / "report" / "index.html"
    write_atomic(path, render(Path(results), Path(figures), config, Path(root)))
    return path


def render(results: Path, figures: Path, config: dict[str, Any], root: Path) -> str:
    """The page as text. Equal logs and scores give equal pages: no date, no host name."""
    logs = Logs(results, config)
    if not logs.claims:
        raise KvcertError(f"no scored claims in {results}/claims; run `kvcert score` first")
    script, sheet = code(), asset("report.css")
    listed = cards.cards(logs.claims, cards.standing(root, config))
    data = explorer_data(results)
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("page.html.j2").render(
        policy=policy(script, sheet), script=Markup(script), sheet=Markup(sheet), version=kvcert.__version__,
        cards=listed, tally=cards.tally(listed), missing=[key for key in CLAIMS if key not in logs.claims],
        exploratory=any(card.status != cards.REGISTERED for card in listed), frozen=origin.frozen(logs),
        registration=registration_lines(logs.claims), pictures=pictures(logs),
        figures=figures.name, sheets=sheets(logs), exhibits=exhibits(results), data=embedded_json(data),
        shown=data["every"], runs=len(logs.runs), models=sorted(logs.runs["model"].unique()),
        constants=config["study"]["constants"], gate=origin.gate(results), citation=origin.citation(root),
        licences=origin.licences(logs),
    )  # fmt: skip


def asset(name: str) -> str:
    """A file of `kvcert/report/assets`."""
    return (resources.files("kvcert.report") / "assets" / name).read_text(encoding="utf-8")


def code() -> str:
    """The page's one script. A function of its own keeps its names away from the page."""
    return '(() => {\n"use strict";\n' + "\n".join(asset(name) for name in SCRIPTS) + "})();\n"
