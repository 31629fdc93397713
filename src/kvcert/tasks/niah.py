"""Synthetic: k numbers hidden in real essays, one of them asked for."""

from __future__ import annotations

from typing import Any, ClassVar

from kvcert.sources import ESSAYS, SYNTHETIC
from kvcert.tasks import register, texts
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.pack import plant
from kvcert.tasks.scoring import share_found
from kvcert.tasks.stream import Stream
from kvcert.tasks.words import ANIMALS


@register
class Niah(Task):
    """Needle in a haystack: `needles` numbers of `digits` digits, one asked for; the score is 1 if it is in the answer."""

    name = "niah"
    about = "one of k numbers hidden in essays"
    params: ClassVar[dict[str, Param]] = {
        "needles": Param(1, "how many numbers are hidden", 1, len(ANIMALS)),
        "digits": Param(7, "digits of each number", 3, 9),
    }

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        keys = stream.sample(ANIMALS, params["needles"])
        first = 10 ** (params["digits"] - 1)
        numbers: dict[str, str] = {}
        while len(numbers) < len(keys):
            number = str(first + stream.below(9 * first))
            if number not in numbers.values():
                numbers[keys[len(numbers)]] = number
        asked = stream.choice(keys)
        needles = [f"The special magic number for {key} is {number}." for key, number in numbers.items()]

        def build(context: str) -> Example:
            return Example(
                draw.index,
                "Some special magic numbers are hidden in the following text. Remember them.",
                context,
                f"What is the special magic number for {asked} mentioned in the text?",
                f"The special magic number for {asked} is",
                (numbers[asked],),
                f"{SYNTHETIC}; background: {ESSAYS.attribution}",
            )

        return plant(stream, room, texts.essays(draw.texts), needles, build)

    def score(self, prediction: str, example: Example) -> float:
        return share_found(prediction, example.answers)
