"""Frozen means frozen: what is hashed, what refuses, what is exploratory; claims.yaml and its schema; power; pilot."""

from __future__ import annotations

import copy
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvcert import registry
from kvcert.claims import score_all
from kvcert.config import load
from kvcert.errors import KvcertError
from kvcert.registry import power
from kvcert.registry.pilot import pass_rates, summarise
from synthetic import write_logs

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("preregistration/claims.yaml", "preregistration/analysis-plan.md", "config/config.yaml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The registration's files in a folder of their own, nothing frozen."""
    for name in KEPT:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def config(project: Path) -> dict[str, Any]:
    return load(project / "config/config.yaml")


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


def test_freeze_verify_status(project: Path, config: dict[str, Any]) -> None:
    assert registry.status(project, config) == "exploratory"
    with pytest.raises(KvcertError, match="nothing is frozen yet"):
        registry.verify(project)
    line = registry.freeze(project, config)
    registry.verify(project)
    content = json.loads((project / registry.FROZEN).read_text())
    assert content["sha256"] in line
    assert set(content["files"]) == set(KEPT[:2])
    told = registry.standing(project, config)
    assert told["status"] == "registered"
    assert (told["sha256"], told["date"]) == (content["sha256"], content["date"])
    assert told["amendments"] == {"count": 0, "head": None, "files": []}
    assert told["code"]["changed"] == []
    other = copy.deepcopy(config)
    other["study"]["seed"] += 1
    assert registry.status(project, other) == "exploratory"
    elsewhere = copy.deepcopy(config)
    elsewhere["run"] |= {"results": "elsewhere", "threads": 2}
    assert registry.status(project, elsewhere) == "registered"


def test_freezing_twice_or_after_a_measured_run_or_another_grid(
    project: Path, config: dict[str, Any]
) -> None:
    other = copy.deepcopy(config)
    other["study"]["seed"] += 1
    with pytest.raises(KvcertError, match="without an overlay"):
        registry.freeze(project, other)
    runs = project / config["run"]["results"] / "runs"
    runs.mkdir(parents=True)
    (runs / "x.parquet").write_bytes(b"")
    with pytest.raises(KvcertError, match=r"x\.parquet: runs were measured already"):
        registry.freeze(project, config)
    (runs / "x.parquet").unlink()
    registry.freeze(project, config)
    with pytest.raises(KvcertError, match=r"FROZEN\.json exists"):
        registry.freeze(project, config)


def test_constants_of_claims_and_study_must_agree(project: Path) -> None:
    text = (project / KEPT[0]).read_text()
    (project / KEPT[0]).write_text(text.replace("rho: 0.5", "rho: 0.4", 1))
    with pytest.raises(KvcertError, match="constants"):
        registry.freeze(project, load(project / KEPT[2]))


@pytest.mark.parametrize("name", KEPT[:2])
@pytest.mark.parametrize("share", [0.0, 0.37, 0.99])
def test_one_changed_byte_is_named(project: Path, config: dict[str, Any], name: str, share: float) -> None:
    registry.freeze(project, config)
    flip(project / name, int(share * (project / name).stat().st_size))
    with pytest.raises(KvcertError, match=re.escape(Path(name).name)) as caught:
        registry.verify(project)
    assert "\n" not in str(caught.value)


def test_a_changed_study_a_lost_file_and_a_changed_record_are_named(
    project: Path, config: dict[str, Any]
) -> None:
    registry.freeze(project, config)
    original = (project / KEPT[2]).read_text()
    (project / KEPT[2]).write_text(original.replace("threads: 1", "threads: 2"))
    registry.verify(project)  # `run` is not science
    for change in (("fail_below: 0.5", "fail_below: 0.4"), ("study:", "stduy:")):
        (project / KEPT[2]).write_text(original.replace(*change, 1))
        with pytest.raises(KvcertError, match=r"config\.yaml"):
            registry.verify(project)
    (project / KEPT[2]).write_text(original)
    frozen = project / registry.FROZEN
    text = frozen.read_text()
    for place in [*range(0, 900, 7), *range(900, len(text), 97)]:
        flip(frozen, place)
        if json_equal(frozen.read_text(), text):
            frozen.write_text(text)
            continue
        with pytest.raises(KvcertError, match=r"FROZEN\.json"):
            registry.verify(project)
        frozen.write_text(text)
    (project / KEPT[1]).unlink()
    with pytest.raises(KvcertError, match=r"analysis-plan\.md"):
        registry.verify(project)


def json_equal(one: str, two: str) -> bool:
    try:
        return bool(json.loads(one) == json.loads(two))
    except ValueError:
        return False


def test_scoring_refuses_after_tampering_and_names_the_hash_before(
    project: Path, config: dict[str, Any]
) -> None:
    small = copy.deepcopy(config)
    small["study"]["tasks"] = [small["study"]["tasks"][2] | {"examples": 4}]
    results = project / "results"
    registry.freeze(project, config)
    write_logs(results, small, 0, layers=1, kv_heads=1)
    found = score_all(results, project, small)
    sha = json.loads((project / registry.FROZEN).read_text())["sha256"]
    assert {claim["registration"]["sha256"] for claim in found} == {sha}
    assert {claim["registration"]["status"] for claim in found} == {"exploratory"}
    text = (project / KEPT[0]).read_text()
    (project / KEPT[0]).write_text(text.replace("threshold: 0.70", "threshold: 0.60"))
    with pytest.raises(KvcertError, match=r"claims\.yaml changed"):
        score_all(results, project, small)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda c: c["claims"][0]["lines"]["C1a"].update(threshold="high"), "claims.0.lines.C1a.threshold"),
        (lambda c: c["claims"][5].pop("kill_condition"), "claims.5"),
        (lambda c: c["claims"].reverse(), "in order"),
        (lambda c: c["common"]["interval"].update(resamples=100), "common.interval.resamples"),
        (lambda c: c.update(extra=1), "extra"),
    ],
)
def test_claims_file_is_validated_and_the_key_named(project: Path, change: Any, where: str) -> None:
    content = yaml.safe_load((project / KEPT[0]).read_text())
    change(content)
    (project / KEPT[0]).write_text(yaml.safe_dump(content))
    with pytest.raises(KvcertError, match=re.escape(where)):
        registry.load_claims(project)


def test_claims_code_holds_no_threshold_of_its_own(project: Path, config: dict[str, Any]) -> None:
    small = copy.deepcopy(config)
    small["study"]["tasks"] = [task | {"examples": 6} for task in small["study"]["tasks"][1:3]]
    results = project / "results"
    write_logs(results, small, 0, layers=1, kv_heads=1)
    content = yaml.safe_load((project / KEPT[0]).read_text())
    for claim in content["claims"]:
        for line in claim["lines"].values():
            line["threshold"] = 7.25
    (project / KEPT[0]).write_text(yaml.safe_dump(content))
    found = score_all(results, project, small)
    assert {part["threshold"] for claim in found for part in claim["parts"]} == {7.25}
    assert {claim["verdict"] for claim in found} <= {"killed", "underpowered"}


def test_registered_chance_of_a_false_kill_is_what_the_simulation_gives() -> None:
    claims = registry.load_claims(ROOT)["claims"]
    world = power.World()
    assert claims["C2"]["false_kill"]["clusters"] == world.tasks * world.examples
    assert (
        power.parity(world, claims["C2"], 2000, 2607)["killed"] == claims["C2"]["false_kill"]["probability"]
    )
    shares = power.attribution(world, claims["C6"], 400, 2607)
    killed = shares["killed"] + shares["killed (carried by task or budget)"]
    assert killed == pytest.approx(claims["C6"]["false_kill"]["probability"], abs=0.06)
    assert sum(shares.values()) == pytest.approx(1)


def test_power_grows_with_the_effect() -> None:
    claim = registry.load_claims(ROOT)["claims"]["C6"]
    strong, none = (power.attribution(power.World(certificate=auc), claim, 100, 1) for auc in (0.9, 0.5))
    assert strong["survived"] > 0.85
    assert none["survived"] == 0


def test_pilot_summary(config: dict[str, Any], tmp_path: Path) -> None:
    small = copy.deepcopy(config)
    small["study"]["tasks"] = [task | {"examples": 10} for task in small["study"]["tasks"][2:4]]
    write_logs(tmp_path, small, 0, layers=1, kv_heads=1, full_rate={"niah": 1.0, "facts": 0.0})
    rates = pass_rates(tmp_path, small)
    full = rates[(rates["policy"] == "full") & (rates["setting"] == "aware")].set_index("task")["pass_rate"]
    assert full.to_dict() == {"niah": 1.0, "facts": 0.0}
    poisson = rates[(rates["policy"] == "poisson") & (rates["budget"] == 0.25)]
    assert (poisson["runs"] == 20).all()
    assert (poisson["examples"] == 10).all()
    text = summarise(tmp_path, small)
    assert "niah at 768 tokens" in text
    assert "above the band" in text
    assert "below the band" in text
    assert pass_rates(tmp_path / "empty", small).empty
