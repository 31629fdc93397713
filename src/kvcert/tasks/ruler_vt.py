"""RULER's variable tracking: a chain of assignments in repeated noise, behind one worked example."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from typing import Any

from kvcert.errors import KvcertError
from kvcert.tasks import register
from kvcert.tasks.base import Draw, Room
from kvcert.tasks.ruler import RULER, Ruler

#: Chains and assignments after the first, tokens of the worked example at most, and its step in lines of noise.
CHAINS, HOPS, EXAMPLE_TOKENS, EXAMPLE_STEP = 1, 4, 500, 5
#: More tokens than two draws of one size differ by.
SPARE = 60
ANSWER = " Answer: According to the chain(s) of variable assignment"


@register
class RulerVt(Ruler):
    """Five variables hold one value; the score is the share of their names in the answer."""

    name = "ruler_vt"
    about = "RULER variable tracking: which variables hold the value"
    opening = "hidden in the following text.\n\n"
    asking = "Question: Find all variables"
    new_tokens = 30
    source = RULER

    def bounds(self, library: SimpleNamespace, room: Room, draw: Draw) -> tuple[int, int]:
        # With fewer lines than a chain has links the library breaks the lines up and shortens the chain.
        return HOPS + 2, room.length // 10

    def write(
        self, library: SimpleNamespace, size: int, room: Room, draw: Draw
    ) -> tuple[str, str, list[str]]:
        worked = self._worked_example(library, room)
        text, outputs = library.vt.generate_input_output(size, CHAINS, HOPS)
        text = library.vt.randomize_icl(worked) + "\n\n" + text
        cut = text.rindex(ANSWER)
        return text[:cut], text[cut:].strip(), outputs

    def _worked_example(self, library: SimpleNamespace, room: Room) -> str:
        """The library's own few-shot example; its progress bars and notes are dropped."""
        meter = _Meter(room)
        smallest, _ = library.vt.generate_input_output(EXAMPLE_STEP, CHAINS, HOPS, is_icl=True)
        if meter.tokens(smallest) + self.new_tokens + SPARE > EXAMPLE_TOKENS:
            # The library would try the same size for ever.
            raise KvcertError(
                f"task {self.name}: this tokenizer needs more than {EXAMPLE_TOKENS} tokens for the worked example"
            )
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            made = library.vt.sys_vartrack_w_noise_random(
                tokenizer=meter,
                num_samples=1,
                max_seq_length=EXAMPLE_TOKENS,
                incremental=EXAMPLE_STEP,
            )[0]
        return made["input"] + " " + " ".join(made["outputs"]) + "\n\n"


class _Meter:
    """What the library asks of a tokenizer: how many tokens a text has."""

    def __init__(self, room: Room) -> None:
        self.count, self.empty = room.count_tokens, room.count_tokens("")

    def __call__(self, text: str) -> Any:
        return SimpleNamespace(input_ids=range(self.tokens(text)))

    def tokens(self, text: str) -> int:
        return self.count(text) - self.empty
