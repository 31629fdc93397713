"""Scores: edge cases, ranges and symmetries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcert.tasks.scoring import contains, normalise, qa_score, share_found, token_f1

words = st.lists(st.sampled_from(["paris", "london", "red", "blue", "12", "the", "an"]), max_size=6).map(
    " ".join
)


@pytest.mark.parametrize(
    ("prediction", "answer", "score"),
    [
        (" It was in 1972, I think", "1972", 1.0),
        ("19723", "1972", 0.0),
        ("The Beatles!", "beatles", 1.0),
        ("1,234,567.", "1234567", 1.0),
        ("new york city", "York, New", pytest.approx(0.8)),
        ("", "Paris", 0.0),
        ("the", "the", 0.0),
        ("Parisian", "Paris", 0.0),
    ],
)
def test_known_scores(prediction: str, answer: str, score: float) -> None:
    assert qa_score(prediction, [answer]) == score


def test_normalise_drops_articles_and_punctuation() -> None:
    assert normalise("The U.S.-based  “an” Apple") == "u s based apple"


def test_no_answers_score_zero() -> None:
    assert qa_score("anything", []) == 0.0
    assert share_found("anything", []) == 0.0


def test_best_alternative_counts() -> None:
    assert qa_score("in the Alps", ["Himalaya", "Alps"]) == 1.0


@given(words, words)
def test_f1_is_symmetric_and_in_range(left: str, right: str) -> None:
    assert token_f1(left, right) == token_f1(right, left)
    assert 0.0 <= token_f1(left, right) <= 1.0
    if normalise(left):
        assert token_f1(left, left) == 1.0


@given(words, words, words)
def test_containment_survives_more_words(before: str, answer: str, after: str) -> None:
    assert contains(f"{before} {answer} {after}", answer) == bool(normalise(answer))


@given(
    st.lists(st.sampled_from(["rome", "oslo", "cairo", "lima"]), min_size=1, max_size=4, unique=True),
    st.integers(0, 4),
)
def test_share_found_counts_answers(answers: list[str], n: int) -> None:
    named = answers[:n]
    assert share_found(" and ".join(named), answers) == len(named) / len(answers)
