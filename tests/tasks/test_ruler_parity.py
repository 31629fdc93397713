"""Parity: at the size that the library itself chose, and from the same random state, our prompt is the library's."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_ruler import NEEDLES, ruler_texts

from kvcert import tasks
from kvcert.tasks.base import Draw, Room
from kvcert.tasks.ruler import Ruler
from kvcert.tasks.ruler_library import essay_words, generators, questions

__all__ = ["ruler_texts"]  # the fixture

LENGTH = 1100
Count = Callable[[str], int]


def tokenizer(text: str) -> Any:
    return SimpleNamespace(input_ids=text.split())


class Recorder:
    """Stands around a module's `generate_input_output`: remembers the last size and the state before the call."""

    def __init__(self, module: Any, place: int, monkeypatch: pytest.MonkeyPatch, *own: random.Random) -> None:
        self.original, self.place, self.own = module.generate_input_output, place, own
        self.size, self.states = 0, ()
        monkeypatch.setattr(module, "generate_input_output", self)

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.states = self.state()
        found = self.original(*args, **options)
        # The library's frequent words may shrink inside; it returns the number that it ended with.
        self.size = options["num_words"] if "num_words" in options else args[self.place]
        return found

    def state(self) -> tuple[Any, ...]:
        return random.getstate(), np.random.get_state(), [g.getstate() for g in self.own]  # noqa: NPY002

    def restore(self) -> None:
        random.setstate(self.states[0])
        np.random.set_state(self.states[1])  # noqa: NPY002
        for generator, state in zip(self.own, self.states[2], strict=True):
            generator.setstate(state)


@pytest.fixture
def parts(count_words: Count, ruler_texts: Path) -> tuple[SimpleNamespace, Room, Draw]:
    return generators(ruler_texts), Room(LENGTH, count_words), Draw(5, 0, 0, ruler_texts)


def compare(record: dict[str, Any], task: Ruler, seen: Recorder, parts: Any) -> None:
    library, room, draw = parts
    seen.restore()
    text, prefix, outputs = task.write(library, seen.size, room, draw)
    assert text == record["input"]
    assert prefix == record["gen_prefix"]
    assert outputs == record["outputs"]
    example = task._cut(0, text, prefix, outputs)
    assert example.instruction + example.context + example.question == record["input"]


def get(name: str) -> Ruler:
    task = tasks.get(name)
    assert isinstance(task, Ruler)
    return task


@pytest.mark.parametrize("kind", NEEDLES)
def test_needles(kind: str, parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval.tasks.ruler import niah_utils

    library, _, draw = parts
    asked: dict[str, Any] = {}

    def remember(haystack: Any, **options: Any) -> list[Any]:
        asked.update(options, haystack=haystack)
        return []

    monkeypatch.setattr(niah_utils, "generate_samples", remember)
    monkeypatch.setattr(niah_utils, "get_tokenizer", lambda name: tokenizer)
    monkeypatch.setattr(niah_utils, "download_dataset", list)
    words = essay_words(draw.texts)
    monkeypatch.setattr(
        niah_utils,
        "get_haystack",
        lambda type_haystack: words if type_haystack == "essay" else library.niah.get_haystack(type_haystack),
    )
    getattr(niah_utils, f"niah_{kind}")(max_seq_lengths=[LENGTH])
    seen = Recorder(library.niah, 0, monkeypatch)
    (record,) = library.niah.generate_samples(asked.pop("haystack"), **(asked | {"num_samples": 1}))
    compare(record, get(f"ruler_niah_{kind}"), seen, parts)


def test_variable_tracking(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = parts[0]
    worked = library.vt.sys_vartrack_w_noise_random(
        tokenizer=tokenizer, num_samples=1, max_seq_length=500, incremental=5
    )[0]
    seen = Recorder(library.vt, 0, monkeypatch)
    (record,) = library.vt.sys_vartrack_w_noise_random(
        tokenizer=tokenizer, num_samples=1, max_seq_length=LENGTH, icl_example=dict(worked)
    )
    last = seen.size, seen.states

    def same_example(**options: Any) -> list[dict[str, Any]]:
        assert options["max_seq_length"] == 500
        assert options["incremental"] == 5
        seen.size, seen.states = last
        seen.restore()
        return [worked]

    monkeypatch.setattr(library.vt, "sys_vartrack_w_noise_random", same_example)
    compare(record, get("ruler_vt"), seen, parts)


def test_common_words(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = parts[0]
    seen = Recorder(library.cwe, 0, monkeypatch, library.cwe.RNG)
    (record,) = library.cwe.sys_word_pair_random(num_samples=1, max_seq_length=LENGTH, tokenizer=tokenizer)
    compare(record, get("ruler_cwe"), seen, parts)


def test_frequent_words(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = parts[0]
    seen = Recorder(library.fwe, 0, monkeypatch)
    (record,) = library.fwe.sys_kwext(tokenizer, LENGTH, num_samples=1)
    compare(record, get("ruler_fwe"), seen, parts)


@pytest.mark.parametrize(("name", "data"), [("ruler_qa_squad", "squad"), ("ruler_qa_hotpot", "hotpotqa")])
def test_question_answering(name: str, data: str, parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library, _, draw = parts
    asked, documents = questions(draw.texts, data)
    seen = Recorder(library.qa, 1, monkeypatch)
    (record,) = library.qa.generate_samples(tokenizer, documents, asked, LENGTH, num_samples=1)
    task = get(name)
    monkeypatch.setattr(type(task), "_item", lambda self, asked, draw: 0)
    compare(record, task, seen, parts)


def test_the_answers_lengths_are_the_benchmarks() -> None:
    """What docs/ruler.md states, against the library's own task files."""
    import lm_eval.tasks.ruler
    import yaml

    folder = Path(lm_eval.tasks.ruler.__path__[0])

    class Loader(yaml.SafeLoader):
        """Reads `!function` as a text."""

    Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))
    for name in (name for name in tasks.names() if name.startswith("ruler_")):
        stem = name.removeprefix("ruler_")
        settings = yaml.load((folder / f"{stem}.yaml").read_text(), Loader)  # noqa: S506 - a SafeLoader
        while "generation_kwargs" not in settings:
            settings = yaml.load((folder / settings["include"]).read_text(), Loader)  # noqa: S506
        assert get(name).new_tokens == settings["generation_kwargs"]["max_gen_toks"], name
