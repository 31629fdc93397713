"""Token F1 between two answers, as question answering scores it; here the two-run baseline's agreement."""

from __future__ import annotations

import re
import string
from collections import Counter

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def tokens(text: str) -> list[str]:
    """Lower-cased words without punctuation and articles (the SQuAD normalisation)."""
    return ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split()


def token_f1(first: str, second: str) -> float:
    """F1 of the two bags of tokens in [0, 1]; two empty answers agree (1), an empty and a full one do not (0)."""
    one, two = tokens(first), tokens(second)
    if not one or not two:
        return float(one == two)
    common = sum((Counter(one) & Counter(two)).values())
    return 2 * common / (len(one) + len(two))
