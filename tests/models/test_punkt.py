"""The sentence splitter of the RULER tasks: fetched for grids that have them, and for no other."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kvcert import config as configuration
from kvcert import prepare, prepared, punkt, sources
from kvcert.errors import KvcertError
from kvcert.files import sha256_json

FILES = {name: name.encode() for name in punkt.FILES}


def quiet(line: str) -> None:
    """Swallow progress."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache whose wheel is a small stand-in, and no network."""
    wheel = tmp_path / "wheels" / "llama_index_core-0.14.25-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(f"{punkt.MEMBERS}/{name}", content)
    monkeypatch.setattr(punkt, "PUNKT_WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setattr(
        punkt, "FILES", {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    )
    monkeypatch.setattr(sources, "prepare_texts", lambda cache, say: {})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path


def grid(cache: Path, *tasks: str) -> dict[str, Any]:
    study = {"models": [], "tasks": [{"name": name} for name in tasks]}
    return {"study": study, "run": {"cache": str(cache)}}


def test_only_a_grid_with_ruler_tasks_fetches_it(cache: Path) -> None:
    assert prepare.prepare_all(grid(cache, "niah", "facts"), say=quiet)["texts"] == {}
    assert not punkt.nltk_folder(cache / "texts").exists()
    manifest = prepare.prepare_all(grid(cache, "niah", "ruler_vt"), say=quiet)
    assert manifest["texts"]["punkt_tab"]["licence"].startswith("MIT")
    folder = punkt.check_punkt(cache / "texts") / "tokenizers" / "punkt_tab" / "english"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES


def test_right_files_are_kept_and_a_damaged_one_is_taken_again(cache: Path) -> None:
    punkt.prepare_punkt(cache, quiet)
    victim = punkt.nltk_folder(cache / "texts") / "tokenizers" / "punkt_tab" / "english" / "abbrev_types.txt"
    victim.write_text("x")
    punkt.prepare_punkt(cache, quiet)
    assert victim.read_bytes() == FILES["abbrev_types.txt"]
    next((cache / "wheels").iterdir()).unlink()
    punkt.prepare_punkt(cache, quiet)
    victim.unlink()
    with pytest.raises(KvcertError, match=r"wheel llama-index-core==0\.14\.25: could not be downloaded"):
        punkt.prepare_punkt(cache, quiet)


def test_a_missing_library_is_told_before_anything_is_fetched(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "has", lambda name: False)
    with pytest.raises(KvcertError, match=r"pip install 'kvcert\[longbench\]'"):
        prepare.prepare_all(grid(cache, "ruler_cwe"), say=quiet)
    assert not punkt.nltk_folder(cache / "texts").exists()


def test_the_default_grid_is_prepared_as_before(root: Path) -> None:
    default = configuration.load(root / "config" / "config.yaml")
    digest = sha256_json(default["study"]["models"])[:16]
    assert prepared.prepared_file(default) == f".kvcert/prepared/{digest}.json"
    ruler = configuration.load(root / "config" / "config.yaml", root / "config" / "ruler.yaml")
    assert prepared.prepared_file(ruler) not in ("", prepared.prepared_file(default))
