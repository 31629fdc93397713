"""Real text: one SQuAD question, its paragraph among paragraphs of other articles."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from kvcert.sources import SQUAD
from kvcert.tasks import register, texts
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.cue import READING, cue
from kvcert.tasks.pack import paragraphs
from kvcert.tasks.scoring import contains
from kvcert.tasks.stream import Stream

#: A paragraph that can be asked about: its article, its text, and (question, answers, answer prefix) triples.
Item = tuple[str, str, list[tuple[str, tuple[str, ...], str]]]


@register
class SquadLong(Task):
    """SQuAD 2.0 (answerable questions) packed to the length; different examples of a seed use different paragraphs."""

    name = "squad_long"
    about = "SQuAD question over its paragraph and others"
    params: ClassVar[dict[str, Param]] = READING

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        items = pool(draw.texts, params["answer_words"], params["cue_words"])
        title, gold, asked = items[draw.item(self.name, len(items))]
        question, answers, prefix = stream.choice(asked)
        everything, others = texts.squad(draw.texts), [""]
        while sum(len(text.split()) for text in others) < room.length:
            other = stream.choice(everything)
            free = not any(contains(other["text"], answer) for answer in answers)
            if free and other["title"] != title and other["text"] not in others:
                others.append(other["text"])

        def build(context: str) -> Example:
            return Example(
                draw.index,
                "Read the text and answer the question with a few words from the text.",
                context,
                f"Question: {question}",
                prefix,
                answers,
                SQUAD.attribution,
            )

        return paragraphs(stream, room, [gold], others[1:], build)


@lru_cache(maxsize=4)
def pool(folder: Path, answer_words: int, cue_words: int) -> list[Item]:
    """Paragraphs with at least one question whose answers are short and whose cue exists."""
    items: list[Item] = []
    for entry in texts.squad(folder):
        asked = []
        for question, answers, start in entry["asked"]:
            prefix = cue(entry["text"], answers[0], cue_words, start)
            if prefix and max(len(answer.split()) for answer in answers) <= answer_words:
                asked.append((question, answers, prefix))
        if asked:
            items.append((entry["title"], entry["text"], asked))
    return items
