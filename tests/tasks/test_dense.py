"""Nested JSON and filler: what their names promise, on made-up texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvcert import tasks
from kvcert.tasks.filler import EMPTY
from kvcert.tasks.json_nested import PAIRS

Count = Callable[[str], int]


def make(name: str, count: Count, texts: Path, length: int = 600, **params: Any) -> list[tasks.Example]:
    return list(tasks.get(name).examples({"length": length, "params": params}, 5, range(6), count, texts))


def path_of(example: tasks.Example) -> list[str]:
    return example.question.removeprefix("Which value stands at the path ").removesuffix("?").split(" > ")


@pytest.mark.parametrize("records", [0, 3])
@pytest.mark.parametrize(("depth", "ask"), [(1, 1), (3, 0), (4, 4), (4, 2)])
def test_the_answer_stands_at_its_path_and_nowhere_else(
    records: int, depth: int, ask: int, count_words: Count, made_texts: Path
) -> None:
    depths = set()
    for example in make("json_nested", count_words, made_texts, records=records, depth=depth, ask=ask):
        assert len(json.loads(example.context)) == records or not records
        value: Any = json.loads(example.context)
        path = path_of(example)
        for key in path:
            value = value[key]
        assert value == example.answers[0]
        assert example.context.count(f'"{value}"') == 1
        assert json.loads(example.answer_prefix + 'x"' + "}" * len(path))
        depths.add(len(path) - 1)
    assert depths == {ask} if ask else len(depths) > 1


def test_structure_outweighs_content(count_words: Count, made_texts: Path) -> None:
    def leaves(value: Any) -> list[str]:
        return (
            [value] if isinstance(value, str) else [leaf for item in value.values() for leaf in leaves(item)]
        )

    for example in make("json_nested", count_words, made_texts):
        content = sum(len(leaf) for leaf in leaves(json.loads(example.context)))
        assert content < 0.4 * len(example.context)


def test_every_record_has_a_name_of_its_own(count_words: Count, made_texts: Path) -> None:
    (example, *_) = make("json_nested", count_words, made_texts, length=9000, depth=1, fields=1)
    names: list[str] = []
    json.loads(example.context, object_pairs_hook=lambda pairs: names.extend(key for key, _ in pairs))
    names = [name for name in names if name != "city"]
    assert len(names) == len(set(names)) > PAIRS


@pytest.mark.parametrize("kind", ["dots", "words"])
@pytest.mark.parametrize("share", [0, 25, 60])
def test_the_filler_takes_its_share(kind: str, share: int, count_words: Count, made_texts: Path) -> None:
    for example in make("filler", count_words, made_texts, kind=kind, share=share):
        text, _, span = example.context.partition("\n\n")
        pieces = span.split()
        assert share / 100 - 0.01 <= len(pieces) / 600 <= share / 100
        assert set(pieces) <= ({"."} if kind == "dots" else set(EMPTY))
        assert text.count(" lives in the city of ") == 4
