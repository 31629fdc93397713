"""What a task is: a name, declared parameters, examples made from a key, and a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kvcert.errors import KvcertError
from kvcert.files import sha256_json
from kvcert.prompts import message
from kvcert.tasks.scoring import qa_score
from kvcert.tasks.stream import Stream

Count = Callable[[str], int]

#: A prompt fills at least this share of its length, and never more than all of it.
FILL = 0.93
#: Tokens kept free because the answer prefix is counted at the end of the message, not behind the template.
SEAM = 2
#: Tries per example before a length is called too small.
ATTEMPTS = 8


@dataclass(frozen=True)
class Example:
    """One item: the prompt's parts, the answers, and where the text comes from (attribution).

    `answers` are alternatives for question answering and all required for retrieval tasks; the task's `score` knows.
    """

    index: int
    instruction: str
    context: str
    question: str
    answer_prefix: str
    answers: tuple[str, ...]
    source: str

    @property
    def sha256(self) -> str:
        """Hash of the content, for the log."""
        return sha256_json([self.instruction, self.context, self.question, self.answer_prefix, self.answers])


@dataclass(frozen=True)
class Param:
    """A task parameter: an integer in [low, high], or one of `choices`; with its default and its meaning."""

    default: Any
    about: str
    low: int = 0
    high: int = 1_000_000
    choices: tuple[str, ...] = ()

    def check(self, where: str, value: Any) -> Any:
        """Return `value` or raise a KvcertError that names the parameter."""
        if self.choices:
            if value not in self.choices:
                raise KvcertError(f"{where}: must be one of {', '.join(self.choices)}, not {value!r}")
        elif isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise KvcertError(f"{where}: must be an integer from {self.low} to {self.high}, not {value!r}")
        return value


class Task(ABC):
    """Base class of the task families; a subclass sets `name` and `params` and writes `make` (and `score`, if other)."""

    name: ClassVar[str]
    about: ClassVar[str]
    params: ClassVar[dict[str, Param]] = {}

    def check_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Fill defaults and refuse unknown names and bad values, in one line that names the key."""
        where = f"task {self.name}: params"
        if unknown := sorted(set(params) - set(self.params)):
            raise KvcertError(f"{where}.{unknown[0]}: unknown; {self.name} knows {', '.join(sorted(self.params)) or 'none'}")
        return {key: param.check(f"{where}.{key}", params.get(key, param.default)) for key, param in self.params.items()}

    def examples(
        self, spec: dict[str, Any], seed: int, indices: Iterable[int], count_tokens: Count, texts_dir: Path
    ) -> Iterator[Example]:
        """Yield the examples `indices` of one task entry. Example i depends on (seed, task, length, params, i) only.

        Parameters
        ----------
        spec
            The task entry of the configuration: `length` (tokens of the whole prompt, at most) and `params`.
        count_tokens
            Tokens of the rendered prompt with a given user message, `kvcert.prompts.prompt_counter(tokenizer)`.
        texts_dir
            Folder of the prepared texts.

        Raises
        ------
        KvcertError
            Bad parameters, missing texts, or a length too small for the task.
        """
        params, length = self.check_params(dict(spec.get("params") or {})), int(spec["length"])
        for index in indices:
            yield self._example(Room(length, count_tokens), params, seed, index, Path(texts_dir))

    def _example(self, room: Room, params: dict[str, Any], seed: int, index: int, texts: Path) -> Example:
        for attempt in range(ATTEMPTS):
            stream = Stream("task", seed, self.name, room.length, index, attempt)
            example = self.make(stream, room, params, Draw(seed, index, attempt, texts))
            if example is not None and FILL * room.length <= room.tokens(example) <= room.length:
                return example
        raise KvcertError(f"task {self.name}: length {room.length} does not fit example {index}; use a larger length")

    @abstractmethod
    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        """Make one example, or None if this draw does not fit the room (another one is tried)."""

    def score(self, prediction: str, example: Example) -> float:
        """Score of a prediction in [0, 1]; the default is question answering with alternative answers."""
        return qa_score(prediction, example.answers)


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


_ORDERS: dict[tuple[str, int, int], list[int]] = {}


def _order(name: str, seed: int, n: int) -> list[int]:
    key = (name, seed, n)
    if key not in _ORDERS:
        _ORDERS[key] = Stream("order", *key).shuffled(range(n))
    return _ORDERS[key]


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
