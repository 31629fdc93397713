"""Three files instead of thousands: the logs of a finished grid, for an archive or a query engine, and back again.

Every shard is a run of rows in each file, in the order of the grid; the footer says how many rows each shard has and for
which specification they were written. Unpacking gives the shards' files back, row for row, and the gate passes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kvcert.errors import KvcertError
from kvcert.files import replacing, write_atomic
from kvcert.grid import shards
from kvcert.logs.integrity import check
from kvcert.logs.schema import ROWS, SPEC, TABLES

SHARDS = b"kvcert.shards"


def pack(results: Path, config: dict[str, Any], out: Path) -> dict[str, int]:
    """Write `out/{runs,steps,heads}.parquet` and `out/config.json` from a complete grid; bytes per table.

    The originals stay. The gate is passed first: what is damaged is not archived.
    """
    check(results, config)
    names, sizes = [spec["shard"] for spec in shards(config)], {}
    for table, schema in TABLES.items():
        path = Path(out) / f"{table}.parquet"
        entries = []
        with replacing(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for name in names:
                data = pq.read_table(Path(results) / table / f"{name}.parquet")
                own = data.schema.metadata or {}
                entries.append([name, own[SPEC].decode(), data.num_rows])
                if data.num_rows:
                    writer.write_table(data.cast(schema), row_group_size=data.num_rows)
            writer.add_key_value_metadata({SHARDS.decode(): json.dumps(entries)})
        sizes[table] = path.stat().st_size
    write_atomic(Path(out) / "config.json", json.dumps(config, indent=1, sort_keys=True) + "\n")
    return sizes


def unpack(packed: Path, results: Path) -> int:
    """Write every shard's files back into `results`; number of shards. Files that exist already are an error."""
    for table in TABLES:
        path = Path(packed) / f"{table}.parquet"
        try:
            source = pq.ParquetFile(path)
            entries = json.loads((source.metadata.metadata or {})[SHARDS])
        except (pa.ArrowException, OSError, KeyError) as error:
            raise KvcertError(f"{path}: not a file of `kvcert compact` ({error})") from None
        group = 0
        for name, spec, rows in entries:
            target = Path(results) / table / f"{name}.parquet"
            if target.exists():
                raise KvcertError(f"{target}: is there already; unpack into an empty folder")
            data = source.read_row_group(group) if rows else TABLES[table].empty_table()
            group += rows > 0
            if data.num_rows != rows:
                raise KvcertError(f"{path}: shard {name} has {data.num_rows} rows, {rows} promised")
            own = {ROWS: str(rows).encode(), SPEC: spec.encode()}
            with replacing(target) as temporary:
                pq.write_table(
                    data.cast(TABLES[table]).replace_schema_metadata(own),
                    temporary,
                    compression="zstd",
                    write_page_checksum=True,
                )
    return len(entries)
