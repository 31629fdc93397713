"""Retention policies, one per file: which context tokens each KV head keeps, and at what inclusion probability."""

from __future__ import annotations

from kvcert.errors import KvcertError
from kvcert.policies.adakv import AdaKV
from kvcert.policies.base import Policy, Selection, capacity_of, design_of
from kvcert.policies.full import Full
from kvcert.policies.lru import LRU
from kvcert.policies.mixture import Mixture
from kvcert.policies.poisson import Poisson
from kvcert.policies.random import Random
from kvcert.policies.streaming import Streaming
from kvcert.policies.topk import TopK
from kvcert.policies.uncorrected import Uncorrected
from kvcert.policies.uniform import Uniform

POLICIES: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (
        Full,
        TopK,
        Poisson,
        Mixture,
        Uniform,
        Uncorrected,
        AdaKV,
        LRU,
        Random,
        Streaming,
    )
}


def get(name: str, params: dict[str, float] | None = None) -> Policy:
    """The policy called `name` with its parameters; an unknown name is an error that lists the known ones."""
    if name not in POLICIES:
        raise KvcertError(
            f"config: study.rows: unknown policy {name!r}; known: {', '.join(sorted(POLICIES))}"
        )
    return POLICIES[name](params or {})


__all__ = ["POLICIES", "Policy", "Selection", "capacity_of", "design_of", "get"]
