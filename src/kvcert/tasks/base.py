"""What a task is: a name, declared parameters, examples made from a key, and a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from kvcert.errors import KvcertError
from kvcert.tasks.example import Count, Draw, Example, Room
from kvcert.tasks.params import Param
from kvcert.tasks.scoring import qa_score
from kvcert.tasks.stream import Stream

__all__ = ["Draw", "Example", "Param", "Room", "Task"]

#: A prompt fills at least this share of its length, and never more than all of it.
FILL = 0.93
#: Tries per example before a length is called too small.
ATTEMPTS = 8


class Task(ABC):
    """Base class of the task families; a subclass sets `name` and `params` and writes `make` (and `score`, if other)."""

    name: ClassVar[str]
    about: ClassVar[str]
    params: ClassVar[dict[str, Param]] = {}
    #: True where the examples have `turns`, at whose ends the streaming setting compresses the history.
    multi_turn: ClassVar[bool] = False

    def check_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Fill defaults and refuse unknown names and bad values, in one line that names the key."""
        where = f"task {self.name}: params"
        if unknown := sorted(set(params) - set(self.params)):
            raise KvcertError(
                f"{where}.{unknown[0]}: unknown; {self.name} knows {', '.join(sorted(self.params)) or 'none'}"
            )
        return {
            key: param.check(f"{where}.{key}", params.get(key, param.default))
            for key, param in self.params.items()
        }

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
        raise KvcertError(
            f"task {self.name}: length {room.length} does not fit example {index}; use a larger length"
        )

    def longest_answer(self) -> int | None:
        """Most new tokens that a benchmark prescribes for an answer; None where any number will do."""
        return None

    def check_answer(self, max_new_tokens: int) -> None:
        """Refuse more new tokens than the benchmark prescribes; fewer are the configuration's own choice."""
        most = self.longest_answer()
        if most is not None and max_new_tokens > most:
            raise KvcertError(
                f"task {self.name}: max_new_tokens is {max_new_tokens}, the benchmark allows {most}; "
                f"give the task max_new_tokens: {most} or fewer"
            )

    def provenance(self, example: Example) -> dict[str, str | None]:
        """What else an example comes from, for the log's `versions`: libraries, the hash of its file."""
        return {}

    @abstractmethod
    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        """Make one example, or None if this draw does not fit the room (another one is tried)."""

    def score(self, prediction: str, example: Example) -> float:
        """Score of a prediction in [0, 1]; the default is question answering with alternative answers."""
        return qa_score(prediction, example.answers)
