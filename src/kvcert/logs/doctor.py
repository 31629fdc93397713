"""`kvcert doctor`: what is missing, damaged or stale in a results folder, and the command that mends it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError
from kvcert.grid import shards
from kvcert.logs import health
from kvcert.logs.health import Finding
from kvcert.prepared import prepared_file
from kvcert.sizing import log_bytes

RUN, MEND, UNLOCK = "snakemake --cores all", "kvcert doctor --mend", "kvcert unlock"
#: Command that mends a kind of finding, in the order in which they are told.
CURES = {
    "lock": UNLOCK,
    "registration": "restore the frozen files from version control (kvcert verify names them)",
    health.FOREIGN: MEND,
    health.DAMAGED: f"{MEND} && {RUN}",
    health.STALE: f"{MEND} && {RUN}",
    health.SKEWED: MEND,
    health.LEFTOVER: MEND,
    "space": "free some space, or move run.results to another disk",
    "models": RUN,
    health.MISSING: RUN,
    "scores": RUN,
}
SHOWN = 5


def examine(results: Path, config: dict[str, Any], root: Path, *, deep: bool = False) -> list[Finding]:
    """Everything that is wrong, cheapest questions first. Reads only; `deep` reads every column of every log."""
    results, run, specs = Path(results), config["run"], shards(config)
    found = [*_lock(root), *_registration(root)]
    found += [*health.foreign(results, {spec["shard"] for spec in specs})]
    shard_findings = [
        health.examine(results, spec, traced=run["trace_examples"] > 0, deep=deep) for spec in specs
    ]
    found += [finding for finding in shard_findings if finding is not None]
    found += [*health.skewed(results), *health.leftovers(results)]
    if any(finding.kind in (health.MISSING, health.STALE, health.DAMAGED) for finding in found):
        broken = {finding.subject for finding in found}
        todo = [spec for spec in specs if spec["shard"] in broken]
        found += [*_models(config), *_space(results, sum(sum(log_bytes(s, run).values()) for s in todo))]
    else:
        found += [*_scores(results)]
    return found


def report(found: list[Finding], failed: list[Path], say: Callable[[str], None] = print) -> None:
    """Tell the findings by kind, each with its command, and where the logs of failed jobs are.

    Raises
    ------
    KvcertError with the number of findings, when there are any.
    """
    for kind, cure in CURES.items():
        members = [finding for finding in found if finding.kind == kind]
        if not members:
            continue
        say(f"{kind}: {len(members)}")
        for finding in members[:SHOWN]:
            say(f"  {finding.subject}: {finding.reason}")
        if len(members) > SHOWN:
            say(f"  … and {len(members) - SHOWN} more")
        say(f"  mend: {cure}")
    if failed:
        say(f"logs of failed Slurm jobs, newest first ({len(failed)}):")
        for path in failed[:SHOWN]:
            say(f"  {path}")
    if found:
        kinds = ", ".join(kind for kind in CURES if any(finding.kind == kind for finding in found))
        raise KvcertError(f"doctor: {len(found)} findings ({kinds}); the commands are above")
    say("doctor: every shard is there, whole, and of this grid; scores are up to date")


def mend(results: Path, found: list[Finding], say: Callable[[str], None] = print) -> list[Finding]:
    """Set damaged, stale and foreign files aside and give files from the future the present time; nothing is deleted but
    temporary files of dead writers. Returns the findings that need another command.
    """
    aside = Path(results) / "set-aside" / time.strftime("%Y%m%d-%H%M%S")
    left = []
    for finding in found:
        if finding.kind in (health.DAMAGED, health.STALE, health.FOREIGN):
            for path in finding.files:
                if path.is_file():
                    target = aside / path.relative_to(results)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.move(path, target)
            say(f"set aside in {aside}: {finding.subject}")
            if finding.kind != health.FOREIGN:
                left.append(Finding(health.MISSING, finding.subject, f"set aside: {finding.reason}"))
        elif finding.kind == health.SKEWED:
            for path in finding.files:
                if path.is_file():
                    os.utime(path)
            say(f"given the present time: {finding.subject}")
        elif finding.kind == health.LEFTOVER:
            for path in finding.files:
                path.unlink(missing_ok=True)
            say(f"deleted: {finding.subject}")
        else:
            left.append(finding)
    return left


def failed_logs(root: Path) -> list[Path]:
    """Logs that Slurm kept (those of successful jobs are deleted by the executor), newest first."""
    logs = (root / ".snakemake" / "slurm_logs").rglob("*.log")
    return sorted(logs, key=lambda path: path.stat().st_mtime, reverse=True)


def _lock(root: Path) -> Iterator[Finding]:
    from kvcert.unlock import LOCKS, living

    locks = sorted((root / LOCKS).glob("*.lock"))
    if locks and not living(root.resolve()):
        yield Finding("lock", str(root / LOCKS), "held by nobody on this host: its Snakemake is gone")


def _registration(root: Path) -> Iterator[Finding]:
    if not (root / "preregistration" / "FROZEN.json").is_file():
        return
    from kvcert import registry

    try:
        registry.verify(root)
    except KvcertError as error:
        yield Finding("registration", "preregistration", str(error))


def _models(config: dict[str, Any]) -> Iterator[Finding]:
    path = Path(prepared_file(config))
    if not path.is_file():
        yield Finding(
            "models", str(path), "models and texts are not prepared yet (the workflow does it first)"
        )


def _space(results: Path, needed: float) -> Iterator[Finding]:
    place = results
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        yield Finding("space", str(place), f"{free / 1e6:.0f} MB free, about {needed / 1e6:.0f} MB needed")


def _scores(results: Path) -> Iterator[Finding]:
    """Verdicts that are missing, or older than a log."""
    verdicts = results / "verdicts.csv"
    if not verdicts.is_file():
        yield Finding("scores", str(verdicts), "not scored yet")
        return
    logs = [path for table in ("runs", "steps", "heads") for path in (results / table).glob("*.parquet")]
    newest = max(logs, key=lambda path: path.stat().st_mtime)
    if newest.stat().st_mtime > verdicts.stat().st_mtime:
        yield Finding("scores", str(verdicts), f"older than {newest}")
