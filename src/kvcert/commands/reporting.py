"""The command that writes the page people read."""

from __future__ import annotations

import argparse
from pathlib import Path

from kvcert.commands.command import Command
from kvcert.commands.context import Context


def report(args: argparse.Namespace, context: Context) -> None:
    """Write the report page."""
    results = context.existing_results()
    from kvcert.report import write

    figures = Path(args.figures or context.config["run"]["figures"])
    path = write(results, figures, context.config, context.root)
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--figures", metavar="DIR", help="where the figures are (default: run.figures)")


COMMANDS = (
    Command(
        "report",
        "write {results}/report/index.html: verdicts, figures, tables, every run",
        report,
        _report_options,
    ),
)
