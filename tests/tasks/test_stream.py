"""The stream of choices: fixed for ever, uniform, independent of order of use."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kvcert.tasks.stream import Stream


def test_the_stream_is_pinned() -> None:
    assert [Stream("task", 1, "niah").below(1000) for _ in range(2)] == [
        Stream("task", 1, "niah").below(1000)
    ] * 2
    stream = Stream("a", 1)
    # SHA-256 of "a/1#0", "a/1#1", ...: first eight bytes times 100, shifted by 64 bits.
    assert [stream.below(100) for _ in range(5)] == PINNED


PINNED = [83, 95, 91, 2, 50]


def test_draws_are_uniform() -> None:
    stream = Stream("uniform")
    counts = Counter(stream.below(10) for _ in range(10_000))
    chi2 = sum((counts[i] - 1000) ** 2 / 1000 for i in range(10))
    assert chi2 < 27.9  # 99.9 % quantile, 9 degrees of freedom


@given(st.lists(st.integers(), unique=True, max_size=20), st.integers())
def test_shuffle_and_sample_keep_the_items(items: list[int], key: int) -> None:
    assert sorted(Stream(key).shuffled(items)) == sorted(items)
    assert Stream(key).sample(items, len(items)) != [] or not items
    half = Stream(key).sample(items, len(items) // 2)
    assert len(set(half)) == len(items) // 2
    assert set(half) <= set(items)
