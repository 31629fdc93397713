"""RULER's eight needle tasks: keys and values of several kinds hidden in essays, in repeated noise, or in other needles."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

from kvcert.sources import ESSAYS
from kvcert.tasks import register
from kvcert.tasks.base import Draw, Room
from kvcert.tasks.ruler import RULER, Ruler
from kvcert.tasks.ruler_library import essay_words

#: Name → haystack, kind of key, kind of value, and how many keys, values per key, and keys asked for.
KINDS: dict[str, tuple[str, str, str, int, int, int]] = {
    "single_1": ("repeat", "words", "numbers", 1, 1, 1),
    "single_2": ("essay", "words", "numbers", 1, 1, 1),
    "single_3": ("essay", "words", "uuids", 1, 1, 1),
    "multikey_1": ("essay", "words", "numbers", 4, 1, 1),
    "multikey_2": ("needle", "words", "numbers", 1, 1, 1),
    "multikey_3": ("needle", "uuids", "uuids", 1, 1, 1),
    "multivalue": ("essay", "words", "numbers", 1, 4, 1),
    "multiquery": ("essay", "words", "numbers", 4, 1, 4),
}
#: A haystack's name in words.
HAYSTACKS = {"repeat": "repeated noise", "essay": "essays", "needle": "other needles"}


class Needle(Ruler):
    """One kind of needle task; the score is the share of the values asked for that stand in the answer."""

    opening = " afterwards.\n"
    asking = "What "
    new_tokens = 128
    kind: ClassVar[tuple[str, str, str, int, int, int]]

    def bounds(self, library: SimpleNamespace, room: Room, draw: Draw) -> tuple[int, int]:
        if self.kind[0] == "essay":
            return 1, room.length  # words
        return self.kind[3] * self.kind[
            4
        ], room.length // 8  # sentences; the library needs one for each needle

    def write(
        self, library: SimpleNamespace, size: int, room: Room, draw: Draw
    ) -> tuple[str, str, list[str]]:
        from lm_eval.tasks.ruler.niah_utils import TEMPLATE

        haystack, key, value, keys, values, asked = self.kind
        text, outputs, query = library.niah.generate_input_output(
            size,
            # Not `get_haystack("essay")`, which downloads: the same words from the prepared essays.
            essay_words(draw.texts) if haystack == "essay" else library.niah.get_haystack(haystack),
            type_haystack=haystack,
            num_needle_k=keys,
            type_needle_k=key,
            num_needle_v=values,
            type_needle_v=value,
            template=TEMPLATE,
            num_needle_q=asked,
        )
        one = asked * values == 1
        # In the library this sentence stands inside the function that also sizes; tested to be the same.
        prefix = (
            f"The special magic {value[:-1] if one else value} for {query} mentioned in the provided text "
            f"{'is' if one else 'are'}"
        )
        return text, prefix, outputs


def _declare() -> None:
    for name, kind in KINDS.items():
        about = f"RULER {name}: {kind[5] * kind[4]} of {kind[3] * kind[4]} needles in {HAYSTACKS[kind[0]]}"
        source = RULER + (f"; background: {ESSAYS.attribution}" if kind[0] == "essay" else "")
        members: dict[str, Any] = {
            "name": f"ruler_niah_{name}",
            "about": about,
            "kind": kind,
            "source": source,
            "__doc__": f"{about}.",
            "__module__": __name__,
        }
        register(type(f"Ruler_niah_{name}", (Needle,), members))


_declare()
