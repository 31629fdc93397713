"""Amendments: appended, chained, never edited; what they change is accepted, and exactly that."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvcert import cli, registry
from kvcert.claims import score_all
from kvcert.config import load
from kvcert.errors import KvcertError
from kvcert.exhibits import registration as exhibits
from kvcert.files import sha256_file
from kvcert.registry import versions as code_versions
from kvcert.registry.amendments import AMENDMENTS, HEAD, read_chain, split
from kvcert.registry.export import export
from kvcert.registry.frozen import FROZEN, KEYS, KEYS_OF
from kvcert.registry.honest import require_honest
from synthetic import write_logs

ROOT = Path(__file__).resolve().parents[2]
CLAIMS, PLAN, CONFIG = "preregistration/claims.yaml", "preregistration/analysis-plan.md", "config/config.yaml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The repository's own registration, as it was frozen, in a folder of its own."""
    shutil.copytree(ROOT / "preregistration", tmp_path / "preregistration")
    (tmp_path / "config").mkdir()
    shutil.copy(ROOT / CONFIG, tmp_path / CONFIG)
    return tmp_path


@pytest.fixture
def config(project: Path) -> dict[str, Any]:
    return load(project / CONFIG)


@pytest.fixture
def fresh(project: Path, config: dict[str, Any]) -> Path:
    """The same files frozen anew by this version, without amendments."""
    for name in (FROZEN, AMENDMENTS, HEAD):
        (project / name).unlink(missing_ok=True)
    registry.freeze(project, config)
    return project


@pytest.fixture
def chain(fresh: Path, config: dict[str, Any]) -> Path:
    """Three amendments: a note, an edited plan, an exhibits file."""
    registry.amend(fresh, config, "A note.")
    (fresh / PLAN).write_text((fresh / PLAN).read_text() + "\nMore.\n")
    registry.amend(fresh, config, "The plan says more.", [PLAN])
    (fresh / "preregistration/exhibits.yaml").write_text("exhibits: []\n")
    registry.amend(fresh, config, "Exhibits are frozen from now on.", ["preregistration/exhibits.yaml"])
    registry.verify(fresh)
    return fresh


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_committed_registration_holds(project: Path) -> None:
    registry.verify(ROOT)
    record = json.loads((project / FROZEN).read_text())
    assert set(record) == KEYS_OF[record["version"]]
    found = registry.registered(project)
    assert found.sha256 == record["sha256"]


def test_a_new_registration_holds_versions(fresh: Path, config: dict[str, Any]) -> None:
    record = json.loads((fresh / FROZEN).read_text())
    assert set(record) == KEYS | {"versions"}
    code = record["versions"]["code"]
    for name in ("kvcert/claims/auc.py", "kvcert/tasks/scoring.py", "kvcert/survey/hajek.py"):
        assert re.fullmatch(r"[0-9a-f]{64}", code[name])
    assert record["versions"]["models"][0]["wheel_sha256"] == config["study"]["models"][0]["wheel_sha256"]
    assert record["versions"]["texts"]["sha256"]
    assert registry.code_notes(registry.registered(fresh)) == []


def test_the_exhibits_have_a_hash_of_their_own(fresh: Path, config: dict[str, Any]) -> None:
    name, own = "preregistration/exhibits.yaml", fresh / "preregistration/EXHIBITS.json"
    (fresh / FROZEN).unlink()
    own.unlink(missing_ok=True)
    (fresh / name).write_text("exhibits: []\n")
    registry.freeze(fresh, config)
    assert name not in json.loads((fresh / FROZEN).read_text())["files"]
    own.write_text(json.dumps({"version": 1, "sha256": sha256_file(fresh / name)}))
    registry.verify(fresh)
    assert exhibits.status(fresh)["status"] == "registered"
    (fresh / name).write_text("exhibits: [X1]\n")
    with pytest.raises(KvcertError, match=r"exhibits\.yaml changed"):
        registry.verify(fresh)
    assert exhibits.status(fresh)["status"] == "changed"
    assert registry.standing(fresh, config)["status"] == "registered"  # scoring does not depend on it
    registry.amend(fresh, config, "X1 alone.", [name])
    registry.verify(fresh)
    assert exhibits.status(fresh)["status"] == "amended"


def test_changed_code_is_named_and_refused_only_when_asked(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = code_versions.code()
    monkeypatch.setattr(code_versions, "code", lambda: now | {"kvcert/claims/auc.py": "0" * 64})
    registry.verify(fresh)
    assert "kvcert/claims/auc.py" in registry.code_notes(registry.registered(fresh))[0]
    with pytest.raises(KvcertError, match=r"kvcert/claims/auc\.py"):
        registry.verify(fresh, strict=True)
    assert registry.standing(fresh, load(fresh / CONFIG))["code"]["changed"] == ["kvcert/claims/auc.py"]


def test_versions_can_be_registered_later(project: Path, config: dict[str, Any]) -> None:
    (project / AMENDMENTS).write_text("# Amendments\n\nAppend-only.\n")
    (project / HEAD).unlink(missing_ok=True)
    before = (project / FROZEN).read_bytes()
    registry.amend(project, config, "Code and pins were not hashed.", with_versions=True)
    registry.verify(project, strict=True)
    assert (project / FROZEN).read_bytes() == before
    with pytest.raises(KvcertError, match="registered already"):
        registry.amend(project, config, "Again.", with_versions=True)


def test_exactly_the_amended_content_is_accepted(chain: Path) -> None:
    accepted = (chain / PLAN).read_text()
    for content in (accepted + " ", accepted.removesuffix("\nMore.\n")):
        (chain / PLAN).write_text(content)
        with pytest.raises(KvcertError, match=r"analysis-plan\.md changed"):
            registry.verify(chain)
    (chain / PLAN).write_text(accepted)
    registry.verify(chain)


def test_every_entry_says_what_and_why_and_follows_the_last(chain: Path, config: dict[str, Any]) -> None:
    found = registry.registered(chain)
    assert [entry["number"] for entry in found.chain] == [1, 2, 3]
    assert [entry["previous"] for entry in found.chain[1:]] == [entry["sha256"] for entry in found.chain[:-1]]
    edited = found.chain[1]["changes"][0]
    assert edited["name"] == PLAN
    assert edited["before"] == json.loads((chain / FROZEN).read_text())["files"][PLAN]
    assert edited["after"] == found.files[PLAN]
    text = (chain / AMENDMENTS).read_text()
    assert "The plan says more." in text
    assert edited["before"] in text
    told = registry.standing(chain, config)
    assert told["amendments"] == {"count": 3, "head": found.head, "files": ["preregistration/analysis-plan.md",
                                                                             "preregistration/exhibits.yaml"]}  # fmt: skip
    assert told["status"] == "registered"


def sections(path: Path, order: Callable[[list[str]], list[str]]) -> None:
    preface, entries = split(path.read_text())
    path.write_text(preface + "".join(order(entries)))


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a reason": (lambda root: change(root / AMENDMENTS, "The plan says more.", "The plan says less."), "amendment 2"),
    "a date": (lambda root: change(root / AMENDMENTS, '"date": "20', '"date": "19'), "amendment 1"),
    "a hash": (lambda root: change(root / AMENDMENTS, '"after": "', '"after": "0'), "amendment 2"),
    "a heading": (lambda root: change(root / AMENDMENTS, "## Amendment 2, ", "## Amendment 4, "), "amendment 2"),
    "the block": (lambda root: change(root / AMENDMENTS, "```json", "```"), "amendment 1"),
    "a word between": (lambda root: change(root / AMENDMENTS, "Measured shards", "Measured shard"), "amendment 1"),
    "the first is deleted": (lambda root: sections(root / AMENDMENTS, lambda e: e[1:]), "amendment 1 is missing"),
    "the second is deleted": (lambda root: sections(root / AMENDMENTS, lambda e: [e[0], e[2]]), "amendment 2 is missing"),
    "the last is deleted": (lambda root: sections(root / AMENDMENTS, lambda e: e[:2]), "amendment 3 is missing"),
    "all are deleted": (lambda root: sections(root / AMENDMENTS, lambda e: []), "amendment 1 is missing"),
    "two are swapped": (lambda root: sections(root / AMENDMENTS, lambda e: [e[0], e[2], e[1]]), "amendment 2 is missing"),
    "one is twice": (lambda root: sections(root / AMENDMENTS, lambda e: [*e, e[2]]), "amendment 4"),
    "the preface": (lambda root: change(root / AMENDMENTS, "# Amendments", "# Amendment"), "amendment 1 does not follow"),
    "the file is lost": (lambda root: (root / AMENDMENTS).unlink(), "amendments.md is missing"),
    "the head is lost": (lambda root: (root / HEAD).unlink(), "AMENDED.json"),
    "the head is edited": (lambda root: change(root / HEAD, '"head": "', '"head": "0'), "amendment 3"),
    "the head counts less": (lambda root: change(root / HEAD, '"entries": 3', '"entries": 2'), "AMENDED.json"),
    "the head is damaged": (lambda root: (root / HEAD).write_text("{"), "AMENDED.json is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_the_chain_names_what_was_touched(what: str, chain: Path) -> None:
    damage, named = DAMAGE[what]
    damage(chain)
    with pytest.raises(KvcertError, match=re.escape(named)) as caught:
        registry.verify(chain)
    assert "\n" not in str(caught.value)


def test_a_chain_of_another_registration_is_refused(chain: Path) -> None:
    with pytest.raises(KvcertError, match="amendment 1 does not follow the preface or the registration"):
        read_chain(chain, "0" * 64)


def test_amending_refuses(fresh: Path, config: dict[str, Any]) -> None:
    with pytest.raises(KvcertError, match="as registered"):
        registry.amend(fresh, config, "Nothing changed.", [PLAN])
    with pytest.raises(KvcertError, match="needs a sentence"):
        registry.amend(fresh, config, "  ")
    with pytest.raises(KvcertError, match="nothing that a registration freezes"):
        registry.amend(fresh, config, "Mine.", ["README.md"])
    (fresh / PLAN).write_text("other")
    with pytest.raises(KvcertError, match=r"analysis-plan\.md changed"):
        registry.amend(fresh, config, "About something else.")
    change(fresh / CLAIMS, "rho: 0.5", "rho: 0.4")
    with pytest.raises(KvcertError, match="constants"):
        registry.amend(fresh, config, "Half of it.", [PLAN, CLAIMS])
    assert not (fresh / HEAD).exists()
    (fresh / FROZEN).unlink()
    with pytest.raises(KvcertError, match="nothing is frozen yet"):
        registry.amend(fresh, config, "Too early.")


def test_an_amended_study_is_the_registered_one(fresh: Path, config: dict[str, Any]) -> None:
    runs = fresh / config["run"]["results"] / "runs"
    runs.mkdir(parents=True)
    (runs / "x.parquet").write_bytes(b"")
    change(fresh / CONFIG, "examples: 48", "examples: 44")
    registry.amend(fresh, config, "Four examples of the first task cannot be built.", [CONFIG])
    registry.verify(fresh)
    assert registry.status(fresh, load(fresh / CONFIG)) == "registered"
    assert registry.status(fresh, config) == "exploratory"
    assert registry.registered(fresh).chain[0]["measured_shards"] == 1  # it says that runs were there already


def test_the_commands(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(fresh)
    assert cli.main(["amend", "--reason", "A note."]) == 0
    head = registry.registered(fresh).head
    assert head in capsys.readouterr().out
    assert cli.main(["verify", "--strict"]) == 0
    said = capsys.readouterr().out
    assert head in said
    assert registry.registered(fresh).sha256 in said
    assert cli.main(["register-export", "--out", "document"]) == 0
    assert "preregistration.html" in capsys.readouterr().out
    change(fresh / AMENDMENTS, "A note.", "No note.")
    assert cli.main(["verify"]) == 2
    assert "amendment 1" in capsys.readouterr().err


def test_the_document(chain: Path) -> None:
    text, html = (path.read_text() for path in export(chain, chain / "document"))
    found = registry.registered(chain)
    claims = registry.load_claims(chain)["claims"]
    for heading in (
        "Study information",
        "Design plan",
        "Sampling plan",
        "Variables",
        "Analysis plan",
        "Other",
    ):
        assert f"## {heading}\n" in text
    for claim in claims.values():
        assert claim["kill_condition"].strip() in text
    assert found.sha256 in text
    assert found.head in text
    assert "Exhibits are frozen from now on" in html
    assert not [word for word in ("<script", "<img", 'src="') if word in html]
    (chain / PLAN).write_text("other")
    with pytest.raises(KvcertError, match=r"analysis-plan\.md"):
        export(chain, chain / "document")


def test_verdicts_name_registration_and_chain_and_exploratory_ones_cannot_pass_for_registered(
    chain: Path, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(chain)
    config["study"]["tasks"] = [config["study"]["tasks"][2] | {"examples": 4}]
    results = chain / "small"
    write_logs(results, config, 0, layers=1, kv_heads=1)
    (results / "config.json").write_text(json.dumps(config))
    found, scored = registry.registered(chain), score_all(results, chain, config)
    assert {claim["registration"]["amendments"]["head"] for claim in scored} == {found.head}
    assert cli.main(["--results", str(results), "verdicts"]) == 0
    said = capsys.readouterr().out
    assert "exploratory: not the registered study" in said
    assert found.sha256 in said
    assert found.head in said
    path = results / "claims/C4.json"
    change(path, '"status": "exploratory"', '"status": "registered"')
    for command in ("verdicts", "tables", "figures"):
        assert cli.main(["--results", str(results), command]) == 2
        assert "C4.json: calls itself registered" in capsys.readouterr().err
    change(path, found.sha256, "0" * 64)
    with pytest.raises(KvcertError, match="another registration"):
        require_honest(results, chain)
