"""Commands that look after a results folder: what is wrong with it, and fewer files for an archive."""

from __future__ import annotations

import argparse
from pathlib import Path

from kvcert.commands.command import Command
from kvcert.commands.context import Context


def doctor(args: argparse.Namespace, context: Context) -> None:
    """Tell what is missing, damaged or stale, and the command that mends it; status 2 when anything is."""
    from kvcert.logs import doctor as ward

    found = ward.examine(context.results, context.config, context.root, deep=args.deep)
    if args.mend:
        found = ward.mend(context.results, found)
    ward.report(found, ward.failed_logs(context.root))


def compact(args: argparse.Namespace, context: Context) -> None:
    """Pack a finished grid's logs into three files, or unpack them again."""
    from kvcert.logs.compact import pack, unpack

    if args.unpack:
        count = unpack(Path(args.unpack), context.results)
        print(f"{context.results}: {count} shards")
        return
    sizes = pack(context.existing_results(), context.config, Path(args.out))
    for table, size in sizes.items():
        print(f"{args.out}/{table}.parquet: {size / 1e6:.1f} MB")


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--deep", action="store_true", help="read every column and verify page checksums")
    parser.add_argument(
        "--mend",
        action="store_true",
        help="set damaged, stale and foreign files aside (results/set-aside/), repair times from the future",
    )


def _compact_options(parser: argparse.ArgumentParser) -> None:
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--out", metavar="DIR", help="folder for runs.parquet, steps.parquet, heads.parquet")
    one.add_argument("--unpack", metavar="DIR", help="folder of such files; writes shards into --results")


COMMANDS = (
    Command(
        "doctor",
        "what is missing, damaged or stale, and the command that mends it",
        doctor,
        _doctor_options,
    ),
    Command("compact", "pack a finished grid's logs into three files, and back", compact, _compact_options),
)
