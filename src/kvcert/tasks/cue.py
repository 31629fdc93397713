"""The answer prefix of the reading tasks: the words that stand before the answer in the text.

A 135M model answers an open question in a sentence of its own (SQuAD F1 near 0.1). Given the question *and* the first
words of the text's own statement, it completes the statement, so the score measures what it retrieves from the cache.
"""

from __future__ import annotations

import re

from kvcert.tasks.params import Param
from kvcert.tasks.scoring import contains

#: Parameters that every reading task takes.
READING: dict[str, Param] = {
    "answer_words": Param(3, "longest accepted answer, in words (the answer must fit the new tokens)", 1, 12),
    "cue_words": Param(
        3, "words of the text before the answer that begin the reply; 0: a fixed phrase", 0, 12
    ),
}

#: The answer prefix when no cue is asked for.
PLAIN = 'According to the text, the answer is "'


def cue(text: str, answer: str, words: int, start: int | None = None) -> str | None:
    """The last `words` words before `answer` in its sentence, or None if there are fewer than min(words, 2).

    Parameters
    ----------
    text, answer
        A paragraph and an answer that stands in it.
    words
        How many words; 0 gives the plain prefix.
    start
        The answer's first character; by default its first occurrence as whole words.
    """
    if words == 0:
        return PLAIN
    if start is None:
        found = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text)
        if found is None:
            return None
        start = found.start()
    before = re.split(r"(?<=[.!?])\s", text[:start])[-1].split()[-words:]
    # Inside a word (a range such as 1277-1347) the prefix ends without a blank, as the text does.
    found_cue = " ".join(before)
    if len(before) < min(words, 2) or contains(found_cue, answer):
        return None
    return found_cue
