"""RULER's aggregation tasks: the ten common words of a numbered list, the three frequent words of a coded text."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from kvcert.tasks import register
from kvcert.tasks.base import Draw, Room
from kvcert.tasks.ruler import RULER, Ruler


@register
class RulerCwe(Ruler):
    """Ten words stand in the list more often than the others; the score is the share of them in the answer."""

    name = "ruler_cwe"
    about = "RULER common words: the ten most common of a list"
    opening = "the ones that appear most often.\n"
    asking = "Question: What are the 10 most common words"
    new_tokens = 120
    source = RULER

    def bounds(self, library: SimpleNamespace, room: Room, draw: Draw) -> tuple[int, int]:
        # Different words in the list; the ten common ones at least, and a number and a word are two tokens or more.
        return 11, min(room.length // 2, len(library.cwe.WORDS))

    def write(
        self, library: SimpleNamespace, size: int, room: Room, draw: Draw
    ) -> tuple[str, str, list[str]]:
        # The length decides how often words are repeated (fewer times below 4,096 tokens). The worked example that the
        # library makes beside the prompt is not part of its task, and not of ours.
        _, text, outputs = library.cwe.generate_input_output(size, room.length)
        return (*_before_answer(text, library.cwe.CONFIG["answer_prefix"]), outputs)


@register
class RulerFwe(Ruler):
    """Word frequencies follow a zeta distribution; the score is the share of the three most frequent in the answer."""

    name = "ruler_fwe"
    about = "RULER frequent words: the three most frequent of a coded text"
    opening = "most frequently appeared coded words. "
    asking = "Question: Do not provide any explanation."
    new_tokens = 50
    source = RULER

    def bounds(self, library: SimpleNamespace, room: Room, draw: Draw) -> tuple[int, int]:
        # Words drawn; from 100 on the three ranks that are asked for differ in frequency. A vocabulary under four words
        # has no three to ask for: no size will do.
        return 100, room.length if _vocabulary(room) >= 4 else 0

    def write(
        self, library: SimpleNamespace, size: int, room: Room, draw: Draw
    ) -> tuple[str, str, list[str]]:
        # With a bound that nothing exceeds the library writes exactly `size` words.
        text, outputs, _ = library.fwe.generate_input_output(
            sys.maxsize, _Unbounded(), num_words=size, vocab_size=_vocabulary(room)
        )
        return (*_before_answer(text, library.fwe.CONFIG["answer_prefix"]), outputs)


def _vocabulary(room: Room) -> int:
    """Different coded words, as the library has them at this length."""
    return room.length // 50


def _before_answer(text: str, prefix: str) -> tuple[str, str]:
    return text[: text.rindex(prefix)].strip(), prefix.strip()


class _Unbounded:
    """A tokenizer that finds every text short enough: the size is chosen outside."""

    def __call__(self, text: str) -> Any:
        return SimpleNamespace(input_ids=())
