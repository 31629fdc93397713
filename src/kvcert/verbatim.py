"""A benchmark's own prompt text: special tokens inside it made harmless, too long a text cut in the middle."""

from __future__ import annotations

import unicodedata
from typing import Any

from kvcert.errors import KvcertError


def fit(tokenizer: Any, content: str, question: str, at_most: int, where: str) -> tuple[str, str]:
    """A benchmark's prompt and its last part, the question, as they are rendered.

    Parameters
    ----------
    content, question
        The whole prompt text and the part behind the context, with which it ends.
    at_most
        Most tokens of the text, chat template not counted.

    Raises
    ------
    KvcertError
        The cut leaves less than the whole question.
    """
    content, question = disarm(tokenizer, content), disarm(tokenizer, question)
    shorter = cut_middle(tokenizer, content, at_most)
    # A tokenizer that normalises to NFC gives the question back in that form.
    for kept in (question, unicodedata.normalize("NFC", question)):
        if shorter.endswith(kept):
            return shorter, kept
    raise KvcertError(
        f"{where}: cut to {at_most} tokens, the half that is kept at the end does not hold the whole question; "
        "use a larger length"
    )


def cut_middle(tokenizer: Any, text: str, at_most: int) -> str:
    """The text itself if it has at most `at_most` tokens, else the first and the last half of that many, decoded.

    The rule of LongBench's pred.py: the tokenizer's own special tokens (a BOS) count and are left out of the result,
    halves are rounded down, and characters that a half begins or ends within become replacement characters. Spaces are
    never tidied up, whatever the tokenizer's settings say.
    """
    ids = tokenizer(text, verbose=False)["input_ids"]  # too long for the model is what this is about
    if len(ids) <= at_most:
        return text
    half = at_most // 2
    parts = (ids[:half], ids[len(ids) - half :])
    return "".join(
        str(tokenizer.decode(part, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        for part in parts
    )


def disarm(tokenizer: Any, text: str) -> str:
    """The text with a space behind the first character of every special token that it spells (`<s>` becomes `< s>`).

    Real documents hold such texts (code, HTML). Tokenised as they stand they would end or begin turns; a benchmark
    cannot leave the row out either. Text without them is returned as it is.
    """
    for token in sorted(special_texts(tokenizer), key=len, reverse=True):
        text = text.replace(token, f"{token[:1]} {token[1:]}")
    return text


def special_texts(tokenizer: Any) -> set[str]:
    """Every text that the tokenizer turns into a special token."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    texts = {str(token.content) for token in added if token.special} | set(tokenizer.all_special_tokens)
    return {text for text in texts if len(text) > 1}
