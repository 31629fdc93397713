"""RULER on the real texts with the real tokenizer (no model): rendered as lm-eval renders it, cut where we say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvcert import config as configuration
from kvcert import tasks
from kvcert.prompts import message, prompt_counter, render
from kvcert.punkt import nltk_folder, prepare_punkt
from kvcert.tasks.base import FILL
from kvcert.tasks.ruler_library import generators

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real_texts")]

#: Tasks that config/ruler.yaml does not have, at the shortest round length at which the default model's tokenizer fits.
OTHERS = {"ruler_vt": 768, "ruler_cwe": 768, "ruler_fwe": 768, "ruler_qa_squad": 768, "ruler_qa_hotpot": 2048}


@pytest.fixture(scope="session")
def ruler_texts(cache: Path) -> Path:
    prepare_punkt(cache, lambda line: None)
    return cache / "texts"


def entries(root: Path) -> list[dict[str, Any]]:
    study = configuration.load(root / "config" / "config.yaml", root / "config" / "ruler.yaml")["study"]
    return study["tasks"] + [{"name": name, "length": length} for name, length in OTHERS.items()]


def test_prompts_are_lm_evals_and_fit(root: Path, tokenizer: Any, ruler_texts: Path) -> None:
    count = prompt_counter(tokenizer)
    for entry in entries(root):
        task = tasks.get(entry["name"])
        for example in task.examples(entry, 2607, [0, 3], count, ruler_texts):
            prompt = render(tokenizer, example, task)
            # lm-eval opens the assistant's turn with the prefix and asks the template to leave it open.
            turns = [
                {"role": "user", "content": message(example)},
                {"role": "assistant", "content": example.answer_prefix},
            ]
            assert prompt.text == tokenizer.apply_chat_template(
                turns, tokenize=False, continue_final_message=True
            )
            assert FILL * entry["length"] - 2 <= len(prompt.ids) <= entry["length"]
            before, after = prompt.ids[: prompt.n_context], prompt.ids[prompt.n_context :]
            assert example.context[-40:].rstrip() in tokenizer.decode(before)
            assert example.question in tokenizer.decode(after)
            assert len(after) < 0.2 * entry["length"]


def test_the_needle_grid_leaves_room_for_its_answers(root: Path, tokenizer: Any, ruler_texts: Path) -> None:
    for entry in entries(root):
        if "max_new_tokens" not in entry:
            continue
        for example in tasks.get(entry["name"]).examples(
            entry, 2607, range(2), prompt_counter(tokenizer), ruler_texts
        ):
            answer = " " + ", ".join(example.answers)
            assert len(tokenizer(answer)["input_ids"]) <= entry["max_new_tokens"], entry["name"]


def test_the_prepared_splitter_keeps_abbreviations_together(ruler_texts: Path) -> None:
    from nltk.data import FileSystemPathPointer
    from nltk.tokenize.punkt import PunktSentenceTokenizer, load_punkt_params

    generators(ruler_texts)  # NLTK opens files below its own path only
    # From its own folder: NLTK keeps the first splitter of a process, here perhaps that of another test.
    folder = nltk_folder(ruler_texts) / "tokenizers" / "punkt_tab" / "english"
    splitter = PunktSentenceTokenizer(load_punkt_params(FileSystemPathPointer(str(folder))))
    assert splitter.tokenize("Mr. Smith left. He was late.") == ["Mr. Smith left.", "He was late."]
