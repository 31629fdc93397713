"""Decode problems made to break the arithmetic. Each returns `decode` arguments for a small shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from problems import poison, problem

Problem = dict[str, Any]


def _base(seed: int = 0, length: int = 70, **kw: Any) -> Problem:
    return problem(1, 2, 3, 1, 64, length, seed=seed, **kw)


def _valid(p: Problem) -> torch.Tensor:
    slots = torch.arange(p["k"].shape[2])
    return (slots >= p["begin"][..., None]) & (slots < p["end"])


def identical_values() -> Problem:
    """All v equal to c: the variance is 0 and everything cancels."""
    p = _base(1)
    p["v"][_valid(p)] = 1.7
    p["centre"] = torch.full_like(p["centre"], 1.7)
    return p


def nearly_identical_values() -> Problem:
    """v = 100 + 1e-3 noise around a centre of 100: without the centre six digits would cancel."""
    p = _base(2)
    m = _valid(p)
    p["v"][m] = 100.0 + 1e-3 * (p["v"][m] - 1.0)
    p["centre"] = torch.full_like(p["centre"], 100.0)
    return p


def one_token() -> Problem:
    """A cache of one token, certain by construction."""
    return _base(3, length=1)


def one_sampled_token() -> Problem:
    """A single sampled token: p = 1, the variance 0, the guarded radius infinite."""
    p = _base(4, length=1)
    p["log_pi"][_valid(p)] = math.log(0.25)
    return p


def empty_tail() -> Problem:
    """One head sampled nothing beyond its certain tokens."""
    p = _base(5)
    p["log_pi"][:, 0][_valid(p)[:, 0]] = 0.0
    return p


def all_certain() -> Problem:
    """Pi = 1 everywhere: variance, bound and radius are exactly 0."""
    p = _base(6)
    p["log_pi"][_valid(p)] = 0.0
    return p


def tiny_probabilities() -> Problem:
    """Pi = 1e-6 on half of the tokens: offsets of 13.8."""
    p = _base(7)
    p["log_pi"] = torch.where(p["log_pi"] < 0, math.log(1e-6), p["log_pi"])
    return poison(p)


def nearly_certain() -> Problem:
    """Pi = 1 - 2**-32: the smallest step below certainty keeps its 1 - Pi."""
    p = _base(8)
    p["log_pi"] = torch.where(p["log_pi"] < 0, math.log1p(-(2.0**-32)), p["log_pi"])
    return poison(p)


def huge_logits() -> Problem:
    """Logits of +80 and -80 side by side."""
    p = _base(9)
    p["q"] = torch.full_like(p["q"], 1.0)
    sign = torch.where(
        torch.rand(p["k"].shape[:3], generator=torch.Generator().manual_seed(1)) < 0.5, 1.0, -1.0
    )
    p["k"] = (sign * 80.0 / 8.0)[..., None].expand_as(p["k"]).contiguous()
    return poison(p)


def dominant_token() -> Problem:
    """A caught needle at low Pi: its weight goes to 1, the plain radius to 0."""
    p = _base(10)
    at = int(p["begin"].max()) + 1
    p["log_pi"][:, :, at] = math.log(1e-4)
    p["k"][:, :, at] = p["q"].view(1, 2, 3, 64).mean(2) * 0.4
    return p


def longest_padding() -> Problem:
    """Only the query's own token is valid, behind sixty poisoned slots: most splits hold no token."""
    p = _base(11)
    p["begin"] = torch.full_like(p["begin"], p["end"] - 1)
    return poison(p)


def early_query_sees_nothing() -> Problem:
    """begin after the first query's position: that query has no token."""
    p = problem(1, 2, 3, 4, 64, 40, seed=12)
    p["begin"] = torch.full_like(p["begin"], p["end"] - 2)
    return poison(p)


HOSTILE: dict[str, Callable[[], Problem]] = {
    f.__name__: f
    for f in (
        identical_values, nearly_identical_values, one_token, one_sampled_token, empty_tail, all_certain,
        tiny_probabilities, nearly_certain, huge_logits, dominant_token, longest_padding, early_query_sees_nothing,
    )
}  # fmt: skip
