"""Commands that judge logs: integrity, claims, and the frozen registration."""

from __future__ import annotations

import argparse

from kvcert.commands.command import Command, one_of
from kvcert.commands.context import Context

CLAIMS = tuple(f"C{number}" for number in range(1, 8))


def check(args: argparse.Namespace, context: Context) -> None:
    """Pass the logs through the integrity gate."""
    from kvcert.logs.integrity import check as gate

    report = gate(context.existing_results(), context.config)
    print(f"{context.results}: complete and undamaged ({_counts(report)})")


def _counts(report: dict[str, object]) -> str:
    numbers = [
        f"{value:,} {key}"
        for key, value in report.items()
        if isinstance(value, int) and not isinstance(value, bool)
    ]
    return ", ".join(numbers) or "all shards"


def score(args: argparse.Namespace, context: Context) -> None:
    """Score all claims, or those named, and show the verdicts."""
    results = context.existing_results()
    from kvcert import claims
    from kvcert.paper.console import print_verdicts

    if args.claims:
        for claim in args.claims:
            claims.score_one(claim, results, context.root, context.config)
    else:
        claims.score_all(results, context.root, context.config)
    print_verdicts(results)


def freeze(args: argparse.Namespace, context: Context) -> None:
    """Freeze the registration."""
    from kvcert import registry

    print(registry.freeze(context.root, context.config))


def verify(args: argparse.Namespace, context: Context) -> None:
    """Check the frozen files against their hashes."""
    from kvcert import registry

    registry.verify(context.root, strict=args.strict)
    found = registry.registered(context.root)
    print(f"registration {found.sha256}: every frozen file is unchanged")
    if found.exhibits is not None:
        print(f"exhibits {found.exhibits}: unchanged")
    if found.chain:
        print(f"amendments: {len(found.chain)}, chain {found.head} holds")
    for line in registry.code_notes(found):
        print(f"note: {line}")


def _verify_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse too when task definitions or scoring code differ from the registered",
    )


def _score_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "claims", metavar="CLAIM", nargs="*", type=one_of(CLAIMS, "claim"), help="C1 … C7 (default: all)"
    )


COMMANDS = (
    Command("check", "refuse missing, damaged, short or doubled logs", check),
    Command("score", "score the seven claims against their kill conditions", score, _score_options),
    Command("freeze", "freeze claims, plan and grid: write preregistration/FROZEN.json", freeze),
    Command(
        "verify", "refuse when a frozen file or the chain of amendments has changed", verify, _verify_options
    ),
)
