"""Random choices that depend on nothing but a key: SHA-256 in counter mode, the same on every platform and version."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Stream:
    """A stream of choices named by `key` (any values with a stable `str`). Streams of different keys are independent."""

    def __init__(self, *key: object) -> None:
        self._key = "/".join(map(str, key)).encode()
        self._counter = 0

    def below(self, n: int) -> int:
        """A uniform integer in 0..n-1 (multiply-shift on 64 bits; the bias is below n/2^64)."""
        block = hashlib.sha256(self._key + b"#" + str(self._counter).encode()).digest()
        self._counter += 1
        return (int.from_bytes(block[:8], "big") * n) >> 64

    def choice(self, items: Sequence[T]) -> T:
        """One item."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All items in random order (Fisher-Yates)."""
        out = list(items)
        for last in range(len(out) - 1, 0, -1):
            other = self.below(last + 1)
            out[last], out[other] = out[other], out[last]
        return out

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """`k` different items in random order."""
        out = list(items)
        for place in range(k):
            other = place + self.below(len(out) - place)
            out[place], out[other] = out[other], out[place]
        return out[:k]
