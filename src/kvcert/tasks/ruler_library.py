"""The one door to lm-eval's RULER: imported when asked for, fed from local files, its random generators isolated."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from kvcert.prepared import require_lm_eval
from kvcert.punkt import check_punkt
from kvcert.tasks import texts


@lru_cache(maxsize=1)
def generators(folder: Path) -> SimpleNamespace:
    """The library's modules `niah`, `vt`, `cwe`, `fwe` and `qa`.

    Parameters
    ----------
    folder
        The prepared texts. NLTK's sentence splitter lies in them: the library asks for it when it is imported.

    Raises
    ------
    KvcertError
        lm-eval is not installed, or the splitter is not prepared.
    """
    require_lm_eval("the RULER tasks")
    place = str(check_punkt(folder).resolve())
    import nltk

    if place not in nltk.data.path:
        nltk.data.path.insert(0, place)
    from lm_eval.tasks.ruler import cwe_utils, fwe_utils, prepare_niah, qa_utils, vt_utils

    return SimpleNamespace(niah=prepare_niah, vt=vt_utils, cwe=cwe_utils, fwe=fwe_utils, qa=qa_utils)


def metrics() -> ModuleType:
    """The library's scores; they need no prepared text."""
    require_lm_eval("the RULER tasks")
    from lm_eval.tasks.ruler import common_utils

    return common_utils


@lru_cache(maxsize=1)
def essay_words(folder: Path) -> list[str]:
    """The essays as the library cuts them: whitespace to blanks, then words."""
    return texts.read(folder, "essays")["text"].split()


@lru_cache(maxsize=2)
def questions(folder: Path, name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Questions and documents of `squad` or `hotpotqa`, parsed by the library from our prepared file."""
    qa = generators(folder).qa
    parse = {"squad": qa.read_squad, "hotpotqa": qa.read_hotpotqa}[name]
    # The parsers fetch their file over HTTP, by a function of their module and with no parameter for a local one.
    # This is the only thing of the library that is replaced, and only while the file is parsed.
    fetch, qa.download_json = qa.download_json, lambda url: texts.read(folder, name)
    try:
        return parse.__wrapped__()
    finally:
        qa.download_json = fetch


@contextmanager
def isolated(library: SimpleNamespace, seed: int) -> Iterator[None]:
    """Run the library's generators from `seed`, then put every generator back as it was.

    The library draws from the global generators of Python and NumPy and from one of its own; inside the block they are
    functions of `seed`, and outside nothing has happened.
    """
    import numpy as np

    own: random.Random = library.cwe.RNG
    before = random.getstate(), np.random.get_state(), own.getstate()  # noqa: NPY002 - NumPy's old global state
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    own.seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        own.setstate(before[2])
