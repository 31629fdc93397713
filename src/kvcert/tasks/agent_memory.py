"""Synthetic: an agent's history, one tool result a turn; the final question asks for a record of one of the turns."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from kvcert.errors import KvcertError
from kvcert.sources import ESSAYS, SYNTHETIC
from kvcert.tasks import register, texts
from kvcert.tasks.base import Draw, Example, Param, Room, Task
from kvcert.tasks.pack import marked, woven
from kvcert.tasks.scoring import share_found
from kvcert.tasks.stream import Stream
from kvcert.tasks.words import ANIMALS, CITIES, FIRST_NAMES, LAST_NAMES

#: Scripted acknowledgements of the agent.
ACKNOWLEDGEMENTS = ("Noted.", "Stored.", "I have read it.", "Understood.")
TOOLS = ("inventory", "tickets", "calendar")


class Record(NamedTuple):
    """One fact of a tool result: its sentence, the question about it, the words before the answer, the answer."""

    text: str
    question: str
    prefix: str
    answer: str


@register
class AgentMemory(Task):
    """`turns` tool results with `facts` records each, amid essays; one record, of any turn, is asked for at the end.

    The history is a transcript inside one user message, so that every chat template can hold it. A streaming run
    compresses it at the end of every turn.
    """

    name = "agent_memory"
    about = "a record of one of t turns of tool results"
    multi_turn = True
    params: ClassVar[dict[str, Param]] = {
        "turns": Param(3, "how many turns the history has", 1, 16),
        "facts": Param(2, "how many records each turn brings", 1, 8),
    }

    def check_params(self, params: dict[str, Any]) -> dict[str, Any]:
        checked = super().check_params(params)
        if checked["turns"] * checked["facts"] > len(ANIMALS):
            raise KvcertError(
                f"task agent_memory: params.facts: {checked['turns']} turns of {checked['facts']} records are more "
                f"than the {len(ANIMALS)} different ones there are"
            )
        return checked

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example | None:
        turns, facts = params["turns"], params["facts"]
        tools = [stream.choice(TOOLS) for _ in range(turns)]
        found = records(stream, [tool for tool in tools for _ in range(facts)])
        by_turn = [found[turn * facts : (turn + 1) * facts] for turn in range(turns)]
        spoken = [stream.choice(ACKNOWLEDGEMENTS) for _ in range(turns)]
        depths = [sorted(stream.below(10_000) for _ in range(facts)) for _ in range(turns)]
        asked = stream.below(turns)
        record = stream.choice(by_turn[asked])
        # One token is at most one word here, so `length` words are always enough.
        sentences, most = texts.essays(draw.texts), room.length // turns + 1
        starts = [stream.below(max(1, len(sentences) - most)) for _ in range(turns)]
        words = [
            [word for sentence in sentences[start : start + most] for word in marked(sentence)][:most]
            for start in starts
        ]

        def build(n: int) -> Example:
            told = []
            for turn in range(turns):
                size = n // turns + (turn < n % turns)
                text = woven(words[turn], [item.text for item in by_turn[turn]], depths[turn], size)
                head = f"Turn {turn + 1}. The tool `{tools[turn]}` returned: "
                told.append(("\n\n" if turn else "") + f"{head}{text}\nAgent: {spoken[turn]}")
            return Example(
                draw.index,
                "The history of an agent: one tool result in every turn. Remember its records.",
                "".join(told),
                record.question,
                record.prefix,
                (record.answer,),
                f"{SYNTHETIC}, asked about turn {asked + 1} of {turns}; background: {ESSAYS.attribution}",
                turns=tuple(told),
            )

        return room.fill(build, turns * min(len(part) for part in words))

    def score(self, prediction: str, example: Example) -> float:
        return share_found(prediction, example.answers)


def records(stream: Stream, tools: list[str]) -> list[Record]:
    """One record for each tool named; no two share a key or an answer."""
    count = len(tools)
    animals, cities = stream.sample(ANIMALS, count), stream.sample(CITIES, count)
    names = zip(stream.sample(FIRST_NAMES, count), stream.sample(LAST_NAMES, count), strict=True)
    people = [f"{first} {last}" for first, last in names]
    halls = stream.sample(range(100, 1000), count)
    made = {
        "inventory": [
            _record(f"The {animal} crates are stored in hall", str(hall), f"Where are the {animal} crates stored?")
            for animal, hall in zip(animals, halls, strict=True)
        ],
        "tickets": [
            _record(f"The ticket of {person} was opened in the city of", city, f"Where was the ticket of {person} opened?")
            for person, city in zip(people, cities, strict=True)
        ],
        "calendar": [
            _record(f"The meeting with {person} takes place in the city of", city, f"Where is the meeting with {person}?")
            for person, city in zip(people, cities, strict=True)
        ],
    }  # fmt: skip
    return [made[tool][place] for place, tool in enumerate(tools)]


def _record(before: str, answer: str, question: str) -> Record:
    return Record(f"{before} {answer}.", question, before, answer)


def asked_turn(example: Example) -> int:
    """The turn that the question is about, from 1: the one that holds the answer's statement."""
    wanted = f"{example.answer_prefix} {example.answers[0]}"
    return 1 + next(place for place, turn in enumerate(example.turns) if wanted in turn)
