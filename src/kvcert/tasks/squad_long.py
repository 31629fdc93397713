"""Real text: one SQuAD question, its paragraph among paragraphs of other articles."""

from __future__ import annotations

from typing import Any

from kvcert.sources import SQUAD
from kvcert.tasks import register, texts
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.pack import paragraphs
from kvcert.tasks.scoring import contains
from kvcert.tasks.stream import Stream


@register
class SquadLong(Task):
    """SQuAD 2.0 (answerable questions) packed to the length; one paragraph, hence one article, per example."""

    name = "squad_long"
    about = "SQuAD question over its paragraph and others"
    params = {
        "answer_words": Param(3, "longest accepted answer, in words (the answer must fit the new tokens)", 1, 12),
        "prefix": Param("short", "answer prefix: none, or short", choices=("none", "short")),
    }

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        pool = texts.squad(draw.texts)
        title, gold, asked = pool[draw.item(self.name, len(pool))]
        fitting = [(q, a) for q, a in asked if all(len(answer.split()) <= params["answer_words"] for answer in a)]
        if not fitting:
            return None
        question, answers = stream.choice(fitting)
        others: list[str] = []
        while sum(len(text.split()) for text in others) < room.length:
            other_title, text, _ = stream.choice(pool)
            if other_title != title and text not in others and not any(contains(text, answer) for answer in answers):
                others.append(text)

        def build(context: str) -> Example:
            return Example(
                draw.index,
                "Read the text and answer the question with a few words from the text.",
                context,
                f"Question: {question}",
                "Answer:" if params["prefix"] == "short" else "",
                answers,
                SQUAD.attribution,
            )

        return paragraphs(stream, room, [gold], others, build)
