"""Examples: determinism, independence, length, answers in the context, attribution. On made-up texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvcert import tasks
from kvcert.errors import KvcertError
from kvcert.tasks.base import FILL
from kvcert.tasks.scoring import contains

NAMES = ["facts", "filler", "hotpot_long", "json_lookup", "json_nested", "niah", "squad_long"]
PARAMS: dict[str, dict[str, Any]] = {
    "niah": {"needles": 5},
    "facts": {"facts": 4, "ask": 2},
    "json_lookup": {"records": 2},
    "filler": {"share": 30},
}
Count = Callable[[str], int]


def make(
    name: str, indices: Any, count: Count, texts: Path, *, seed: int = 5, length: int = 400, **params: Any
) -> list[tasks.Example]:
    spec = {"name": name, "length": length, "params": PARAMS.get(name, {}) | params}
    return list(tasks.get(name).examples(spec, seed, indices, count, texts))


def test_the_families_are_registered() -> None:
    assert set(NAMES) <= set(tasks.names())


def test_unknown_task_lists_the_known_ones() -> None:
    with pytest.raises(
        KvcertError, match=r"task 'nope': unknown; known are .*facts, filler, hotpot_long, .*squad_long"
    ):
        tasks.get("nope")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_depends_on_its_key_only(name: str, count_words: Count, made_texts: Path) -> None:
    together = make(name, range(4), count_words, made_texts)
    alone = make(name, [3], count_words, made_texts)
    assert alone[0] == together[3]
    assert len({example.sha256 for example in together}) == 4
    other_seed = make(name, range(4), count_words, made_texts, seed=6)
    assert not {example.sha256 for example in together} & {example.sha256 for example in other_seed}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [300, 700])
def test_prompts_fill_the_length(name: str, length: int, count_words: Count, made_texts: Path) -> None:
    for example in make(name, range(5), count_words, made_texts, length=length):
        text = (
            "\n\n".join([example.instruction, example.context, example.question])
            + "\n"
            + example.answer_prefix
        )
        assert FILL * length <= count_words(text) <= length


@pytest.mark.parametrize("name", NAMES)
def test_answers_stand_in_the_context_only(name: str, count_words: Count, made_texts: Path) -> None:
    task = tasks.get(name)
    for example in make(name, range(5), count_words, made_texts):
        assert all(contains(example.context, answer) for answer in example.answers)
        assert not any(
            contains(example.question + " " + example.answer_prefix, answer) for answer in example.answers
        )
        assert task.score(" and ".join(example.answers), example) == 1.0
        assert task.score("no idea", example) == 0.0


@pytest.mark.parametrize(
    ("name", "credit"),
    [("squad_long", "CC BY-SA 4.0"), ("hotpot_long", "CC BY-SA 4.0"), ("niah", "Paul Graham")],
)
def test_attribution_travels_with_the_text(
    name: str, credit: str, count_words: Count, made_texts: Path
) -> None:
    assert credit in make(name, [0], count_words, made_texts)[0].source


def test_several_facts_score_the_share_found(count_words: Count, made_texts: Path) -> None:
    example = make("facts", [0], count_words, made_texts)[0]
    assert len(example.answers) == 2
    assert tasks.get("facts").score(f"{example.answers[1]}.", example) == 0.5


def test_only_one_of_the_needles_is_asked(count_words: Count, made_texts: Path) -> None:
    example = make("niah", [0], count_words, made_texts)[0]
    assert example.context.count("The special magic number for") == 5
    assert len(example.answers) == 1


def test_reading_examples_of_a_seed_use_different_questions(count_words: Count, made_texts: Path) -> None:
    for name in ("squad_long", "hotpot_long"):
        questions = [example.question for example in make(name, range(20), count_words, made_texts)]
        assert len(set(questions)) == 20


def test_the_cue_is_the_text_before_the_answer(count_words: Count, made_texts: Path) -> None:
    example = make("squad_long", [0], count_words, made_texts, cue_words=3)[0]
    assert example.answer_prefix == "quiet town of"
    assert f"{example.answer_prefix} {example.answers[0]}" in example.context
    plain = make("squad_long", [0], count_words, made_texts, cue_words=0)[0]
    assert plain.answer_prefix.startswith("According to the text")


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("niah", {"needles": 0}, "task niah: params.needles: must be an integer from 1"),
        ("niah", {"needles": True}, "not True"),
        ("niah", {"needle": 2}, "task niah: params.needle: unknown; niah knows digits, needles"),
        ("facts", {"facts": 2, "ask": 3}, "params.ask: 3 is more than params.facts"),
        ("json_lookup", {"records": 2.5}, "params.records"),
        ("json_nested", {"depth": 5}, "params.depth: must be an integer from 1 to 4"),
        ("json_nested", {"depth": 2, "ask": 3}, "params.ask: 3 is more than params.depth"),
        ("filler", {"kind": "noise"}, "params.kind: must be one of dots, words"),
        ("hotpot_long", {"distractors": "none"}, "must be one of other, own"),
    ],
)
def test_bad_params_are_named(name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(KvcertError, match=message):
        tasks.get(name).check_params(params)


@pytest.mark.parametrize("name", NAMES)
def test_a_length_too_small_is_one_clear_line(name: str, count_words: Count, made_texts: Path) -> None:
    with pytest.raises(KvcertError, match=f"task {name}: length 40 does not fit example 0"):
        make(name, [0], count_words, made_texts, length=40)


def test_missing_texts_say_how_to_get_them(count_words: Count, tmp_path: Path) -> None:
    with pytest.raises(KvcertError, match="run `kvcert prepare`"):
        make("niah", [0], count_words, tmp_path)
    (tmp_path / "squad.json").write_text("{broken")
    with pytest.raises(KvcertError, match="damaged"):
        make("squad_long", [0], count_words, tmp_path)
