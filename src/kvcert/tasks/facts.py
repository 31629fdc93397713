"""Synthetic: k statements of who lives where inside real essays, one or several of them asked for."""

from __future__ import annotations

from typing import Any, ClassVar

from kvcert.errors import KvcertError
from kvcert.sources import ESSAYS, SYNTHETIC
from kvcert.tasks import register, texts
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.pack import plant
from kvcert.tasks.scoring import share_found
from kvcert.tasks.stream import Stream
from kvcert.tasks.words import CITIES, FIRST_NAMES, LAST_NAMES


@register
class Facts(Task):
    """`facts` person-city statements, `ask` of them asked for; the score is the share of cities in the answer."""

    name = "facts"
    about = "who lives in which city, hidden in essays"
    params: ClassVar[dict[str, Param]] = {
        "facts": Param(2, "how many persons are hidden", 1, 30),
        "ask": Param(1, "how many of them are asked for", 1, 4),
    }

    def check_params(self, params: dict[str, Any]) -> dict[str, Any]:
        checked = super().check_params(params)
        if checked["ask"] > checked["facts"]:
            raise KvcertError(
                f"task facts: params.ask: {checked['ask']} is more than params.facts ({checked['facts']})"
            )
        return checked

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        k = params["facts"]
        firsts, lasts = stream.sample(FIRST_NAMES, k), stream.sample(LAST_NAMES, k)
        persons = [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]
        cities = dict(zip(persons, stream.sample(CITIES, k), strict=True))
        asked = stream.sample(persons, params["ask"])
        who = " and ".join(asked)
        several = len(asked) > 1

        def build(context: str) -> Example:
            return Example(
                draw.index,
                "Read the text and remember in which city each person lives.",
                context,
                f"In which cities do {who} live, in this order?"
                if several
                else f"In which city does {who} live?",
                f"{who} live in" if several else f"{who} lives in the city of",
                tuple(cities[person] for person in asked),
                f"{SYNTHETIC}; background: {ESSAYS.attribution}",
            )

        planted = [f"{person} lives in the city of {city}." for person, city in cities.items()]
        return plant(stream, room, texts.essays(draw.texts), planted, build)

    def score(self, prediction: str, example: Example) -> float:
        return share_found(prediction, example.answers)
