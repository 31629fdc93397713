"""Commands that run models: the only ones that import torch, and only when called."""

from __future__ import annotations

import argparse
import difflib
import time
from pathlib import Path

from kvcert.commands.command import Command
from kvcert.commands.context import Context
from kvcert.errors import KvcertError
from kvcert.files import write_atomic
from kvcert.grid import shards

PILOT = "config/pilot.yaml"


def prepare(args: argparse.Namespace, context: Context) -> None:
    """Fetch and convert the models and the texts of the grid."""
    from kvcert.prepare import prepare_all

    prepare_all(context.config)


def shard(args: argparse.Namespace, context: Context) -> None:
    """Run one shard by name."""
    specs = {spec["shard"]: spec for spec in shards(context.config)}
    if args.name not in specs:
        near = difflib.get_close_matches(args.name, specs, n=3, cutoff=0.3)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise KvcertError(
            f"no shard {args.name!r} in this grid of {len(specs)}{hint}; `kvcert cells --shards` lists them"
        )
    from kvcert.runner.shard import run_shard

    run_shard(specs[args.name], context.config["run"], not args.quiet)


def pilot(args: argparse.Namespace, context: Context) -> None:
    """Run the pilot's own grid through the same functions and summarise it."""
    if not Path(args.overlay).is_file():
        raise KvcertError(
            f"no pilot overlay at {args.overlay}; run kvcert in the project's folder, or name --overlay FILE"
        )
    context = context.with_overlay(args.overlay)
    config = context.config
    from kvcert.registry.pilot import summarise

    if not args.summarise_only:
        from kvcert.paper.cells import DONE, state
        from kvcert.prepare import prepare_all
        from kvcert.runner.shard import run_shard

        prepare_all(config)
        todo = [spec for spec in shards(config) if state(context.results, spec) != DONE]
        for number, spec in enumerate(todo, 1):
            started = time.monotonic()
            print(f"pilot {number}/{len(todo)}: {spec['shard']}", flush=True)
            run_shard(spec, config["run"], not args.quiet)
            print(f"  {time.monotonic() - started:.0f} s", flush=True)
    summary = summarise(context.results, config)
    print(summary)
    if args.output:
        write_atomic(Path(args.output), summary.rstrip("\n") + "\n")


def unlock(args: argparse.Namespace, context: Context) -> None:
    """Clear locks whose holder is gone."""
    from kvcert.unlock import clear_stale

    print(clear_stale(context.root))


def _shard_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="model.task.length.part, as `kvcert cells --shards` lists them"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress lines")


def _pilot_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--overlay", metavar="FILE", default=PILOT, help="the pilot's overlay (default: %(default)s)"
    )
    parser.add_argument("--output", metavar="FILE", help="also write the summary (Markdown) to a file")
    parser.add_argument("--summarise-only", action="store_true", help="summarise finished shards, run none")
    parser.add_argument("--quiet", action="store_true", help="no progress lines")


COMMANDS = (
    Command("prepare", "fetch and convert the models and texts, with their hashes checked", prepare),
    Command("shard", "run one shard of the grid", shard, _shard_options),
    Command("pilot", "run the pilot on its own seeds and summarise task difficulty", pilot, _pilot_options),
    Command("unlock", "clear locks left by a process that is gone", unlock),
)
