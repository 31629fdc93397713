"""The agent's history: turns that make up the context, the asked record in one of them, and where its tokens end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvcert import tasks
from kvcert.errors import KvcertError
from kvcert.prompts import prompt_counter, render
from kvcert.tasks.agent_memory import asked_turn
from kvcert.tasks.scoring import contains

Count = Callable[[str], int]


@pytest.fixture
def words() -> Count:
    """A stand-in for the token counter."""
    return lambda text: len(text.split()) + 20


def make(
    indices: Any, count: Count, texts: Path, turns: int, facts: int = 2, length: int = 0, seed: int = 5
) -> list[tasks.Example]:
    entry = {"length": length or 300 * turns, "params": {"turns": turns, "facts": facts}}
    return list(tasks.get("agent_memory").examples(entry, seed, indices, count, texts))


def test_the_turns_are_the_context_and_hold_their_records(words: Count, texts: Path) -> None:
    for example in make(range(6), words, texts, 4, facts=3):
        assert "".join(example.turns) == example.context
        assert len(example.turns) == 4
        assert all(f"Turn {place}." in turn for place, turn in enumerate(example.turns, 1))
        sizes = [len(turn.split()) for turn in example.turns]
        assert max(sizes) - min(sizes) < 60
        asked = example.turns[asked_turn(example) - 1]
        assert contains(asked, f"{example.answer_prefix} {example.answers[0]}")
        assert f"asked about turn {asked_turn(example)} of 4" in example.source
        assert not contains(f"{example.question} {example.answer_prefix}", example.answers[0])
        assert tasks.get("agent_memory").score(f" {example.answers[0]}. And", example) == 1.0


def test_records_of_an_example_share_no_key_and_no_answer(words: Count, texts: Path) -> None:
    example = make([0], words, texts, 6, facts=5, length=1800)[0]
    lines = example.context.replace(". ", ".\n").split("\n")
    told = [line for line in lines if " crates are stored in hall " in line or " in the city of " in line]
    planted = {line for line in told if line.startswith("The ")}
    assert len(planted) >= 25  # a record behind a cut sentence does not start its line
    assert len({line.split()[-1] for line in planted}) == len(planted)


def test_every_turn_is_asked_about_equally_often(words: Count, texts: Path) -> None:
    asked = Counter(asked_turn(example) for example in make(range(90), words, texts, 3, facts=1, length=400))
    assert set(asked) == {1, 2, 3}
    assert max(abs(count - 30) for count in asked.values()) < 15  # 3.4 standard deviations


def test_an_example_depends_on_its_key_only(words: Count, texts: Path) -> None:
    together, alone = make(range(3), words, texts, 2), make([2], words, texts, 2)
    assert alone[0] == together[2]
    assert make([2], words, texts, 2, seed=6)[0] != alone[0]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"turns": 0}, "task agent_memory: params.turns: must be an integer from 1 to 16, not 0"),
        ({"turns": 17}, "params.turns"),
        ({"turns": 8, "facts": 4}, "8 turns of 4 records are more than the 30 different ones"),
        ({"turn": 2}, "params.turn: unknown; agent_memory knows facts, turns"),
    ],
)
def test_bad_parameters_are_one_clear_line(params: dict[str, Any], message: str) -> None:
    with pytest.raises(KvcertError, match=message):
        tasks.get("agent_memory").check_params(params)


def test_stages_are_the_turns_ends_in_tokens(tokenizer: Any, texts: Path) -> None:
    example = make([0], prompt_counter(tokenizer), texts, 3, length=700)[0]
    prompt = render(tokenizer, example, "agent_memory")
    assert len(prompt.stages) == 3
    assert prompt.stages[-1] == prompt.n_context
    starts = (0, *prompt.stages[:-1])
    for place, (start, stop) in enumerate(zip(starts, prompt.stages, strict=True), 1):
        text = tokenizer.decode(prompt.ids[start:stop])
        assert f"Turn {place}." in text
        assert text.rstrip().endswith(example.turns[place - 1].split()[-1])
        assert f"Turn {place + 1}." not in text
    assert len(prompt.ids) <= 700


def test_a_prompt_without_turns_keeps_its_hash(tokenizer: Any, texts: Path) -> None:
    example = make([0], prompt_counter(tokenizer), texts, 2, length=500)[0]
    staged, plain = (render(tokenizer, e, "x") for e in (example, replace(example, turns=())))
    assert plain.stages == ()
    assert plain.ids == staged.ids
    assert plain.sha256 != staged.sha256


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        (("Some", "thing"), "the turns are not the context"),
        ((None, "", ""), "a turn has no token of its own"),
    ],
)
def test_wrong_turns_are_refused(tokenizer: Any, texts: Path, turns: Any, message: str) -> None:
    example = make([0], prompt_counter(tokenizer), texts, 1, length=300)[0]
    turns = tuple(example.context if turn is None else turn for turn in turns)
    with pytest.raises(KvcertError, match=f"task x, example 0: {message}"):
        render(tokenizer, replace(example, turns=turns), "x")
