"""What is wrong with the files of a results folder, shard by shard: the questions behind `kvcert doctor`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kvcert.errors import KvcertError
from kvcert.grid import Spec, spec_sha256
from kvcert.logs.integrity import check_shard
from kvcert.logs.schema import SPEC, TABLES

#: Seconds that a file may lie in the future before it counts as clock skew.
SKEW = 120.0

MISSING, STALE, DAMAGED, FOREIGN, SKEWED, LEFTOVER = (
    "missing",
    "stale",
    "damaged",
    "foreign",
    "skewed",
    "leftover",
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: its kind, what it is about, a line of explanation, and the files to set aside or touch."""

    kind: str
    subject: str
    reason: str
    files: tuple[Path, ...] = field(default=())


def shard_files(results: Path, name: str) -> list[Path]:
    """Every file that a shard may have left."""
    files = [Path(results) / table / f"{name}.parquet" for table in TABLES]
    return [*files, Path(results) / "traces" / f"{name}.safetensors"]


def examine(results: Path, spec: Spec, *, traced: bool, deep: bool = False) -> Finding | None:
    """What is wrong with one shard; None for a whole one. `deep` reads every column and verifies page checksums."""
    files = shard_files(results, spec["shard"])
    wanted = files if traced else files[: len(TABLES)]
    absent = [path for path in wanted if not path.is_file()]
    if absent:
        there = tuple(path for path in files if path.is_file())
        reason = "not run yet" if not there else f"{absent[0]} is not there"
        return Finding(MISSING, spec["shard"], reason)
    try:
        digests = {
            (pq.read_metadata(path).metadata or {}).get(SPEC, b"").decode() for path in files[: len(TABLES)]
        }
        if digests != {spec_sha256(spec)}:
            return Finding(STALE, spec["shard"], "written for another specification", tuple(wanted))
        check_shard(results, spec)
        if deep:
            for path in files[: len(TABLES)]:
                pq.read_table(path, page_checksum_verification=True)
    except KvcertError as error:
        return Finding(DAMAGED, spec["shard"], str(error).rsplit(": ", 1)[0], tuple(wanted))
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        return Finding(DAMAGED, spec["shard"], reason, tuple(wanted))
    return None


def foreign(results: Path, known: set[str]) -> Iterator[Finding]:
    """Logs of shards that this grid does not have: doubled by hand, or of another grid or shard size."""
    for table in TABLES:
        for path in sorted((Path(results) / table).glob("*.parquet")):
            if path.name.removesuffix(".parquet") not in known:
                yield Finding(FOREIGN, str(path), "no shard of this grid", (path,))


def leftovers(results: Path) -> Iterator[Finding]:
    """Temporary files of writers that were killed; those of the last hour may belong to a living one and are left out."""
    for folder in (*TABLES, "traces"):
        for path in sorted((Path(results) / folder).glob(".*.tmp")):
            if time.time() - path.stat().st_mtime > 3600:
                yield Finding(LEFTOVER, str(path), "left by a killed writer", (path,))


def skewed(results: Path, now: float | None = None) -> Iterator[Finding]:
    """Files from the future: a node's clock is ahead, and Snakemake would find every later file older than its input."""
    now = time.time() if now is None else now
    for path in sorted(Path(results).rglob("*")):
        if path.is_file() and path.stat().st_mtime > now + SKEW:
            ahead = (path.stat().st_mtime - now) / 60
            yield Finding(SKEWED, str(path), f"modified {ahead:.0f} minutes in the future", (path,))
