"""The files of a shard: whole or absent, one writer at a time, never written twice."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from kvcert.errors import KvcertError
from kvcert.files import replacing
from kvcert.logs.schema import ROWS, SPEC, TABLES


def paths(results: Path, shard: str) -> dict[str, Path]:
    """The Parquet file of each table."""
    return {table: Path(results) / table / f"{shard}.parquet" for table in TABLES}


@contextmanager
def sole_writer(results: Path, shard: str, timeout: float = 3600.0) -> Iterator[None]:
    """Hold the shard's lock: the kernel's own file lock, which ends with its holder, so that it is never stale.

    Raises
    ------
    KvcertError when another worker still writes this shard after `timeout` seconds, or when the file system of the
    results cannot lock.
    """
    lock = Path(results) / "locks" / f"{shard}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock, timeout=timeout):
            yield
    except Timeout as error:
        raise KvcertError(f"shard {shard}: another worker holds {lock}; wait for it or end it") from error
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        raise KvcertError(
            f"{lock.parent}: this file system refuses locks (flock); mount it with them or put run.results on another"
        ) from error


def already_written(results: Path, shard: str, spec_sha256: str) -> bool:
    """True when all three files are there, whole, and of this very specification."""
    for path in paths(results, shard).values():
        try:
            metadata = pq.read_metadata(path)
        except (OSError, pa.ArrowInvalid):
            return False
        extra = metadata.metadata or {}
        if extra.get(SPEC) != spec_sha256.encode() or extra.get(ROWS) != str(metadata.num_rows).encode():
            return False
    return True


def write(results: Path, shard: str, spec_sha256: str, tables: dict[str, pa.Table]) -> None:
    """Write the three tables, `runs` last: it is the file that says that the shard is done."""
    for table in ("heads", "steps", "runs"):
        data = tables[table]
        extra = {ROWS: str(data.num_rows).encode(), SPEC: spec_sha256.encode()}
        data = data.replace_schema_metadata((data.schema.metadata or {}) | extra)
        path = paths(results, shard)[table]
        try:
            with replacing(path) as temporary:
                pq.write_table(data, temporary, compression="zstd", write_page_checksum=True)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise KvcertError(
                    f"no space left for {path}: free some or move run.results to another disk"
                ) from error
            raise
