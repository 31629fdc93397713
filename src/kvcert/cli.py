"""The `kvcert` command: the same functions as the Snakemake rules, for people who want one step at a time."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from kvcert.commands import COMMANDS
from kvcert.commands.context import Context
from kvcert.errors import KvcertError

DESCRIPTION = (
    "Error certificates for KV-cache eviction by randomized design: run the study, score it, read it."
)
EPILOG = """\
from nothing to the verdicts:
  kvcert prepare                      fetch the model and the texts once, into run.cache
  kvcert cells                        what the grid holds and what is done already
  kvcert shard smollm2-135m.niah.768.0   run one shard: all its examples, settings, policies, budgets, draws
  kvcert check                        refuse damaged, missing or short logs
  kvcert score                        score the seven claims
  kvcert tables && kvcert figures     write every table and figure
  kvcert report                       one page with all of it, every run included
  kvcert verdicts                     the verdict table

other grids and other folders:
  kvcert --config config/config.yaml --config config/smoke.yaml cells      overlays are merged, the last wins
  kvcert --results results/smoke verdicts      reads the configuration stored beside those results

`make reproduce` runs all of it. Problems are told in one line and exit with status 2.
"""


def _add_shared(parser: argparse.ArgumentParser, suffix: str = "") -> None:
    """Options accepted before and after the command; two names, since a sub-command resets what came before it."""
    parser.add_argument(
        "--config", metavar="FILE", action="append", default=[], dest=f"config{suffix}",
        help="configuration; repeat for overlays merged in order (default: the one stored beside --results, "
        "else config/config.yaml)",
    )  # fmt: skip
    parser.add_argument(
        "--results", metavar="DIR", dest=f"results{suffix}", help="results folder (default: run.results)"
    )


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="kvcert",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_shared(parser)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.help, description=command.help)
        _add_shared(sub, "_after")
        if command.options is not None:
            command.options(sub)
        sub.set_defaults(run=command.run)
    return parser


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kvcert")
    except PackageNotFoundError:
        return "unknown (not installed)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 2 for a problem the user can act on, 130 when interrupted."""
    for stream in (sys.stdout, sys.stderr):  # a console that cannot print ✓ prints ? instead of a traceback
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.version:
        print(f"kvcert {_version()}")
        return 0
    if args.command is None:
        parser.print_help()
        return 0
    try:
        args.run(args, Context(args.config + args.config_after, args.results_after or args.results))
    except KvcertError as problem:
        print(f"kvcert: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("kvcert: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `kvcert verdicts | head`: not our problem, and no traceback
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as problem:  # no space left, no permission: the system's own words are the clear line
        where = f"{problem.filename}: " if problem.filename else ""
        print(f"kvcert: {where}{problem.strerror or problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
