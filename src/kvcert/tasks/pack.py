"""Contexts of exact length: sentences around planted statements, and paragraphs around the ones that matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvcert.tasks.base import Example, Room
from kvcert.tasks.stream import Stream


def plant(
    stream: Stream,
    room: Room,
    sentences: Sequence[str],
    planted: Sequence[str],
    build: Callable[[str], Example],
) -> Example | None:
    """Put `planted` statements between the sentences of a random stretch of text, so that the prompt fills the room.

    Each statement gets its own random depth; their order is kept. The last sentence may be cut at a word.

    Parameters
    ----------
    build
        Makes the example from a context.
    """
    # One token is at most one word here, so `length` words are always enough.
    start = stream.below(max(1, len(sentences) - room.length))
    depths = sorted(stream.below(10_000) for _ in planted)
    words = [
        (word, end) for sentence in sentences[start : start + room.length] for word, end in marked(sentence)
    ][: room.length]

    return room.fill(lambda n: build(woven(words, planted, depths, n)), len(words))


def woven(words: Sequence[tuple[str, bool]], planted: Sequence[str], depths: Sequence[int], n: int) -> str:
    """The first n words with each planted statement after the sentence that ends nearest to its depth (of 10,000).

    A word is marked where it ends a sentence; `depths` ascend.
    """
    ends = [0, *(i + 1 for i in range(n) if words[i][1]), n]
    cuts = [min(ends, key=lambda end: abs(end - depth * n / 10_000)) for depth in depths]
    parts, last = [], 0
    for cut, statement in zip(cuts, planted, strict=True):
        parts += [word for word, _ in words[last:cut]] + [statement]
        last = cut
    return " ".join(parts + [word for word, _ in words[last:n]])


def marked(sentence: str) -> list[tuple[str, bool]]:
    """Words of a sentence; the last one is marked."""
    words = sentence.split()
    return [(word, i == len(words) - 1) for i, word in enumerate(words)]


def paragraphs(
    stream: Stream, room: Room, gold: Sequence[str], others: Sequence[str], build: Callable[[str], Example]
) -> Example | None:
    """Mix `gold` paragraphs with as many `others` as fit, in random order; the last of the others is cut at a word."""
    if room.tokens(build("\n\n".join(gold))) > room.length:
        return None
    words = [
        word for number, text in enumerate(others) for word in ((number, piece) for piece in text.split())
    ]
    places = sorted(stream.below(10_000) for _ in gold)
    ordered = stream.shuffled(gold)

    def context(n: int) -> str:
        texts: dict[int, list[str]] = {}
        for number, word in words[:n]:
            texts.setdefault(number, []).append(word)
        parts = [" ".join(part) for part in texts.values()]
        for done, (place, paragraph) in enumerate(zip(places, ordered, strict=True)):
            parts.insert(done + place * (len(parts) - done + 1) // 10_000, paragraph)
        return "\n\n".join(parts)

    return room.fill(lambda n: build(context(n)), len(words))
