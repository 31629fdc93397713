"""Prompts: the golden rendering of the default model, the split, the BOS rule, and refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kvcert.errors import KvcertError
from kvcert.files import sha256_json
from kvcert.prompts import Prompt, prompt_counter, render
from kvcert.tasks import Example

GOLDEN_TEXT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\nRead the text.\n\nMaria Novak lives in the city of Oslo. Flat 1234567 is hers.\n\n"
    "In which city does Maria Novak live?<|im_end|>\n<|im_start|>assistant\nMaria Novak lives in the city of"
)


def example(**changes: str) -> Example:
    parts = {
        "instruction": "Read the text.",
        "context": "Maria Novak lives in the city of Oslo. Flat 1234567 is hers.",
        "question": "In which city does Maria Novak live?",
        "answer_prefix": "Maria Novak lives in the city of",
    } | changes
    return Example(index=0, answers=("Oslo",), source="test", **parts)


def plain(**changes: Any) -> Any:
    """A byte-level tokenizer without merges: no template, no BOS unless given."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=core, **changes)


@pytest.mark.slow
def test_the_golden_prompt(tokenizer: Any) -> None:
    prompt = render(tokenizer, example(), "test")
    assert prompt.text == GOLDEN_TEXT
    assert prompt.ids[:8] == (1, 9690, 198, 2683, 359, 253, 5356, 5646)
    assert (len(prompt.ids), prompt.n_context) == GOLDEN_COUNTS
    assert sha256_json(list(prompt.ids)) == GOLDEN_IDS
    assert prompt.templated


GOLDEN_COUNTS = (77, 54)
GOLDEN_IDS = "31af3294256f0bf5ccc0dc103d86a8461746c017a4e2b0083c7b59b460f1e73a"


@pytest.mark.slow
def test_bos_is_the_turn_marker_and_is_not_added_again(tokenizer: Any) -> None:
    prompt = render(tokenizer, example(), "test")
    assert tokenizer.bos_token == "<|im_start|>"
    assert prompt.ids.count(tokenizer.bos_token_id) == 3  # system, user, assistant: the template's own
    assert prompt.ids[:2] == (tokenizer.bos_token_id, tokenizer.convert_tokens_to_ids("system"))


@pytest.mark.slow
def test_tokens_decode_to_the_text_and_digits_stand_alone(tokenizer: Any) -> None:
    prompt = render(tokenizer, example(), "test")
    assert tokenizer.decode(prompt.ids) == GOLDEN_TEXT
    assert tokenizer.tokenize(" 1234567") == ["Ġ", *"1234567"]
    assert max(tokenizer.get_vocab().values()) < 49152


@pytest.mark.slow
def test_the_split_is_at_the_question(tokenizer: Any) -> None:
    prompt = render(tokenizer, example(), "test")
    head, tail = (
        tokenizer.decode(prompt.ids[: prompt.n_context]),
        tokenizer.decode(prompt.ids[prompt.n_context :]),
    )
    assert head.endswith("is hers.\n\n")
    assert tail.startswith("In which city does Maria Novak live?<|im_end|>")


@pytest.mark.slow
def test_the_counter_counts_the_rendered_prompt(tokenizer: Any) -> None:
    bare = example(answer_prefix="")
    message = f"{bare.instruction}\n\n{bare.context}\n\n{bare.question}"
    assert prompt_counter(tokenizer)(message) == len(render(tokenizer, bare, "test").ids)


def test_a_question_that_also_stands_in_the_context_is_found_at_the_end() -> None:
    repeated = example(context="In which city does Maria Novak live? In Oslo.")
    prompt = render(plain(), repeated, "test")
    assert prompt.text[prompt.n_context :].startswith("In which city does Maria Novak live?\n")


def test_tokens_across_the_border_belong_to_the_question() -> None:
    # Two bytes of one character are two tokens with the same offsets; none may be split from its character.
    prompt = render(plain(), example(context="é", question="é?"), "test")
    before = len("Read the text.\n\né\n\n".encode())
    assert prompt.n_context == before


def test_without_a_template_the_text_is_plain_and_says_so() -> None:
    prompt = render(plain(), example(), "test")
    assert not prompt.templated
    assert prompt.text == GOLDEN_TEXT.split("user\n")[1].replace("<|im_end|>\n<|im_start|>assistant", "")


def test_a_bos_that_the_template_lacks_is_added_once() -> None:
    template = "{{ messages[0]['content'] }}\n"
    with_bos = plain(bos_token="<s>", chat_template=template)
    prompt = render(with_bos, example(), "test")
    assert prompt.text.startswith("<s>Read")
    assert prompt.ids.count(with_bos.bos_token_id) == 1
    assert prompt.text[3:] == render(plain(chat_template=template), example(), "test").text
    own = plain(bos_token="<s>", chat_template="<s>" + template)
    assert render(own, example(), "test") == prompt


@pytest.mark.parametrize(
    ("tokenizer_options", "changes", "message"),
    [
        ({}, {"question": "  "}, "the question is empty"),
        ({"bos_token": "<s>"}, {"context": "a <s> b"}, "contains the special token <s>"),
        ({"bos_token": "<s>", "chat_template": "<s><s>{{ messages[0]['content'] }}"}, {}, "exactly one BOS"),
        ({"chat_template": "{{ messages[0]['content'] | upper }}"}, {}, "alters the question"),
        ({"model_max_length": 20}, {}, "over the model's window of 20"),
    ],
)
def test_refusals(tokenizer_options: dict[str, Any], changes: dict[str, str], message: str) -> None:
    with pytest.raises(KvcertError, match=message) as caught:
        render(plain(**tokenizer_options), example(**changes), "niah")
    assert str(caught.value).startswith("task niah, example 0: ")
    assert "\n" not in str(caught.value)


def test_the_answer_needs_room_too() -> None:
    size = len(render(plain(), example(), "test").ids)
    assert isinstance(render(plain(), example(), "test", window=size + 5, reserve=5), Prompt)
    with pytest.raises(KvcertError, match=r"\(\+6 to answer\)"):
        render(plain(), example(), "test", window=size + 5, reserve=6)


def test_any_object_with_the_parts_renders() -> None:
    parts = SimpleNamespace(
        index=1, instruction="", context="a", question="b?", answer_prefix="c", joiner="\n\n", chat=True,
        at_most=None, origin="", turns=(),
    )  # fmt: skip
    assert render(plain(), parts).text == "a\n\nb?\nc"
