"""The gate before scoring: every shard of the grid is there, whole, of this very specification, and counted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kvcert.errors import KvcertError
from kvcert.files import write_atomic
from kvcert.grid import Spec, certified, expected_run_ids, shards, spec_sha256
from kvcert.logs.schema import ROWS, SPEC, TABLES

MEND = "`kvcert doctor --mend` sets it aside; snakemake then repeats only this shard"


def check(results: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Check every file of the grid in `config` under `results`; write `integrity.json` and `config.json` there.

    Returns
    -------
    Counts: shards, runs, steps, heads, invalid.

    Raises
    ------
    KvcertError naming the first file that is missing, damaged, short, doubled, foreign or of another specification.
    """
    results = Path(results)
    (results / "integrity.json").unlink(missing_ok=True)
    specs = shards(config)
    _nothing_foreign(results, {spec["shard"] for spec in specs})
    counts = Counter({"shards": len(specs)})
    for spec in specs:
        counts.update(check_shard(results, spec))
    report = {"ok": True} | {key: counts[key] for key in ("shards", *TABLES, "invalid")}
    text, record = json.dumps(config, indent=1, sort_keys=True) + "\n", results / "config.json"
    if not record.exists() or record.read_text() != text:  # an untouched file keeps its time for the workflow
        write_atomic(record, text)
    write_atomic(results / "integrity.json", json.dumps(report, indent=1) + "\n")
    return report


def require_gate(results: Path) -> dict[str, Any]:
    """The integrity gate's report; a clear line when these logs have not passed it."""
    path = Path(results) / "integrity.json"
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError):
        report = None
    if not isinstance(report, dict) or report.get("ok") is not True:
        raise KvcertError(f"{path}: the logs have not passed the integrity gate; run `kvcert check` first")
    return report


def check_shard(results: Path, spec: Spec) -> dict[str, int]:
    """Check one shard's three files; its row counts and number of invalid runs."""
    files = {table: Path(results) / table / f"{spec['shard']}.parquet" for table in TABLES}
    for table, path in files.items():
        _whole(path, TABLES[table], spec)
    runs = pq.read_table(
        files["runs"], columns=["run_id", "n_steps", "policy", "valid", "regime"]
    ).to_pylist()
    _exactly(files["runs"], spec, runs)
    wanted = {run["run_id"]: run["n_steps"] for run in runs}
    steps = pq.read_table(files["steps"], columns=["run_id", "step"])
    _counted(files["steps"], wanted, steps)
    heads = pq.read_table(files["heads"], columns=["run_id", "step"])
    every = spec.get("heads_every", 1)
    logged = {run["run_id"]: -(-run["n_steps"] // every) for run in runs if certified(run["policy"])}
    _blocks(files["heads"], logged, heads)
    return {
        "runs": len(runs),
        "steps": steps.num_rows,
        "heads": heads.num_rows,
        "invalid": sum(not run["valid"] for run in runs),
    }


def _nothing_foreign(results: Path, known: set[str]) -> None:
    for table in TABLES:
        for path in sorted((results / table).glob("*.parquet")):
            if path.name.removesuffix(".parquet") not in known:
                raise KvcertError(
                    f"{path}: not a shard of this grid (doubled or left from another): move it away"
                )


def _whole(path: Path, schema: pa.Schema, spec: Spec) -> None:
    if not path.exists():
        raise KvcertError(f"{path}: missing: run snakemake again")
    try:
        metadata = pq.read_metadata(path)
        found = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise KvcertError(f"{path}: damaged ({error}): {MEND}") from error
    extra = metadata.metadata or {}
    if not found.equals(schema):
        raise KvcertError(f"{path}: columns differ from this version's schema: {MEND}")
    if extra.get(SPEC) != spec_sha256(spec).encode():
        raise KvcertError(f"{path}: written for another specification of shard {spec['shard']}: {MEND}")
    if extra.get(ROWS) != str(metadata.num_rows).encode():
        raise KvcertError(f"{path}: {metadata.num_rows} rows, {extra.get(ROWS)!r} promised: {MEND}")


def _exactly(path: Path, spec: Spec, runs: list[dict[str, Any]]) -> None:
    found, expected = Counter(run["run_id"] for run in runs), set(expected_run_ids(spec))
    # A forced pass has nothing to force when the full run itself broke: the claims need not have it.
    broken = {
        tuple(run["run_id"].split("/")[:4]) for run in runs if run["policy"] == "full" and not run["valid"]
    }
    missing = {
        run
        for run in expected - set(found)
        if not (run.endswith("/forced") and tuple(run.split("/")[:4]) in broken)
    }
    doubled = [run for run, count in found.items() if count > 1]
    for what, names in (("missing", missing), ("doubled", doubled), ("unknown", set(found) - expected)):
        if names:
            raise KvcertError(f"{path}: {len(names)} runs {what}, first {sorted(names)[0]}: {MEND}")


def _counted(path: Path, wanted: dict[str, int], table: pa.Table) -> None:
    """Every run has its steps 1..n, once each."""
    grouped = table.group_by("run_id").aggregate(
        [("step", "count"), ("step", "count_distinct"), ("step", "max")]
    )
    found = {
        row["run_id"]: (row["step_count"], row["step_count_distinct"], row["step_max"])
        for row in grouped.to_pylist()
    }
    for run, n in wanted.items():
        if found.get(run) != (n, n, n):
            raise KvcertError(f"{path}: run {run} has steps {found.get(run)}, {n} expected: {MEND}")
    if len(found) != len(wanted):
        raise KvcertError(f"{path}: {len(found) - len(wanted)} runs that `runs` does not hold: {MEND}")


def _blocks(path: Path, wanted: dict[str, int], table: pa.Table) -> None:
    """Every certified run has the same number of pairs at each of its logged steps."""
    ids = table["run_id"].combine_chunks()
    ids = ids.cast(pa.string()) if not pa.types.is_dictionary(ids.type) else ids.dictionary_decode()
    counts = {row["values"]: row["counts"] for row in pc.value_counts(ids).to_pylist()}
    sizes = {counts.get(run, 0) / n for run, n in wanted.items()}
    if (
        set(counts) != set(wanted)
        or len(sizes) > 1
        or not all(size == int(size) and size > 0 for size in sizes)
    ):
        raise KvcertError(f"{path}: head rows do not match the runs' steps: {MEND}")
