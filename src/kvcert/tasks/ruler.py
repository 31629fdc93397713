"""RULER's tasks as far as they are alike: text from lm-eval's generators, cut at the question, filled to the length."""

from __future__ import annotations

from abc import abstractmethod
from types import SimpleNamespace
from typing import Any, ClassVar

from kvcert.installed import versions
from kvcert.tasks.base import Draw, Example, Room, Task
from kvcert.tasks.ruler_library import generators, isolated, metrics
from kvcert.tasks.stream import Stream

#: Whom to thank; part of every example's source.
RULER = "RULER: C.-P. Hsieh et al. (arXiv 2404.06654), Apache-2.0, through lm-eval's generators"


class Ruler(Task):
    """A RULER task. A subclass names the two cuts of its template and writes `bounds` and `write`.

    The library sizes its prompts in coarse steps (500 words of essay, 10 lines of noise) under a bound that counts the
    answer too. Here its generator is asked for every size by bisection, under the same random state, and the largest
    prompt is taken that fits `length` when it is rendered.
    """

    #: The instruction ends with the last occurrence of `opening`; the question is the last line that begins with `asking`.
    opening: ClassVar[str]
    asking: ClassVar[str]
    #: New tokens that the benchmark allows: what `max_new_tokens` of the task's entry should say.
    new_tokens: ClassVar[int]
    source: ClassVar[str]

    @abstractmethod
    def bounds(self, library: SimpleNamespace, room: Room, draw: Draw) -> tuple[int, int]:
        """The smallest and the largest size worth asking for, in the generator's own unit."""

    @abstractmethod
    def write(
        self, library: SimpleNamespace, size: int, room: Room, draw: Draw
    ) -> tuple[str, str, list[str]]:
        """The library's prompt of a size, what the answer begins with, and the expected strings."""

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        library = generators(draw.texts)
        seed = stream.below(2**63)
        least, most = self.bounds(library, room, draw)
        if most < least:
            return None

        def build(n: int) -> Example:
            with isolated(library, seed):
                text, prefix, outputs = self.write(library, least + n, room, draw)
            return self._cut(draw.index, text, prefix, outputs)

        return room.fill(build, most - least)

    def _cut(self, index: int, text: str, prefix: str, outputs: list[str]) -> Example:
        """The parts of a prompt; joined without anything between them they are the prompt."""
        question = text.rindex("\n" + self.asking) + 1
        context = text.rindex(self.opening, 0, question) + len(self.opening)
        return Example(
            index,
            text[:context],
            text[context:question],
            text[question:],
            prefix,
            tuple(outputs),
            self.source,
            joiner="",
        )

    def provenance(self, example: Example) -> dict[str, str | None]:
        return versions("lm_eval", "nltk", "wonderwords")

    def score(self, prediction: str, example: Example) -> float:
        """Share of the expected strings in the prediction, upper and lower case alike (the library's string match)."""
        library = metrics()
        return float(
            library.string_match_all(library.postprocess_pred([prediction]), [list(example.answers)])
        )
