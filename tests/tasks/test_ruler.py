"""RULER through lm-eval's generators: the library's text and scores, our length, split and determinism. Made-up texts."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvcert import prepared, punkt, tasks
from kvcert.errors import KvcertError
from kvcert.prompts import message
from kvcert.tasks.base import FILL
from kvcert.tasks.ruler_library import generators, questions

NEEDLES = (
    "single_1", "single_2", "single_3", "multikey_1", "multikey_2", "multikey_3", "multivalue", "multiquery",
)  # fmt: skip
NAMES = [*(f"ruler_niah_{kind}" for kind in NEEDLES)]
NAMES += ["ruler_vt", "ruler_cwe", "ruler_fwe", "ruler_qa_squad", "ruler_qa_hotpot"]
LENGTH = 900
Count = Callable[[str], int]


@pytest.fixture(scope="session")
def ruler_texts(made_texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up texts and a sentence splitter that knows no abbreviation."""
    folder = tmp_path_factory.mktemp("ruler") / "texts"
    shutil.copytree(made_texts, folder)
    place = punkt.nltk_folder(folder) / "tokenizers" / "punkt_tab" / "english"
    place.mkdir(parents=True)
    for name in punkt.FILES:
        (place / name).write_text("")
    return folder


@pytest.fixture
def make(
    count_words: Count, ruler_texts: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[tasks.Example]]:
    """Examples of one task, with the network closed."""

    def closed(*args: Any) -> None:
        raise AssertionError("the network was asked")

    def examples(
        name: str, indices: Any = (0,), *, seed: int = 5, length: int = LENGTH
    ) -> list[tasks.Example]:
        spec = {"name": name, "length": length}
        return list(tasks.get(name).examples(spec, seed, indices, count_words, ruler_texts))

    monkeypatch.setattr(socket.socket, "connect", closed)
    return examples


Make = Callable[..., list[tasks.Example]]


def test_names_need_neither_the_library_nor_torch() -> None:
    code = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(('lm_eval', 'nltk', 'torch', 'transformers', 'datasets'))\n"
        "from kvcert import tasks\n"
        "print(*(name for name in tasks.names() if name.startswith('ruler_')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_depends_on_its_key_only(name: str, make: Make) -> None:
    together = make(name, range(3))
    random.seed(99)
    np.random.seed(99)  # noqa: NPY002 - the state that the library draws from
    states = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    alone = make(name, [2])
    assert alone[0] == together[2]
    assert make(name, [1, 0]) == [together[1], together[0]]
    assert random.getstate() == states[0]
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert len({example.sha256 for example in together}) == 3
    assert not {e.sha256 for e in make(name, range(3), seed=6)} & {e.sha256 for e in together}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [LENGTH, 1500])
def test_prompts_fill_the_length(name: str, length: int, make: Make, count_words: Count) -> None:
    for example in make(name, range(3), length=length):
        assert example.joiner == ""
        assert FILL * length <= count_words(message(example) + "\n" + example.answer_prefix) <= length


@pytest.mark.parametrize("name", NAMES)
def test_the_context_holds_the_answers_and_not_the_question(name: str, make: Make) -> None:
    (example,) = make(name)
    assert all(answer in example.context for answer in example.answers)
    assert not any(answer in example.question + example.answer_prefix for answer in example.answers)
    assert example.question.startswith(("What ", "Question: "))
    assert example.context.endswith("\n")
    assert len(example.context) > 10 * len(example.question)
    assert "RULER" in example.source


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_the_librarys(name: str, make: Make) -> None:
    from lm_eval.tasks.ruler import common_utils

    library = (
        common_utils.process_results_part if name.startswith("ruler_qa") else common_utils.process_results
    )
    (example,) = make(name)
    document = {"max_length": LENGTH, "outputs": list(example.answers)}
    replies = [
        "",
        "no idea",
        " ".join(example.answers),
        example.answers[0].upper(),
        f"\x01{example.answers[-1]}!",
    ]
    for reply in replies:
        expected = library(document, [reply])[str(LENGTH)]
        assert tasks.get(name).score(reply, example) == pytest.approx(expected, abs=1e-12)
    assert tasks.get(name).score(" ".join(example.answers), example) == 1.0
    assert tasks.get(name).score("no idea", example) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_a_length_too_small_is_one_clear_line(name: str, make: Make) -> None:
    with pytest.raises(KvcertError, match=f"task {name}: length 40 does not fit example 0"):
        make(name, length=40)


def test_the_documents_keep_their_order(make: Make, ruler_texts: Path) -> None:
    _, documents = questions(ruler_texts, "squad")
    before = list(documents)
    make("ruler_qa_squad", range(2), length=2300)
    assert documents == before


def test_a_tokenizer_too_fine_for_the_worked_example_is_refused(ruler_texts: Path) -> None:
    with pytest.raises(KvcertError, match="ruler_vt: this tokenizer needs more than 500 tokens"):
        list(tasks.get("ruler_vt").examples({"length": 3000}, 1, [0], len, ruler_texts))


def test_without_the_library_the_extra_is_named(
    count_words: Count, ruler_texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generators.cache_clear()
    monkeypatch.setattr(prepared, "has", lambda name: False)
    with pytest.raises(KvcertError, match=r"RULER tasks: lm-eval is not installed; .*kvcert\[longbench\]"):
        list(tasks.get("ruler_vt").examples({"length": LENGTH}, 1, [0], count_words, ruler_texts))


def test_without_the_splitter_preparation_is_named(count_words: Count, made_texts: Path) -> None:
    generators.cache_clear()
    with pytest.raises(KvcertError, match=r"punkt_tab: .* is missing; run `kvcert prepare`"):
        list(tasks.get("ruler_niah_single_1").examples({"length": 900}, 1, [0], count_words, made_texts))
