"""`snakemake audit_C6` and `snakemake crate`: promised, and no part of the study. tests/house/test_smoke.py runs them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kvcert.config import load
from kvcert.grid import shards
from synthetic import write_logs

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "house"))  # the workflow's own test project

from project import build, dry, jobs  # noqa: E402

SMOKE = ("--configfile", "config/smoke.yaml")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with synthetic logs of the smoke grid."""
    folder = build(tmp_path_factory.mktemp("workflow"))
    config = load(ROOT / "config/config.yaml", ROOT / "config/smoke.yaml")
    write_logs(folder / config["run"]["results"], config, 1, layers=1, kv_heads=1, integrity=False)
    for spec in shards(config):
        traces = folder / config["run"]["results"] / "traces" / f"{spec['shard']}.safetensors"
        traces.parent.mkdir(exist_ok=True)
        traces.write_bytes(b"")
    return folder


def test_targets_exist_for_every_claim_and_are_not_part_of_the_study(project: Path) -> None:
    names = [f"audit_C{number}" for number in range(1, 8)]
    found = jobs(dry(project, *names, *SMOKE, "--quiet", "host"))
    assert {name: found[name] for name in names} == dict.fromkeys(names, 1)
    assert "cell" not in found
    assert not set(jobs(dry(project, *SMOKE, "--quiet", "host"))) & {*names, "crate"}
