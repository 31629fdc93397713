"""Commands that let others check the study: amendments, the registration as a document, evidence bundles, the crate."""

from __future__ import annotations

import argparse
from pathlib import Path

from kvcert.commands.command import Command, one_of
from kvcert.commands.context import Context
from kvcert.commands.scoring import CLAIMS
from kvcert.errors import KvcertError


def amend(args: argparse.Namespace, context: Context) -> None:
    """Append an amendment to the registration."""
    from kvcert import registry

    print(registry.amend(context.root, context.config, args.reason, args.file, args.versions))


def _amend_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reason", required=True, metavar="TEXT", help="why, in a sentence; it is printed and hashed"
    )
    parser.add_argument(
        "--file", metavar="FILE", action="append", default=[],
        help="a frozen file that was edited (repeatable): from now on exactly its present content is accepted",
    )  # fmt: skip
    parser.add_argument(
        "--versions", action="store_true", help="register the present versions of code, models and texts"
    )


def register_export(args: argparse.Namespace, context: Context) -> None:
    """Write the registration as a document."""
    from kvcert.registry.export import export

    for path in export(context.root, Path(args.out)):
        print(path)


def _export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", default="preregistration-export", help="folder (default: %(default)s)"
    )


def audit(args: argparse.Namespace, context: Context) -> None:
    """Build the evidence of a claim, or check a bundle."""
    from kvcert import audit as bundles

    if args.check:
        found = bundles.check(Path(args.check), args.expect)
        registration = found["registration"]
        print(f"{args.check}: {found['claim']} {found['verdict']} ({registration['status']}) holds")
        print(f"registration {registration['sha256']}")
        print(f"bundle {found['sha256']}")
        return
    if args.claim is None:
        raise KvcertError("audit: name a claim (C1 … C7), or a bundle with --check DIR")
    results = context.existing_results()
    out = Path(args.out) if args.out else results / "audit" / args.claim
    found = bundles.build(args.claim, results, context.root, context.config, out)
    size = sum(record["bytes"] for record in found["files"].values())
    print(
        f"{out}: {found['claim']} {found['verdict']} ({found['registration']['status']}), {size / 1e6:.1f} MB"
    )
    print(f"bundle {found['sha256']}")


def _audit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("claim", metavar="CLAIM", nargs="?", type=one_of(CLAIMS, "claim"), help="C1 … C7")
    parser.add_argument("--out", metavar="DIR", help="folder of the bundle (default: RESULTS/audit/CLAIM)")
    parser.add_argument("--check", metavar="BUNDLE", help="check a bundle instead of building one")
    parser.add_argument(
        "--expect", metavar="SHA256", help="the bundle's hash as it was announced, for --check"
    )


def crate(args: argparse.Namespace, context: Context) -> None:
    """Write the run as a Workflow Run RO-Crate."""
    from kvcert.crate import problems, write

    path = write(
        context.existing_results(), context.root, context.config, Path(args.out), not args.without_logs
    )
    found = problems(path.parent)
    if found:
        raise KvcertError(f"{path.parent}: {found[0]}")
    print(path)


def _crate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", required=True, help="folder to write; replaced as a whole")
    parser.add_argument("--without-logs", action="store_true", help="leave the Parquet logs out")


COMMANDS = (
    Command("amend", "write an amendment: what changed after freezing, and why", amend, _amend_options),
    Command(
        "register-export",
        "the registration as a document, Markdown and HTML",
        register_export,
        _export_options,
    ),
    Command("audit", "build the evidence bundle of one claim, or check one", audit, _audit_options),
    Command("crate", "write the run as a Workflow Run RO-Crate", crate, _crate_options),
)
