"""RULER's question answering: the documents of one question among documents of others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

from kvcert.sources import HOTPOTQA, SQUAD
from kvcert.tasks import register
from kvcert.tasks.base import FILL, Draw, Example, Room
from kvcert.tasks.ruler import RULER, Ruler
from kvcert.tasks.ruler_library import metrics, questions
from kvcert.tasks.stream import Stream

#: Selections of documents that are tried for one question: documents are long and must fill the room.
SELECTIONS = 16


class Reading(Ruler):
    """A question of `data` and its documents; the score is the share of the accepted answers in the reply.

    RULER itself takes one accepted answer for enough; lm-eval's metric, used here, divides by their number.
    """

    opening = "The following are given documents.\n\n"
    asking = "Question: "
    new_tokens = 32
    data: ClassVar[str]

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        for _ in range(SELECTIONS):
            example = super().make(stream, room, params, draw)
            if example is None or room.tokens(example) >= FILL * room.length:
                return example
        return None

    def bounds(self, library: SimpleNamespace, room: Room, draw: Draw) -> tuple[int, int]:
        asked, documents = questions(draw.texts, self.data)
        least = len(asked[self._item(asked, draw)]["context"])
        # With all documents the library would shuffle its own list, and the next example would depend on this one.
        return least, min(least + room.length // 40, len(documents) - 1)

    def write(
        self, library: SimpleNamespace, size: int, room: Room, draw: Draw
    ) -> tuple[str, str, list[str]]:
        asked, documents = questions(draw.texts, self.data)
        item = self._item(asked, draw)
        text, outputs = library.qa.generate_input_output(item, size, qas=asked, docs=documents)
        return text, library.qa.CONFIG["answer_prefix"], outputs

    def _item(self, asked: list[dict[str, Any]], draw: Draw) -> int:
        return draw.item(self.name, len(asked))

    def score(self, prediction: str, example: Example) -> float:
        """The library's `string_match_part` of one prediction."""
        library = metrics()
        return float(
            library.string_match_part(library.postprocess_pred([prediction]), [list(example.answers)])
        )


@register
class RulerQaSquad(Reading):
    """Questions of SQuAD 2.0 with an answer."""

    name = "ruler_qa_squad"
    about = "RULER question answering on SQuAD"
    data = "squad"
    source = f"{RULER}; {SQUAD.attribution}"


@register
class RulerQaHotpot(Reading):
    """Questions of HotpotQA; each comes with its ten documents, so short lengths do not fit."""

    name = "ruler_qa_hotpot"
    about = "RULER question answering on HotpotQA"
    data = "hotpotqa"
    source = f"{RULER}; {HOTPOTQA.attribution}"
