"""Real text: one HotpotQA question, its two supporting paragraphs among distractors."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from kvcert.sources import HOTPOTQA
from kvcert.tasks import register, texts
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.cue import READING, cue
from kvcert.tasks.pack import paragraphs
from kvcert.tasks.scoring import contains
from kvcert.tasks.stream import Stream


@register
class HotpotLong(Task):
    """HotpotQA with both supporting paragraphs and distractors; yes/no questions are left out."""

    name = "hotpot_long"
    about = "two-hop HotpotQA question over its paragraphs and distractors"
    params: ClassVar[dict[str, Param]] = {
        **READING,
        "distractors": Param(
            "other", "paragraphs of other questions, or this question's own", choices=("other", "own")
        ),
    }

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        items = pool(draw.texts, params["answer_words"], params["cue_words"])
        entry, prefix = items[draw.item(self.name, len(items))]
        everything, answer = texts.hotpot(draw.texts), entry["answer"]
        others = stream.shuffled(entry["other"]) if params["distractors"] == "own" else []
        others = [item for item in others if not contains(item[1], answer)]
        while sum(len(text.split()) for _, text in others) < room.length:
            other = stream.choice(stream.choice(everything)["gold"])
            if other not in others and other not in entry["gold"] and not contains(" ".join(other), answer):
                others.append(other)

        def build(context: str) -> Example:
            return Example(
                draw.index,
                "Read the texts and answer the question with a few words from the texts.",
                context,
                f"Question: {entry['question']}",
                prefix,
                (answer,),
                HOTPOTQA.attribution,
            )

        return paragraphs(
            stream, room, [_titled(item) for item in entry["gold"]], [_titled(item) for item in others], build
        )


def _titled(paragraph: tuple[str, str]) -> str:
    """A paragraph with its title in front, as bridging questions need it."""
    return f"{paragraph[0]}: {paragraph[1]}"


@lru_cache(maxsize=4)
def pool(folder: Path, answer_words: int, cue_words: int) -> list[tuple[dict[str, Any], str]]:
    """Entries whose answer is short, not yes or no, stands in a supporting paragraph and has a cue there."""
    items = []
    for entry in texts.hotpot(folder):
        answer = entry["answer"]
        if answer in ("yes", "no") or len(answer.split()) > answer_words:
            continue
        cues = (cue(text, answer, cue_words) for _, text in entry["gold"] if answer in text)
        if prefix := next((found for found in cues if found), None):
            items.append((entry, prefix))
    return items
