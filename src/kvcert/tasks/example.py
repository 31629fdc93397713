"""An example, the room its prompt may take, and which one of the many it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kvcert.files import sha256_json
from kvcert.prompts import message
from kvcert.tasks.stream import Stream

Count = Callable[[str], int]

#: Tokens kept free because the answer prefix is counted at the end of the message, not behind the template.
SEAM = 2


@dataclass(frozen=True)
class Example:
    """One item: the prompt's parts, the answers, and where the text comes from (attribution).

    `answers` are alternatives for question answering and all required for retrieval tasks; the task's `score` knows.
    `joiner` stands between instruction, context and question; a benchmark with a template of its own has it empty.
    `chat` is false where the benchmark prescribes plain text even for a chat model. An answer ends before the first of
    the texts in `stop`. `at_most` marks a benchmark's own text, which was not made to fit: rendered to the letter, cut in
    the middle where it has more tokens than that. `origin` is its file and line, for messages.
    A history that is compressed turn by turn has its `turns`: texts that make up the context.
    """

    index: int
    instruction: str
    context: str
    question: str
    answer_prefix: str
    answers: tuple[str, ...]
    source: str
    joiner: str = "\n\n"
    chat: bool = True
    stop: tuple[str, ...] = ()
    at_most: int | None = None
    origin: str = ""
    turns: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Hash of the content, for the log."""
        return sha256_json([self.instruction, self.context, self.question, self.answer_prefix, self.answers])


@dataclass(frozen=True)
class Draw:
    """Which example is being made: seed, index, attempt, and the folder of texts."""

    seed: int
    index: int
    attempt: int
    texts: Path

    def item(self, name: str, n: int) -> int:
        """An item number in 0..n-1 such that different examples of one seed get different items (n > 2,000)."""
        order = _order(name, self.seed, n)
        return order[(self.index + 503 * self.attempt) % n]


@lru_cache(maxsize=8)
def _order(name: str, seed: int, n: int) -> list[int]:
    return Stream("order", name, seed, n).shuffled(range(n))


@dataclass(frozen=True)
class Room:
    """The length of a prompt and the means to fill it."""

    length: int
    count_tokens: Count

    def tokens(self, example: Example) -> int:
        """Tokens of the whole rendered prompt, answer prefix included and room for the seam."""
        return self.count_tokens(message(example) + "\n" + example.answer_prefix) + SEAM

    def fill(self, build: Callable[[int], Example], most: int) -> Example | None:
        """The example `build(n)` with the largest n ≤ `most` that fits, by bisection; None if even n = 0 does not.

        `build(n)` must grow with n.
        """
        low, high = 0, most
        if self.tokens(build(0)) > self.length:
            return None
        while low < high:
            middle = (low + high + 1) // 2
            if self.tokens(build(middle)) <= self.length:
                low = middle
            else:
                high = middle - 1
        return build(low)
