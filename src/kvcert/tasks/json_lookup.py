"""Synthetic: nested JSON records inside real essays, one field of one record asked for."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from kvcert.sources import ESSAYS, SYNTHETIC
from kvcert.tasks import register, texts
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.pack import plant
from kvcert.tasks.scoring import share_found
from kvcert.tasks.stream import Stream
from kvcert.tasks.words import CITIES, COLOURS, FIRST_NAMES, JOBS

#: Fields that can be asked for: (outer, inner) keys of the nested record.
FIELDS = (("home", "city"), ("work", "job"), ("car", "colour"))


@register
class JsonLookup(Task):
    """`records` nested records about persons; the score is 1 if the value asked for is in the answer."""

    name = "json_lookup"
    about = "a field of one of k nested JSON records in essays"
    params: ClassVar[dict[str, Param]] = {"records": Param(3, "how many records are hidden", 1, 12)}

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        k = params["records"]
        persons, cities = stream.sample(FIRST_NAMES, k), stream.sample(CITIES, k)
        jobs, colours = stream.sample(JOBS, k), stream.sample(COLOURS, k)
        records: dict[str, dict[str, Any]] = {
            person: {
                "home": {"city": city, "floor": 1 + stream.below(9)},
                "work": {"job": job},
                "car": {"colour": colour},
            }
            for person, city, job, colour in zip(persons, cities, jobs, colours, strict=True)
        }
        person = stream.choice(persons)
        outer, inner = stream.choice(FIELDS)

        def build(context: str) -> Example:
            return Example(
                draw.index,
                "The text contains JSON records of persons. Read them.",
                context,
                f'What is the "{inner}" of the "{outer}" in the record of {person}?',
                f'{{"{person}": {{"{outer}": {{"{inner}": "',
                (records[person][outer][inner],),
                f"{SYNTHETIC}; background: {ESSAYS.attribution}",
            )

        planted = [json.dumps({name: record}) for name, record in records.items()]
        return plant(stream, room, texts.essays(draw.texts), planted, build)

    def score(self, prediction: str, example: Example) -> float:
        return share_found(prediction, example.answers)
