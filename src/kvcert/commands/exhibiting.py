"""Commands for the exhibits: measure them without the workflow, show what they found, register what is expected."""

from __future__ import annotations

import argparse
from pathlib import Path

from kvcert.commands.command import Command, one_of
from kvcert.commands.context import Context
from kvcert.exhibits import EXHIBITS


def exhibit(args: argparse.Namespace, context: Context) -> None:
    """Measure exhibits one after the other, with their tables and figures."""
    from kvcert.exhibits import run
    from kvcert.paper.exhibits import publish
    from kvcert.paper.exhibits.console import print_outcomes

    config, results = context.config, context.results
    figures = Path(args.figures or config["run"]["figures"])
    for name in args.names:
        run(
            name,
            config,
            context.root,
            (lambda line: None) if args.quiet else lambda line: print(line, flush=True),
        )
        for path in publish(results, figures, name):
            print(path)
    print_outcomes(results, args.names)


def exhibits(args: argparse.Namespace, context: Context) -> None:
    """Print what the finished exhibits found."""
    from kvcert.paper.exhibits.console import print_outcomes

    print_outcomes(context.existing_results())


def freeze_exhibits(args: argparse.Namespace, context: Context) -> None:
    """Write EXHIBITS.json."""
    from kvcert.exhibits.registration import freeze

    print(f"exhibits registered: {freeze(context.root)}")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", metavar="NAME", nargs="+", type=one_of(EXHIBITS, "exhibit"), help=", ".join(EXHIBITS)
    )
    parser.add_argument("--figures", metavar="DIR", help="folder to draw into (default: run.figures)")
    parser.add_argument("--quiet", action="store_true", help="no progress lines")


COMMANDS = (
    Command("exhibit", "measure exhibits and draw them, without the workflow", exhibit, _options),
    Command("exhibits", "print what the finished exhibits found, against what was expected", exhibits),
    Command("freeze-exhibits", "register the exhibits: write preregistration/EXHIBITS.json", freeze_exhibits),
)
