"""Clear a Snakemake lock whose holder is gone: after `kill -9` the lock files stay and would stop every later run."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from kvcert.errors import KvcertError

LOCKS = Path(".snakemake/locks")


def clear_stale(root: Path | str = ".") -> str:
    """Remove the lock of the project folder if no living Snakemake works there; otherwise leave it.

    The locks of single shards need no clearing: the kernel frees them with the process that held them.

    Parameters
    ----------
    root : path
        Project folder, the one that holds `.snakemake/`.

    Returns
    -------
    str
        One line that says what was done.

    Raises
    ------
    KvcertError
        A lock exists and a living Snakemake process works in the folder.
    """
    root = Path(root).resolve()
    locks = sorted((root / LOCKS).glob("*.lock"))
    if not locks:
        return "no workflow lock"
    holders = living(root)
    if holders:
        raise KvcertError(
            f"workflow in {root} is running (process {', '.join(map(str, holders))}); "
            "wait for it or stop it, then start again"
        )
    for lock in locks:
        lock.unlink(missing_ok=True)
    return f"cleared {len(locks)} stale workflow lock file{'s' * (len(locks) > 1)}: their holder is gone"


def living(root: Path) -> list[int]:
    """Process numbers of the Snakemake processes whose working folder is `root`, this process and its parents excepted."""
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "cwd"]):
        command, folder = process.info["cmdline"] or [], process.info["cwd"]
        if process.pid in own or folder is None or not _is_snakemake(command):
            continue
        if Path(folder) == root:
            found.append(process.pid)
    return sorted(found)


def _is_snakemake(command: list[str]) -> bool:
    """True for `snakemake …`, `python …/snakemake …` and `python -m snakemake …`; not for `less Snakefile` or a worker.

    A cluster's job is a Snakemake of its own (`--mode remote`, `--mode subprocess`) and holds no lock of the folder.
    """
    modes = {command[place + 1] for place, part in enumerate(command[:-1]) if part == "--mode"}
    if modes & {"remote", "subprocess"}:
        return False
    head = [Path(part).name for part in command[:2]]
    return "snakemake" in head or command[1:3] == ["-m", "snakemake"]
