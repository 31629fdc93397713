"""Preparation: from a folder or from the hub's archive into the cache, checked first, named by hash."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from tests.longbench.made import row, write

from kvcert import sources
from kvcert.errors import KvcertError
from kvcert.files import sha256_file
from kvcert.prepare import prepare_all
from kvcert.tasks.longbench import fetch
from kvcert.tasks.longbench.task import FOLDER


def config(folder: Path | str, **examples: int) -> dict[str, Any]:
    tasks = [{"name": f"longbench_{name}", "length": 500, "examples": n} for name, n in examples.items()]
    return {"study": {"tasks": tasks}, "run": {"longbench": str(folder)}}


def prepare(made: dict[str, Any], cache: Path) -> dict[str, Any]:
    return fetch.prepare_longbench(made, cache, lambda line: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("qasper", "lsht"):
        write(tmp_path / "given", name, [row(name, index) for index in range(3)])
    return tmp_path / "given"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A stand-in for the hub: an archive with the official layout. The list gets what was asked for."""
    asked: list[tuple[Any, ...]] = []
    inner = write(tmp_path / "hub", "hotpotqa_e", [row("hotpotqa_e", index) for index in range(2)])
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.write(inner, "data/hotpotqa_e.jsonl")

    def download(repository: str, file: str, **options: Any) -> str:
        asked.append((repository, file, options))
        return str(tmp_path / "data.zip")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return asked


def test_files_of_a_folder_are_copied_byte_by_byte(folder: Path, tmp_path: Path) -> None:
    entries = prepare(config(folder, qasper=3, lsht=1), tmp_path / "cache")
    assert sorted(entries) == ["lsht", "qasper"]
    content = (folder / "qasper.jsonl").read_bytes()
    assert (tmp_path / "cache" / "texts" / FOLDER / "qasper.jsonl").read_bytes() == content
    assert entries["qasper"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert entries["qasper"]["rows"] == 3
    assert entries["qasper"]["source"] == str(folder / "qasper.jsonl")
    assert entries["qasper"]["licence"].startswith("MIT")


def test_the_manifest_of_the_cache_names_the_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "prepare_texts", lambda cache, say: {})
    made = config(folder, lsht=2)
    made["study"]["models"] = []
    made["run"]["cache"] = str(tmp_path / "cache")
    manifest = prepare_all(made, say=lambda line: None)
    assert manifest["longbench"]["lsht"]["sha256"] == sha256_file(folder / "lsht.jsonl")
    assert json.loads((tmp_path / "cache/manifest.json").read_text()) == manifest


def test_a_grid_without_longbench_asks_for_nothing(tmp_path: Path) -> None:
    made = config("/nowhere")
    made["study"]["tasks"] = [{"name": "niah", "length": 500, "examples": 1}]
    assert prepare(made, tmp_path) == {}
    assert not list(tmp_path.iterdir())


def test_a_second_time_copies_nothing_and_a_changed_file_is_taken_again(folder: Path, tmp_path: Path) -> None:
    made, cache = config(folder, qasper=3), tmp_path / "cache"
    first = prepare(made, cache)
    copy = cache / "texts" / FOLDER / "qasper.jsonl"
    before = copy.stat().st_mtime_ns
    assert prepare(made, cache) == first
    assert copy.stat().st_mtime_ns == before
    copy.write_text("damaged")
    assert prepare(made, cache) == first
    write(folder, "qasper", [row("qasper", index) for index in range(5)])
    assert prepare(made, cache)["qasper"]["rows"] == 5


def test_a_bad_file_is_named_where_it_lies_and_not_copied(folder: Path, tmp_path: Path) -> None:
    path = write(folder, "qasper", [row("qasper"), row("qasper", 1, answers=[])])
    with pytest.raises(KvcertError, match=r"line 2: answers are empty") as caught:
        prepare(config(folder, qasper=1), tmp_path / "cache")
    assert str(caught.value).startswith(str(path))
    assert not list((tmp_path / "cache").rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("place", "examples", "message"),
    [
        ("nowhere", {"qasper": 1}, r"run\.longbench: no folder .*nowhere"),
        ("given", {"trec": 1}, r"has no trec\.jsonl, which longbench_trec reads; it has lsht, qasper"),
        (
            "given",
            {"qasper": 4},
            r"study\.tasks\[0\]\.examples: 4 are asked for, but qasper\.jsonl has 3 rows",
        ),
    ],
)
def test_what_is_not_there(
    folder: Path, tmp_path: Path, place: str, examples: dict[str, int], message: str
) -> None:
    with pytest.raises(KvcertError, match=message):
        prepare(config(tmp_path / place, **examples), tmp_path / "cache")


def test_the_hub_at_the_pinned_commit(hub: list[tuple[Any, ...]], tmp_path: Path) -> None:
    made = config("", hotpotqa_e=2)
    entries = prepare(made, tmp_path / "cache")
    options = {"repo_type": "dataset", "revision": "5e628be450b7e67fb7ae6e201bd6d8f7056f7672"}
    assert hub == [("zai-org/LongBench", "data.zip", options)]
    expected = "zai-org/LongBench@5e628be450b7e67fb7ae6e201bd6d8f7056f7672:data.zip/data/hotpotqa_e.jsonl"
    assert entries["hotpotqa_e"]["source"] == expected
    assert entries["hotpotqa_e"]["rows"] == 2
    assert prepare(made, tmp_path / "cache") == entries
    assert len(hub) == 1, "asked for again although it is there"


def test_another_source_replaces_the_file(hub: list[tuple[Any, ...]], tmp_path: Path) -> None:
    write(tmp_path / "given", "hotpotqa_e", [row("hotpotqa_e", index) for index in range(4)])
    assert prepare(config(tmp_path / "given", hotpotqa_e=2), tmp_path / "cache")["hotpotqa_e"]["rows"] == 4
    assert prepare(config("", hotpotqa_e=2), tmp_path / "cache")["hotpotqa_e"]["rows"] == 2


def test_a_hub_without_network_or_with_another_archive(
    hub: list[tuple[Any, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KvcertError, match=r"holds no data/qasper\.jsonl"):
        prepare(config("", qasper=1), tmp_path / "cache")
    (tmp_path / "data.zip").write_text("no archive")
    with pytest.raises(KvcertError, match="is not a readable archive"):
        prepare(config("", qasper=1), tmp_path / "cache")

    def unreachable(*args: Any, **options: Any) -> str:
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", unreachable)
    with pytest.raises(
        KvcertError, match=r"neither cached nor reachable \(ConnectionError\).*run\.longbench"
    ):
        prepare(config("", qasper=1), tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.jsonl"))
