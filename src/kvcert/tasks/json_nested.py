"""Synthetic: one large JSON document of nested records, and nothing else; one path asked for."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from kvcert.errors import KvcertError
from kvcert.sources import SYNTHETIC
from kvcert.tasks import register
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.scoring import share_found
from kvcert.tasks.stream import Stream
from kvcert.tasks.words import ANIMALS, CITIES, COLOURS, FIRST_NAMES, JOBS, LAST_NAMES

#: Names of the objects inside a record, from the outside in: the same in all records.
LEVELS = ("house", "room", "chest")
#: Fields of the objects, by depth; the columns hold cities, animals, colours and jobs.
FIELDS = (
    ("city", "pet", "colour", "job"),
    ("town", "animal", "paint", "trade"),
    ("port", "mascot", "shade", "role"),
    ("harbour", "emblem", "tint", "post"),
)
VALUES = (CITIES, ANIMALS, COLOURS, JOBS)
PAIRS = len(FIRST_NAMES) * len(LAST_NAMES)


@register
class JsonNested(Task):
    """Records and nothing else, each with `depth` nested objects; the score is 1 if the value asked for is found."""

    name = "json_nested"
    about = "a value at a path in a document of nested JSON records"
    params: ClassVar[dict[str, Param]] = {
        "records": Param(
            0, "how many; each then ends with an array that fills the room; 0: as many as fit", 0, 40
        ),
        "depth": Param(3, "objects inside one another in a record", 1, len(LEVELS) + 1),
        "fields": Param(3, "fields of each object beside the next one", 1, len(VALUES)),
        "ask": Param(0, "depth of the field asked for; 0: drawn", 0, len(LEVELS) + 1),
    }

    def check_params(self, params: dict[str, Any]) -> dict[str, Any]:
        checked = super().check_params(params)
        if checked["ask"] > checked["depth"]:
            raise KvcertError(
                f"task {self.name}: params.ask: {checked['ask']} is more than params.depth ({checked['depth']})"
            )
        return checked

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        depth, fields = params["depth"], params["fields"]
        paths = [(*LEVELS[:k], key) for k in range(depth) for key in FIELDS[k][:fields]]
        place = stream.choice([i for i, path in enumerate(paths) if params["ask"] in (0, len(path))])
        asked, answer = paths[place], stream.choice(VALUES[place % fields])
        pairs = stream.shuffled(range(PAIRS))

        def values(count: int) -> list[str]:
            """Values for `count` fields in the records' order, none of them the answer."""
            pools = [[value for value in VALUES[i] if value != answer] for i in range(fields)]
            return [stream.choice(pools[i % fields]) for i in range(count)]

        target = _record(
            paths, [answer if i == place else value for i, value in enumerate(values(len(paths)))]
        )
        where = stream.below(10_000)
        # A number, and a field all the more, is a token or more.
        most = room.length
        numbers = [stream.below(10) for _ in range(most)]
        other = values(max(most, params["records"] * len(paths)))

        def records(n: int) -> list[dict[str, Any]]:
            """The records beside the target: as many as `n` fields give, or a fixed number with `n` numbers in all."""
            k = params["records"]
            filled = (k - 1) * len(paths) if k else n
            starts = range(0, filled, len(paths))
            made = [_record(paths, other[start : min(start + len(paths), filled)]) for start in starts]
            for i, record in enumerate([target, *made] if k else []):
                record["log"] = numbers[i:n:k]
            return made

        def build(n: int) -> Example:
            named = [(_name(pairs, number), record) for number, record in enumerate(records(n), 1)]
            named.insert(where * (len(named) + 1) // 10_000, (_name(pairs, 0), target))
            steps = " > ".join((_name(pairs, 0), *asked))
            return Example(
                draw.index,
                "The text is a JSON document. Read it.",
                json.dumps(dict(named)),
                f"Which value stands at the path {steps}?",
                "".join(f'{{"{key}": ' for key in (_name(pairs, 0), *asked)) + '"',
                (answer,),
                SYNTHETIC,
            )

        return room.fill(build, most)

    def score(self, prediction: str, example: Example) -> float:
        return share_found(prediction, example.answers)


def _record(paths: list[tuple[str, ...]], values: list[str]) -> dict[str, Any]:
    """Nested objects that hold `values` at the first of the `paths`, the outer ones first."""
    record: dict[str, Any] = {}
    for path, value in zip(paths, values, strict=False):
        inner = record
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = value
    return record


def _name(pairs: list[int], number: int) -> str:
    """A name of its own for each record; after all pairs of names a numeral is added."""
    rounds, pair = number // PAIRS, pairs[number % PAIRS]
    name = f"{FIRST_NAMES[pair // len(LAST_NAMES)]} {LAST_NAMES[pair % len(LAST_NAMES)]}"
    return f"{name} {rounds + 1}" if rounds else name
