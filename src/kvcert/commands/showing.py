"""Commands that show what is there: tables, figures, verdicts, the grid, the log schema."""

from __future__ import annotations

import argparse
from pathlib import Path

from kvcert.commands.command import Command, one_of
from kvcert.commands.context import Context
from kvcert.paper.catalogue import ALL_FIGURES, TABLE_CAPTIONS


def tables(args: argparse.Namespace, context: Context) -> None:
    """Write the tables as CSV, Markdown and LaTeX."""
    results = context.existing_results()
    from kvcert.paper.tables import write_all

    _honest(results, context)
    for path in write_all(results, context.config, args.stems or None):
        print(path)


def figures(args: argparse.Namespace, context: Context) -> None:
    """Draw the figures as PDF and PNG."""
    results = context.existing_results()
    from kvcert.paper.figures import draw_all

    _honest(results, context)
    folder = Path(args.figures or context.config["run"]["figures"])
    for path in draw_all(results, folder, context.config, args.stems or None):
        print(path)


def verdicts(args: argparse.Namespace, context: Context) -> None:
    """Print the verdict table."""
    from kvcert.paper.console import print_verdicts

    results = context.existing_results()
    _honest(results, context)
    print_verdicts(results)


def _honest(results: Path, context: Context) -> None:
    """Refuse to show scores that call themselves registered and are not."""
    from kvcert.registry.honest import require_honest

    require_honest(results, context.root)


def publish(args: argparse.Namespace, context: Context) -> None:
    """Copy verdicts, claims, tables and figures into a folder to commit."""
    from kvcert.paper.publish import publish as copy

    figures = Path(args.figures or context.config["run"]["figures"])
    copied = copy(context.existing_results(), figures, Path(args.out), args.note)
    print(f"{args.out}: {len(copied)} files and README.md")


def _publish_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", required=True, help="folder to write; replaced as a whole")
    parser.add_argument("--figures", metavar="DIR", help="where the figures are (default: run.figures)")
    parser.add_argument("--note", default="", help="a paragraph for its README: commit, machine, minutes")


def cells(args: argparse.Namespace, context: Context) -> None:
    """Print what the grid holds and what is done."""
    from kvcert.paper.cells import print_cells, print_shards

    (print_shards if args.shards else print_cells)(context.results, context.config)


def schema(args: argparse.Namespace, context: Context) -> None:
    """Write docs/schema.md from the Arrow schemas."""
    from kvcert.logs.document import write

    write(Path(args.output))
    print(args.output)


def _stems(captions: dict[str, str], kind: str, parser: argparse.ArgumentParser) -> None:
    help_text = f"{', '.join(captions)} (default: every {kind})"
    parser.add_argument("stems", metavar="NAME", nargs="*", type=one_of(captions, kind), help=help_text)


def _table_options(parser: argparse.ArgumentParser) -> None:
    _stems(TABLE_CAPTIONS, "table", parser)


def _figure_options(parser: argparse.ArgumentParser) -> None:
    _stems(ALL_FIGURES, "figure", parser)
    parser.add_argument("--figures", metavar="DIR", help="folder to draw into (default: run.figures)")


def _cell_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shards", action="store_true", help="one line per shard, by name, for use in scripts"
    )


def _schema_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", metavar="FILE", default="docs/schema.md", help="default: %(default)s")


COMMANDS = (
    Command(
        "tables",
        "write every table (CSV, Markdown, LaTeX) from the logs and the scores",
        tables,
        _table_options,
    ),
    Command("figures", "draw every figure (PDF, PNG) from the logs and the scores", figures, _figure_options),
    Command("verdicts", "print the verdict table", verdicts),
    Command(
        "publish",
        "copy verdicts, claims, tables and figures into a folder to commit",
        publish,
        _publish_options,
    ),
    Command(
        "cells", "what the grid holds, what is done, and how long the rest should take", cells, _cell_options
    ),
    Command("schema", "write docs/schema.md from the log schema", schema, _schema_options),
)
