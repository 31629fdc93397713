"""The gate refuses every way in which a results folder can be wrong, and names the file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.synthetic import write_logs
from tests.tiny_grid import ROOT

from kvcert import config as configuration
from kvcert.errors import KvcertError
from kvcert.grid import shards
from kvcert.logs import integrity


@pytest.fixture
def logs(tmp_path):
    config = configuration.load(ROOT / "config" / "config.yaml", ROOT / "config" / "smoke.yaml")
    write_logs(tmp_path, config, seed=1)
    return tmp_path, config, shards(config)[1]["shard"]


def rewrite(path, change, *, keep_count=True):
    """Write the file again with `change(table)`; the row count in its metadata follows unless told otherwise."""
    table = change(pq.read_table(path))
    metadata = dict(table.schema.metadata)
    if keep_count:
        metadata[b"kvcert.rows"] = str(table.num_rows).encode()
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")


def test_good_logs_pass(logs):
    results, config, _ = logs
    assert integrity.check(results, config)["ok"]
    assert (results / "integrity.json").exists()
    assert (results / "config.json").exists()


def relabel(table):
    ids = table["run_id"].to_pylist()
    return table.set_column(table.schema.get_field_index("run_id"), "run_id", pa.array([ids[1], *ids[1:]]))


DAMAGE = {
    "missing": lambda p: p.unlink(),
    "damaged": lambda p: p.write_bytes(p.read_bytes()[:-40]),
    "damaged ": lambda p: p.write_bytes(b""),
    "rows": lambda p: rewrite(p, lambda t: t.slice(1), keep_count=False),
    "runs missing": lambda p: rewrite(p, lambda t: t.slice(1)),
    "runs doubled": lambda p: rewrite(p, lambda t: pa.concat_tables([t, t.slice(0, 1)])),
    "columns differ": lambda p: rewrite(p, lambda t: t.drop_columns(["entropy_mean"])),
}


@pytest.mark.parametrize("kind", sorted(DAMAGE))
def test_damaged_runs_file(logs, kind):
    results, config, name = logs
    path = results / "runs" / f"{name}.parquet"
    DAMAGE[kind](path)
    with pytest.raises(KvcertError, match=kind.strip()) as error:
        integrity.check(results, config)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert not (results / "integrity.json").exists()


def short(table):
    return table.slice(1)


def doubled(table):
    return pa.concat_tables([table, table.slice(0, 1)])


@pytest.mark.parametrize(
    ("table", "change"),
    [("steps", short), ("steps", doubled), ("steps", relabel), ("heads", short), ("heads", doubled)],
)
def test_ragged_steps_and_heads(logs, table, change):
    results, config, name = logs
    rewrite(results / table / f"{name}.parquet", change)
    with pytest.raises(KvcertError, match=table):
        integrity.check(results, config)


def test_a_shard_of_another_grid(logs):
    results, config, name = logs
    (results / "runs" / "other.niah.320.0.parquet").write_bytes(
        (results / "runs" / f"{name}.parquet").read_bytes()
    )
    with pytest.raises(KvcertError, match="not a shard of this grid"):
        integrity.check(results, config)


def test_another_specification(logs):
    results, config, _ = logs
    config["study"]["seed"] += 1
    with pytest.raises(KvcertError, match="another specification"):
        integrity.check(results, config)


def test_a_failed_gate_withdraws_the_earlier_pass(logs):
    results, config, name = logs
    integrity.check(results, config)
    (results / "steps" / f"{name}.parquet").unlink()
    with pytest.raises(KvcertError):
        integrity.check(results, config)
    assert not (results / "integrity.json").exists()
