"""The smoke grid, from models to figures on the real model; what repeats afterwards; and a kill in the middle of a shard."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from project import ROOT, build, command, dry, environment, jobs, snakemake

from chromium import chromium
from kvcert import audit, crate, unlock
from kvcert.config import load
from kvcert.grid import expected_run_ids, shards
from kvcert.paper.catalogue import FIGURE_SUFFIXES, FIGURES, TABLE_SUFFIXES, TABLES
from page_driver import reader

pytestmark = pytest.mark.slow

#: The model cache is shared with the checkout, so that the model is converted once. Absolute, as the folder is another.
CACHE = Path(os.environ.get("KVCERT_CACHE", ROOT / ".kvcert")).resolve()
SMOKE = ("--cores", "2", "--configfile", "config/smoke.yaml", "--config", f"cache={CACHE}")
GRID = load(ROOT / "config/config.yaml", ROOT / "config/smoke.yaml")
SHARD = shards(GRID)[2]["shard"]
CLOCKS = ("seconds_prefill", "seconds_decode")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after one whole smoke run."""
    project = build(tmp_path_factory.mktemp("smoke"), snapshot=True)
    finished = snakemake(project, *SMOKE)
    assert finished.returncode == 0, finished.stdout[-5000:]
    assert "Traceback" not in finished.stdout
    assert "C7 Scheduling" in finished.stdout, "the verdict table closes the run"
    return project


def test_it_leaves_all_that_it_promises(done: Path) -> None:
    results, figures = done / "results-smoke", done / "figures-smoke"
    with open(results / "verdicts.csv") as file:
        verdicts = list(csv.DictReader(file))
    assert [row["claim"] for row in verdicts] == [f"C{number}" for number in range(1, 8)]
    assert {row["verdict"] for row in verdicts} <= {"survived", "killed", "underpowered", "not-run"}
    for number in range(1, 8):
        claim = json.loads((results / f"claims/C{number}.json").read_text())
        assert claim["registration"]["status"] == "exploratory"
    promised = [results / f"tables/{stem}{suffix}" for stem in TABLES for suffix in TABLE_SUFFIXES]
    promised += [figures / f"{stem}{suffix}" for stem in FIGURES for suffix in FIGURE_SUFFIXES]
    promised.append(results / "report/index.html")
    assert all(path.stat().st_size > 100 for path in promised)


def test_its_page_reads_well_in_a_browser(done: Path, tmp_path: Path) -> None:
    with reader(chromium(), tmp_path) as window:
        window.open(done / "results-smoke/report/index.html", 360, 740, prefers_color_scheme="dark")
        assert window.js("document.querySelectorAll('.card').length") == 7
        assert window.js("document.querySelectorAll('figure svg').length") == len(FIGURES)
        assert "Exploratory" in window.js("document.querySelector('.banner').textContent")
        assert window.js("document.documentElement.scrollWidth") <= 360
        shown = {window.js("document.getElementById('answer').textContent")}
        for task in window.js("[...document.getElementById('cell').options].map(o => o.value)"):
            window.choose("cell", task)
            assert window.js("document.querySelectorAll('#chart .mark.c').length") >= 1
            shown.add(window.js("document.getElementById('answer').textContent"))
        assert len(shown) > 1
        assert window.complaints() == []
        assert window.requests() == []


def test_every_run_of_the_grid_is_logged_once(done: Path) -> None:
    for spec in shards(GRID):
        runs = pq.read_table(done / f"results-smoke/runs/{spec['shard']}.parquet", columns=["run_id"])
        assert sorted(runs["run_id"].to_pylist()) == sorted(expected_run_ids(spec))


def test_its_evidence_and_its_crate_hold(done: Path) -> None:
    finished = snakemake(done, "audit_C1", "audit_C6", "crate", *SMOKE)
    assert finished.returncode == 0, finished.stdout[-3000:]
    for claim in ("C1", "C6"):
        manifest = audit.check(done / "results-smoke/audit" / claim)
        assert manifest["registration"]["status"] == "exploratory"
        assert "exploratory" in (done / f"results-smoke/audit/{claim}/verdict.md").read_text().split("\n")[0]
    assert crate.problems(done / "results-smoke-crate") == []


def test_a_second_call_has_nothing_to_do(done: Path) -> None:
    assert jobs(dry(done, *SMOKE)) == {}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("src/kvcert/runner/shard.py", set()),
        ("src/kvcert/report/assets/report.css", {"report"}),
        ("src/kvcert/paper/figures/verdicts.py", {"figures", "report"}),
        ("src/kvcert/claims/auc.py", {"score", "tables", "figures", "report"}),
    ],
)
def test_an_edit_repeats_only_what_it_concerns(done: Path, file: str, expected: set[str]) -> None:
    path = done / file
    before = path.read_text()
    try:
        path.write_text(before + "# a comment\n")
        assert set(jobs(dry(done, *SMOKE))) - {"all", "total"} == expected
    finally:
        path.write_text(before)


def test_a_changed_specification_repeats_its_shards_alone(done: Path) -> None:
    overlay = yaml.safe_load((ROOT / "config/smoke.yaml").read_text())
    overlay["study"]["tasks"][2]["fail_below"] = 0.9
    changed = done / "changed.yaml"
    changed.write_text(yaml.safe_dump(overlay))
    arguments = [str(changed) if part == "config/smoke.yaml" else part for part in SMOKE]
    output = dry(done, *arguments)
    assert jobs(output)["cell"] == 1
    assert f"Shard {SHARD}" in output
    # With an empty cache the model is prepared anew as well; that must neither add shards nor hide the changed one.
    prepared = jobs(dry(done, *arguments[:-1], "cache=empty"))
    assert (prepared["setup"], prepared["cell"]) == (1, 1)


def content(project: Path) -> dict[str, object]:
    """Everything that a shard logged, its clocks left out."""
    tables = {
        table: pq.read_table(project / f"results-smoke/{table}/{SHARD}.parquet")
        for table in ("runs", "steps", "heads")
    }
    tables["runs"] = tables["runs"].drop_columns(list(CLOCKS))
    return {name: table.to_pylist() for name, table in tables.items()}


def test_killed_in_the_middle_of_a_shard(done: Path) -> None:
    """Master killed with -9, worker orphaned: the lock is cleared, one shard is repeated, and every number is the same."""
    before, verdicts = content(done), (done / "results-smoke/verdicts.csv").read_bytes()
    for table in ("runs", "steps", "heads"):
        (done / f"results-smoke/{table}/{SHARD}.parquet").unlink()
    output = done / "killed.log"
    with open(output, "w") as file:
        master = subprocess.Popen(command(*SMOKE), cwd=done, env=environment(), stdout=file, stderr=file)
        deadline = time.monotonic() + 240
        while (
            "example 1/3" not in output.read_text() and time.monotonic() < deadline and master.poll() is None
        ):
            time.sleep(0.1)
    assert master.poll() is None, output.read_text()[-3000:]
    os.kill(master.pid, signal.SIGKILL)
    master.wait()
    assert list((done / ".snakemake/locks").glob("*.lock")), "a kill leaves the lock"
    assert unlock.clear_stale(done).startswith("cleared")

    finished = snakemake(done, *SMOKE)
    assert finished.returncode == 0, finished.stdout[-5000:]
    assert jobs(finished.stdout)["cell"] == 1
    assert content(done) == before
    assert (done / "results-smoke/verdicts.csv").read_bytes() == verdicts
    assert jobs(dry(done, *SMOKE)) == {}


def test_a_damaged_log_stops_the_scoring_with_one_line(done: Path, tmp_path: Path) -> None:
    project = build(tmp_path)
    shutil.copytree(done / "results-smoke", tmp_path / "results-smoke")
    shutil.copytree(done / "figures-smoke", tmp_path / "figures-smoke")
    damaged = tmp_path / f"results-smoke/steps/{SHARD}.parquet"
    damaged.write_bytes(damaged.read_bytes()[:2000])
    finished = snakemake(project, "results-smoke/verdicts.csv", *SMOKE)
    assert finished.returncode != 0
    assert f"{damaged.relative_to(tmp_path)}: damaged" in finished.stdout
    assert "Traceback" not in finished.stdout
