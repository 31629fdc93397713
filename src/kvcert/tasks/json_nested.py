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

#: Names of the objects inside a record, from the outside in, and of the fields of every object: the same in all records,
#: so that only the whole path tells one value from another.
LEVELS = ("unit", "part", "slot")
FIELDS = ("label", "group", "state", "route", "owner", "phase")
VALUES = (*CITIES, *ANIMALS, *COLOURS, *JOBS)
PAIRS = len(FIRST_NAMES) * len(LAST_NAMES)


@register
class JsonNested(Task):
    """Records that fill the prompt, each with `depth` nested objects; the score is 1 if the value asked for is found."""

    name = "json_nested"
    about = "a value at a path in a document of nested JSON records"
    params: ClassVar[dict[str, Param]] = {
        "depth": Param(3, "objects inside one another in a record", 1, len(LEVELS) + 1),
        "fields": Param(2, "fields of each object beside the next one", 1, len(FIELDS)),
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
        levels = LEVELS[: params["depth"] - 1]
        paths = [(*levels[:k], field) for k in range(params["depth"]) for field in FIELDS[: params["fields"]]]
        asked = stream.choice([path for path in paths if params["ask"] in (0, len(path))])
        answer = stream.choice(VALUES)
        others = [value for value in VALUES if value != answer]
        pairs = stream.shuffled(range(PAIRS))
        # Two tokens or more a field. The first record holds the answer; the last of the others may be cut short.
        most = room.length // 2
        values = [stream.choice(others) for _ in range(len(paths) + most)]
        target = _record(paths, values[: len(paths)])
        _put(target, asked, answer)
        place = stream.below(10_000)

        def build(n: int) -> Example:
            records: list[dict[str, Any]] = []
            for start in range(0, n, len(paths)):
                part = values[len(paths) + start : len(paths) + min(start + len(paths), n)]
                records.append(_record(paths, part))
            named = [(_name(pairs, number), record) for number, record in enumerate(records, 1)]
            named.insert(place * (len(named) + 1) // 10_000, (_name(pairs, 0), target))
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
        _put(record, path, value)
    return record


def _put(record: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    for key in path[:-1]:
        record = record.setdefault(key, {})
    record[path[-1]] = value


def _name(pairs: list[int], number: int) -> str:
    """A name of its own for each record; after all pairs of names a numeral is added."""
    rounds, pair = number // PAIRS, pairs[number % PAIRS]
    name = f"{FIRST_NAMES[pair // len(LAST_NAMES)]} {LAST_NAMES[pair % len(LAST_NAMES)]}"
    return f"{name} {rounds + 1}" if rounds else name
