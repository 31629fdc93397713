"""Rendering to the letter: the split, LongBench's cut in the middle, special tokens in real texts, the BOS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.longbench.made import row, write

from kvcert import tasks
from kvcert.errors import KvcertError
from kvcert.prompts import message, render
from kvcert.tasks.longbench.catalogue import DATASETS
from kvcert.verbatim import cut_middle, disarm

TEMPLATE = "<s>user: {{ messages[0]['content'] }}\nassistant:"


def example(texts: Path, name: str, length: int = 4000, **changes: Any) -> Any:
    write(texts / "longbench", name, [row(name, **changes)])
    return next(tasks.get(f"longbench_{name}").examples({"length": length}, 1, [0], len, texts))


def official(tokenizer: Any, prompt: str, max_length: int) -> str:
    """The lines of LongBench's pred.py that cut a prompt, as they stand there."""
    tokenized_prompt = tokenizer(prompt, truncation=False, return_tensors="pt").input_ids[0]
    if len(tokenized_prompt) > max_length:
        half = int(max_length / 2)
        prompt = tokenizer.decode(tokenized_prompt[:half], skip_special_tokens=True) + tokenizer.decode(
            tokenized_prompt[-half:], skip_special_tokens=True
        )
    return prompt


@pytest.mark.parametrize("adds_bos", [False, True])
@pytest.mark.parametrize("name", ["multi_news", "passage_retrieval_zh", "lcc", "trec", "dureader"])
def test_the_cut_is_the_official_one(
    tokens_of: Callable[..., Any], tmp_path: Path, name: str, adds_bos: bool
) -> None:
    tokenizer = tokens_of(adds_bos, chat_template=TEMPLATE)
    whole = example(tmp_path, name, words=200)
    text = message(whole)
    size = len(tokenizer(text)["input_ids"])
    for length in (size - 7, size - 100, size - 101, size - 1, size, size + 1):
        cut = official(tokenizer, text, length)
        assert cut_middle(tokenizer, text, length) == cut
        assert (cut == text) == (length >= size)
        prompt = render(tokenizer, example(tmp_path, name, length, words=200), name)
        frame = TEMPLATE.split("{{")[0], TEMPLATE.split("}}")[1]
        assert prompt.text == (cut.join(frame) if whole.chat else cut)


@pytest.mark.slow
@pytest.mark.parametrize("length", [60, 61, 90])
def test_the_cut_is_the_official_one_with_the_real_tokenizer(
    tokenizer: Any, tmp_path: Path, length: int
) -> None:
    for name in ("passage_retrieval_zh", "multi_news", "lcc"):
        text = message(example(tmp_path, name, words=200))
        assert cut_middle(tokenizer, text, length) == official(tokenizer, text, length)


@pytest.mark.parametrize("name", DATASETS)
def test_the_context_ends_before_the_question(
    tokens_of: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    tokenizer, made = tokens_of(chat_template=TEMPLATE), example(tmp_path, name)
    prompt = render(tokenizer, made, name)
    before = tokenizer.decode(prompt.ids[: prompt.n_context])
    after = tokenizer.decode(prompt.ids[prompt.n_context :])
    assert before.rstrip().endswith(made.context.rstrip())
    assert after.startswith(made.question.strip())
    assert prompt.templated == made.chat


def test_too_short_a_length_is_refused_by_file_and_line(
    tokens_of: Callable[..., Any], tmp_path: Path
) -> None:
    made = example(tmp_path, "hotpotqa", 200)
    with pytest.raises(KvcertError, match="does not hold the whole question; use a larger length") as caught:
        render(tokens_of(), made, "longbench_hotpotqa")
    assert str(caught.value).startswith("task longbench_hotpotqa, example 0 (hotpotqa.jsonl, line 1): ")


def test_a_prompt_over_the_window_is_refused_by_file_and_line(
    tokens_of: Callable[..., Any], tmp_path: Path
) -> None:
    made = example(tmp_path, "hotpotqa", 4000, words=500)
    with pytest.raises(KvcertError, match=r"\(hotpotqa\.jsonl, line 1\).* over the model's window of 1000"):
        render(tokens_of(), made, "longbench_hotpotqa", window=1000)


def test_special_tokens_of_a_text_are_harmless_and_the_change_is_one_space(
    tokens_of: Callable[..., Any], tmp_path: Path
) -> None:
    tokenizer = tokens_of(chat_template=TEMPLATE)
    code = "a<s>b</s> = List<s>()"
    made = example(tmp_path, "repobench-p", context=code, input="x</s>\n")
    prompt = render(tokenizer, made, "t")
    assert "a< s>b< /s> = List< s>()x< /s>\nNext line" in prompt.text
    assert not set(prompt.ids) & {tokenizer.bos_token_id, tokenizer.eos_token_id}
    assert disarm(tokenizer, "no such thing < s>") == "no such thing < s>"


@pytest.mark.slow
def test_every_special_token_of_the_real_tokenizer_is_harmless(tokenizer: Any, tmp_path: Path) -> None:
    named = " ".join(token.content for token in tokenizer.added_tokens_decoder.values() if token.special)
    prompt = render(tokenizer, example(tmp_path, "lcc", context=f"x = 1 {named}\n"), "t")
    special = {key for key, token in tokenizer.added_tokens_decoder.items() if token.special}
    assert not set(prompt.ids) & special


def test_plain_text_begins_as_the_tokenizer_begins_any_text(
    tokens_of: Callable[..., Any], tmp_path: Path
) -> None:
    made = example(tmp_path, "samsum", input="Dialogue: hi\nSummary: ")
    for adds_bos in (False, True):
        tokenizer = tokens_of(adds_bos, chat_template=TEMPLATE)
        prompt = render(tokenizer, made, "t")
        assert list(prompt.ids) == tokenizer(message(made))["input_ids"]
        assert (prompt.ids[0] == tokenizer.bos_token_id) == adds_bos
        assert prompt.text.endswith("\nSummary: ")


def test_a_model_without_a_template_gets_the_prompt_to_the_letter(
    tokens_of: Callable[..., Any], tmp_path: Path
) -> None:
    made = example(tmp_path, "qasper")
    prompt = render(tokens_of(), made, "t")
    assert (prompt.text, prompt.templated) == (message(made), False)
