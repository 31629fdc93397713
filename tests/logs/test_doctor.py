"""The doctor names what is wrong and the command that mends it; mending throws nothing away."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from tests.synthetic import write_logs
from tests.tiny_grid import ROOT

from kvcert import config as configuration
from kvcert.errors import KvcertError
from kvcert.grid import shards
from kvcert.logs import doctor, integrity
from kvcert.logs.compact import pack, unpack
from kvcert.logs.schema import TABLES


@pytest.fixture
def ward(tmp_path: Path) -> tuple[Path, dict[str, Any], list[str]]:
    """A scored, healthy results folder of the smoke grid (without traces)."""
    config = configuration.load(ROOT / "config" / "config.yaml", ROOT / "config" / "smoke.yaml")
    results = tmp_path / "results"
    config["run"] |= {"results": str(results), "cache": str(tmp_path / "cache"), "trace_examples": 0}
    write_logs(results, config, seed=1)
    (results / "verdicts.csv").write_text("claim\n")
    return results, config, [spec["shard"] for spec in shards(config)]


def kinds(results: Path, config: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    found = doctor.examine(results, config, results.parent, **options)
    return [(finding.kind, finding.subject) for finding in found]


def test_a_healthy_folder(ward, capsys) -> None:
    results, config, _ = ward
    assert kinds(results, config, deep=True) == []
    doctor.report([], [])
    assert "every shard is there" in capsys.readouterr().out


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:300])


def shorten(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)


def respecify(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata(table.schema.metadata | {b"kvcert.spec": b"0" * 64}), path)


@pytest.mark.parametrize("table", sorted(TABLES))
@pytest.mark.parametrize(
    ("harm", "kind"),
    [(truncate, "damaged"), (shorten, "damaged"), (respecify, "stale"), (Path.unlink, "missing")],
)
def test_a_harmed_file_is_named_and_mended(ward, table, harm, kind, capsys) -> None:
    results, config, names = ward
    harm(results / table / f"{names[2]}.parquet")
    found = doctor.examine(results, config, results.parent)
    told = [(finding.kind, finding.subject) for finding in found if finding.kind != "models"]
    assert told == [(kind, names[2])]
    with pytest.raises(KvcertError, match=rf"\({kind}|{kind}\)"):
        doctor.report(found, [])
    assert doctor.CURES[kind] in capsys.readouterr().out
    left = doctor.mend(results, found)
    assert [finding.kind for finding in left if finding.kind != "models"] == ["missing"]
    kept = sorted(path.name for path in (results / "set-aside").rglob("*.parquet"))
    assert kept == ([] if kind == "missing" else [f"{names[2]}.parquet"] * 3)
    with pytest.raises(KvcertError, match="missing"):
        integrity.check(results, config)


def test_doubled_future_and_left_over_files(ward) -> None:
    results, config, names = ward
    doubled = results / "runs" / "smollm2-135m.niah.320.9.parquet"
    shutil.copy(results / "runs" / f"{names[0]}.parquet", doubled)
    ahead = time.time() + 3600
    os.utime(results / "heads" / f"{names[1]}.parquet", (ahead, ahead))
    leftover = results / "steps" / f".{names[1]}.parquet.x1.tmp"
    leftover.write_bytes(b"half")
    assert ("leftover", str(leftover)) not in kinds(results, config), "its writer may still live"
    os.utime(leftover, (time.time() - 7200,) * 2)
    found = doctor.examine(results, config, results.parent)
    assert [finding.kind for finding in found] == ["foreign", "skewed", "leftover", "scores"]
    assert [finding.kind for finding in doctor.mend(results, found)] == ["scores"]
    assert list((results / "set-aside").rglob(doubled.name))
    os.utime(results / "verdicts.csv")
    assert kinds(results, config) == []
    assert integrity.check(results, config)["ok"]


def test_scores_older_than_a_log(ward) -> None:
    results, config, names = ward
    os.utime(results / "runs" / f"{names[0]}.parquet", (time.time() + 5,) * 2)
    assert kinds(results, config) == [("scores", str(results / "verdicts.csv"))]
    (results / "verdicts.csv").unlink()
    assert kinds(results, config) == [("scores", str(results / "verdicts.csv"))]


def test_a_lock_without_a_holder_and_logs_of_failed_jobs(ward, capsys) -> None:
    results, config, _ = ward
    locks = results.parent / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("x")
    assert kinds(results, config) == [("lock", str(locks))]
    log = results.parent / ".snakemake/slurm_logs/rule_cell/x/7.log"
    log.parent.mkdir(parents=True)
    log.write_text("killed")
    with pytest.raises(KvcertError, match="1 findings"):
        doctor.report(doctor.examine(results, config, results.parent), doctor.failed_logs(results.parent))
    told = capsys.readouterr().out
    assert "mend: kvcert unlock" in told
    assert str(log) in told


def test_too_little_space(ward, monkeypatch) -> None:
    results, config, names = ward
    (results / "runs" / f"{names[0]}.parquet").unlink()
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(10, 10, 0))
    assert ("space", str(results)) in kinds(results, config)


def test_packed_and_unpacked_row_for_row(ward, tmp_path) -> None:
    results, config, names = ward
    archive, again = tmp_path / "archive", tmp_path / "again"
    pack(results, config, archive)
    assert sorted(path.name for path in archive.iterdir()) == [
        "config.json", "heads.parquet", "runs.parquet", "steps.parquet",
    ]  # fmt: skip
    assert unpack(archive, again) == len(names)
    assert integrity.check(again, config)["ok"]
    for table in TABLES:
        for name in names:
            first, second = (pq.read_table(folder / table / f"{name}.parquet") for folder in (results, again))
            pd.testing.assert_frame_equal(first.to_pandas(), second.to_pandas(), check_exact=True)
    with pytest.raises(KvcertError, match="is there already"):
        unpack(archive, again)
    with pytest.raises(KvcertError, match="not a file of `kvcert compact`"):
        unpack(results, tmp_path / "third")


def test_a_damaged_grid_is_not_packed(ward, tmp_path) -> None:
    results, config, names = ward
    truncate(results / "steps" / f"{names[0]}.parquet")
    with pytest.raises(KvcertError, match="damaged"):
        pack(results, config, tmp_path / "archive")
    assert not (tmp_path / "archive").exists()
