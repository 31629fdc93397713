"""Every grid that config/ offers: it loads, keeps to its own folders, and the paper's own grid is small enough to plan."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from project import ROOT, build, dry

from kvcert import tasks
from kvcert.config import load
from kvcert.files import sha256_json
from kvcert.grid import shards
from kvcert.paper.cells import print_cells
from kvcert.registry.frozen import study_hash

BASE = ROOT / "config/config.yaml"
OVERLAYS = sorted(path.name for path in (ROOT / "config").glob("*.yaml") if path != BASE)


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_is_a_grid_of_its_own(name: str) -> None:
    base, config = load(BASE), load(BASE, ROOT / "config" / name)
    assert config["run"]["results"] != base["run"]["results"]
    assert config["run"]["figures"] != base["run"]["figures"]
    assert sha256_json(config["study"]) != study_hash(ROOT)
    assert f"`{name}`" in (ROOT / "config/README.md").read_text()


def test_the_papers_grid() -> None:
    study = load(BASE, ROOT / "config/paper.yaml")["study"]
    assert {model["hub"].split("/")[0] for model in study["models"]} == {"Qwen", "meta-llama", "mistralai"}
    assert len(study["models"]) == 4
    assert all(re.fullmatch(r"[0-9a-f]{40}", model["revision"]) for model in study["models"])
    lengths: dict[str, set[int]] = {}
    for task in study["tasks"]:
        lengths.setdefault(task["name"], set()).add(task["length"])
    assert set(map(frozenset, lengths.values())) == {frozenset({6144, 16384})}
    official = [name for name in lengths if name.startswith("longbench_")]
    assert (len(official), len(lengths)) == (16, 21)
    for task in study["tasks"]:
        if task["name"] in official:
            assert task["max_new_tokens"] == tasks.get(task["name"]).longest_answer()


def test_the_papers_grid_is_planned(tmp_path: Path) -> None:
    project = build(tmp_path)
    config = load(BASE, ROOT / "config/paper.yaml")
    assert len(shards(config)) <= 3000
    output = dry(project, "--configfile", "config/paper.yaml", "--quiet", "host")
    assert re.search(rf"^cell\s+{len(shards(config))}$", output, re.MULTILINE)
    out = io.StringIO()
    print_cells(project / "results-paper", config, out)
    for words in ("GPU-hours: about", "of prompts", "Logs:", "estimated from run.throughput"):
        assert words in out.getvalue()
