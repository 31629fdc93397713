"""Real text: one HotpotQA question, its two supporting paragraphs among distractors."""

from __future__ import annotations

from typing import Any

from kvcert.sources import HOTPOTQA
from kvcert.tasks import register, texts
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.pack import paragraphs
from kvcert.tasks.scoring import contains
from kvcert.tasks.stream import Stream


@register
class HotpotLong(Task):
    """HotpotQA with both supporting paragraphs and distractors; yes/no questions are left out."""

    name = "hotpot_long"
    about = "two-hop HotpotQA question over its paragraphs and distractors"
    params = {
        "answer_words": Param(3, "longest accepted answer, in words (the answer must fit the new tokens)", 1, 12),
        "distractors": Param("other", "paragraphs of other questions, or this question's own", choices=("other", "own")),
        "prefix": Param("short", "answer prefix: none, or short", choices=("none", "short")),
    }

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        pool = texts.hotpot(draw.texts)
        entry = pool[draw.item(self.name, len(pool))]
        answer = entry["answer"]
        gold = [f"{title}: {text}" for title, text in entry["gold"]]
        known = any(contains(text, answer) for text in gold)
        if answer in ("yes", "no") or not known or len(answer.split()) > params["answer_words"]:
            return None
        others = list(entry["other"]) if params["distractors"] == "own" else []
        while sum(len(text.split()) for _, text in others) < room.length:
            others.append(stream.choice(stream.choice(pool)["gold"]))
        fillers = [f"{title}: {text}" for title, text in stream.shuffled(others)]
        fillers = [text for text in dict.fromkeys(fillers) if text not in gold and not contains(text, answer)]

        def build(context: str) -> Example:
            return Example(
                draw.index,
                "Read the texts and answer the question with a few words from the texts.",
                context,
                f"Question: {entry['question']}",
                "Answer:" if params["prefix"] == "short" else "",
                (answer,),
                HOTPOTQA.attribution,
            )

        return paragraphs(stream, room, gold, fillers, build)
