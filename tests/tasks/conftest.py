"""Helpers of the task tests: a counter that needs no model, and small texts with the shape of the real ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

CITY = ["Zagreb", "Porto", "Lyon", "Turin", "Graz", "Ghent", "Malmo", "Bergen", "Tartu", "Split"]


@pytest.fixture(scope="session")
def count_words() -> Callable[[str], int]:
    """A stand-in for the token counter: whitespace words, plus a template of 20."""
    return lambda text: len(text.split()) + 20


@pytest.fixture(scope="session")
def made_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with made-up essays, SQuAD and HotpotQA in the real files' formats."""
    folder = tmp_path_factory.mktemp("texts")
    sentences = [f"Sentence number {i} says that things happen for reason {i * 7 % 13}." for i in range(2000)]
    (folder / "essays.json").write_text(json.dumps({"text": "\n".join(sentences)}))
    articles, entries = [], []
    for i, city in enumerate(CITY * 3):
        context = (
            f"Item {i} is old. The museum of item {i} stands in the quiet town of {city}{i}, near a river."
            + " It is big." * 20
        )
        start = context.index(f"{city}{i}")
        answers = [{"text": f"{city}{i}", "answer_start": start}] * 2
        asked = {
            "question": f"Where is the museum of item {i}?",
            "id": str(i),
            "answers": answers,
            "is_impossible": False,
        }
        void = {"question": "Unanswerable?", "id": f"n{i}", "answers": [], "is_impossible": True}
        articles.append({"title": f"Item {i}", "paragraphs": [{"context": context, "qas": [void, asked]}]})
        pair = [[f"Item {i}", [context]], [f"Town {i}", [f"The town {i} has a mayor.", " It is small."]]]
        entry = {
            "_id": str(i),
            "question": asked["question"],
            "answer": f"{city}{i}",
            "context": [*pair, [f"Other {i}", ["Nothing."]]],
        }
        entries.append(entry | {"supporting_facts": [[f"Item {i}", 0], [f"Town {i}", 0]]})
    entries.append(entries[0] | {"answer": "yes"})
    (folder / "squad.json").write_text(json.dumps({"version": "v2.0", "data": articles}))
    (folder / "hotpotqa.json").write_text(json.dumps(entries))
    return folder
