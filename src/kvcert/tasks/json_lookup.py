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

#: Fields that can be asked for: path inside the record, and how the question names it.
FIELDS = {
    ("home", "city"): "home city",
    ("work", "job"): "job",
    ("car", "colour"): "car colour",
}


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
        records: list[dict[str, Any]] = [
            {
                "name": person,
                "home": {"city": city, "floor": 1 + stream.below(9)},
                "work": {"job": job},
                "car": {"colour": colour},
            }
            for person, city, job, colour in zip(persons, cities, jobs, colours, strict=True)
        ]
        record = stream.choice(records)
        outer, inner = stream.choice(list(FIELDS))
        label = FIELDS[outer, inner]

        def build(context: str) -> Example:
            return Example(
                draw.index,
                "The text contains JSON records of persons. Read them.",
                context,
                f"What is the {label} in the record of {record['name']}?",
                f"In the record of {record['name']}, the {label} is",
                (record[outer][inner],),
                f"{SYNTHETIC}; background: {ESSAYS.attribution}",
            )

        return plant(stream, room, texts.essays(draw.texts), [json.dumps(item) for item in records], build)

    def score(self, prediction: str, example: Example) -> float:
        return share_found(prediction, example.answers)
