"""Synthetic: who lives where in essays, then a span of tokens without content, then the question."""

from __future__ import annotations

from typing import Any, ClassVar

from kvcert.sources import ESSAYS, SYNTHETIC
from kvcert.tasks import register, texts
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.pack import plant
from kvcert.tasks.scoring import share_found
from kvcert.tasks.stream import Stream
from kvcert.tasks.words import CITIES, FIRST_NAMES, LAST_NAMES

#: Words that say nothing.
EMPTY = ("well", "so", "anyway", "okay", "now", "then", "hmm", "right", "yes", "indeed", "again", "still")


@register
class Filler(Task):
    """`facts` statements, one asked for, with a span of filler between them and the question; the score is 1 if found."""

    name = "filler"
    about = "who lives in which city, before a span of content-free filler"
    params: ClassVar[dict[str, Param]] = {
        "facts": Param(4, "how many persons are hidden", 1, 30),
        "kind": Param("dots", "what the filler is made of", choices=("dots", "words")),
        "share": Param(50, "percent of the prompt's tokens that are filler", 0, 80),
    }

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        k = params["facts"]
        firsts, lasts = stream.sample(FIRST_NAMES, k), stream.sample(LAST_NAMES, k)
        persons = [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]
        cities = dict(zip(persons, stream.sample(CITIES, k), strict=True))
        who = stream.choice(persons)
        span = _span(stream, room, params["kind"], room.length * params["share"] // 100)

        def build(context: str) -> Example:
            return Example(
                draw.index,
                "Read the text and remember in which city each person lives.",
                f"{context}\n\n{span}" if span else context,
                f"In which city does {who} live?",
                f"{who} lives in the city of",
                (cities[who],),
                f"{SYNTHETIC}; background: {ESSAYS.attribution}",
            )

        planted = [f"{person} lives in the city of {city}." for person, city in cities.items()]
        return plant(stream, room, texts.essays(draw.texts), planted, build)

    def score(self, prediction: str, example: Example) -> float:
        return share_found(prediction, example.answers)


def _span(stream: Stream, room: Room, kind: str, tokens: int) -> str:
    """As much filler as `tokens` hold, by bisection: dots with blanks between them, or empty words in random order."""
    pieces = [stream.choice(EMPTY) if kind == "words" else "." for _ in range(tokens)]
    empty = room.count_tokens("")
    low, high = 0, tokens
    while low < high:
        middle = (low + high + 1) // 2
        if room.count_tokens(" ".join(pieces[:middle])) - empty <= tokens:
            low = middle
        else:
            high = middle - 1
    return " ".join(pieces[:low])
