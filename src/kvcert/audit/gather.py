"""From the logs of a study to the tables of a bundle: whole runs and steps; for C1 the panel's heads in compact types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from kvcert.errors import KvcertError
from kvcert.files import replacing
from kvcert.grid import shards
from kvcert.logs.integrity import require_gate
from kvcert.logs.schema import RUNS

STEPS = ["run_id", "step", "logp", "certificate", "guarded", "error", "covered", "units"]
#: A pair is used when its unit could lose something; a NaN in `m` keeps it, as in the scoring.
USED = "panel and tail > 0 and not (m >= tail and not isnan(m))"
WIDE = "(error <= guarded and not isnan(error) and not isnan(guarded))"
BAND = """(case when ess_full <= 2 then 0 when ess_full <= 4 then 1 when ess_full <= 8 then 2 when ess_full <= 16 then 3
    when ess_full <= 32 then 4 else 5 end)"""
HEADS = f"""
select run::integer as run, step::usmallint as step, layer::utinyint as layer, head::usmallint as head,
  radius::float as radius, error::float as error, {WIDE} as wide, {BAND}::utinyint as band
from read_parquet({{files}}) join forced using (run_id) where {USED} order by run, step, layer, head
"""
#: Counts and checksums that were taken from the logs, not from the bundle's own heads.
COUNTS = f"""
with seen as (
  select run, count(*) as logged, count(*) filter (where {USED}) as used,
    sum(radius::double) filter (where {USED} and isfinite(radius)) as radius_sum,
    sum(error::double) filter (where {USED} and isfinite(error)) as error_sum,
    count(*) filter (where {USED} and {WIDE}) as wide_sum, sum({BAND} * step) filter (where {USED}) as band_sum
  from read_parquet({{files}}) join forced using (run_id) where panel group by run)
select forced.run::integer as run, run_id, coalesce(logged, 0)::bigint as logged, coalesce(used, 0)::bigint as used,
  coalesce(radius_sum, 0) as radius_sum, coalesce(error_sum, 0) as error_sum, coalesce(wide_sum, 0)::double as wide_sum,
  coalesce(band_sum, 0)::double as band_sum
from forced left join seen using (run) order by run
"""


def gather(results: Path, config: dict[str, Any], folder: Path, heads_of: dict[str, str] | None) -> None:
    """Write `runs.parquet` and `steps.parquet`, and for C1 `heads.parquet` and `counts.parquet`, into `folder`.

    Parameters
    ----------
    heads_of : `{"policy", "regime"}` of the runs whose heads are kept; None for the claims that use none.

    Raises
    ------
    KvcertError
        When the integrity gate was not passed, or a log file is missing or damaged.
    """
    report = require_gate(results)
    names = [spec["shard"] for spec in shards(config)]
    try:
        runs = _plain([results / "runs" / f"{name}.parquet" for name in names], RUNS.names)
        _write(runs, folder / "runs.parquet")
        _write(
            _plain([results / "steps" / f"{name}.parquet" for name in names], STEPS), folder / "steps.parquet"
        )
        if heads_of is not None:
            _heads(runs, [results / "heads" / f"{name}.parquet" for name in names], heads_of, folder)
    except (OSError, pa.ArrowException, duckdb.Error) as error:
        reason = " ".join(str(error).split())[:200]
        raise KvcertError(f"cannot read the logs under {results} ({reason}); run `kvcert check`") from None
    if runs.num_rows != report.get("runs"):
        raise KvcertError(
            f"{results / 'runs'}: {runs.num_rows} runs, the gate saw {report.get('runs')}; run `kvcert check`"
        )


def _plain(files: list[Path], columns: list[str]) -> pa.Table:
    """Chosen columns of all files, dictionaries as plain text, without the files' own metadata."""
    table = pa.concat_tables([pq.read_table(path, columns=columns) for path in files])
    for index, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        table = table.set_column(index, pa.field(field.name, kind), table.column(index).cast(kind))
    return table.replace_schema_metadata(None)


def _write(table: pa.Table, path: Path, split: list[str] | None = None) -> None:
    """zstd; `split` columns are stored byte plane by byte plane, which is how noise with equal exponents packs best."""
    options: dict[str, Any] = {"compression": "zstd", "compression_level": 6}
    if split:
        others = [name for name in table.column_names if name not in split]
        options |= {"use_byte_stream_split": split, "use_dictionary": others}
    with replacing(path) as temporary:
        pq.write_table(table, temporary, **options)


def _heads(runs: pa.Table, files: list[Path], heads_of: dict[str, str], folder: Path) -> None:
    with duckdb.connect(":memory:", config={"threads": "2"}) as connection:
        connection.register("logged", runs.select(["run_id", "policy", "regime"]))
        connection.execute(
            "create table forced as select run_id, row_number() over (order by run_id) - 1 as run "
            "from logged where policy = ? and regime = ?",
            [heads_of["policy"], heads_of["regime"]],
        )
        listed = "[" + ", ".join("'" + str(path).replace("'", "''") + "'" for path in files) + "]"
        counts = connection.sql(COUNTS.format(files=listed)).to_arrow_table()
        heads = connection.sql(HEADS.format(files=listed)).to_arrow_table()
    _write(counts, folder / "counts.parquet")
    _write(heads, folder / "heads.parquet", split=["radius", "error"])
