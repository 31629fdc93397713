"""Scores in [0, 1] of a free-text answer. Normalisation and token F1 follow the SQuAD evaluation script."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable

_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "–—‘’“”", " "))
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """Lower case, without punctuation and articles, single spaces. Commas between digits vanish: `1,000` is `1000`."""
    text = re.sub(r"(?<=\d),(?=\d)", "", text.lower())
    return " ".join(_ARTICLES.sub(" ", text.translate(_PUNCTUATION)).split())


def contains(prediction: str, answer: str) -> bool:
    """Whether the normalised answer stands in the normalised prediction as whole words. An empty answer never does."""
    wanted = normalise(answer)
    return bool(wanted) and f" {wanted} " in f" {normalise(prediction)} "


def token_f1(prediction: str, answer: str) -> float:
    """Harmonic mean of token precision and recall after normalisation; 0 if either side is empty."""
    left, right = normalise(prediction).split(), normalise(answer).split()
    shared = sum((Counter(left) & Counter(right)).values())
    return 2.0 * shared / (len(left) + len(right)) if shared else 0.0


def qa_score(prediction: str, answers: Iterable[str]) -> float:
    """Best over the accepted answers of: 1 if contained as whole words, else token F1 (small models are verbose)."""
    return max(
        (1.0 if contains(prediction, answer) else token_f1(prediction, answer) for answer in answers),
        default=0.0,
    )


def share_found(prediction: str, answers: Iterable[str]) -> float:
    """Share of the required answers that the prediction contains as whole words."""
    found = [contains(prediction, answer) for answer in answers]
    return sum(found) / len(found) if found else 0.0
