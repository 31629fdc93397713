"""What a policy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.survey.inclusion import Design, poisson_design, poisson_draw, protected_tokens


class Selection(NamedTuple):
    """What one row keeps of the context.

    keep : bool [layers, KV heads, n].
    log_pi : float32 [layers, KV heads, n], the log inclusion probability that the attention corrects for;
        0 where the token is certain, and everywhere under policies without a design.
    expected : float64 [layers, KV heads], m, the expected tail sample size (0 without a design).
    """

    keep: Tensor
    log_pi: Tensor
    expected: Tensor


class Policy(ABC):
    """One way to choose the retained tokens. `params` are those of `kvcert.grid.PARAMS`, checked with the configuration."""

    name: ClassVar[str]

    def __init__(self, params: dict[str, float] | None = None) -> None:
        self.params = dict(params or {})

    @abstractmethod
    def select(self, z: Tensor, capacity: int, constants: dict[str, float], u32: Tensor) -> Selection:
        """Choose from scores z [layers, KV heads, n] and the draw's 32-bit uniforms (same shape, int64)."""


def certain(keep: Tensor) -> Selection:
    """A selection without a design: nothing is known about what was dropped."""
    log_pi = torch.zeros(keep.shape, device=keep.device)
    return Selection(keep, log_pi, torch.zeros(keep.shape[:-1], dtype=torch.float64, device=keep.device))


def design_of(
    z: Tensor, capacity: int, constants: dict[str, float], *, lam: float = 0.0, alive: Tensor | None = None
) -> Design:
    """`poisson_design` under the study's constants."""
    return poisson_design(
        z,
        capacity,
        n_sink=int(constants["n_sink"]),
        n_recent=int(constants["n_recent"]),
        rho=constants["rho"],
        epsilon=constants["epsilon"],
        lam=lam,
        alive=alive,
    )


def sampled(design: Design, u32: Tensor) -> Selection:
    """What a design's draw keeps, with the probabilities that the attention corrects for."""
    return Selection(poisson_draw(design, u32), design.log_pi, design.expected)


def capacity_of(budget: float, n: int, constants: dict[str, float]) -> int:
    """K = floor(b n + 1/2) tokens per KV head; at least one more than the protected tokens unless all n fit.

    Raises
    ------
    KvcertError when the budget is outside (0, 1] or does not exceed the protected tokens.
    """
    if not 0 < budget <= 1:
        raise KvcertError(
            f"config: study.rows: budget {budget} is outside (0, 1]: it is the share of tokens kept"
        )
    capacity = int(budget * n + 0.5)
    base = int(protected_tokens(n, int(constants["n_sink"]), int(constants["n_recent"])).sum())
    if capacity < n and capacity <= base:
        raise KvcertError(
            f"budget {budget:g} keeps {capacity} of {n} context tokens, not more than the {base} protected ones "
            "(n_sink + n_recent): raise study.rows budgets or the task's length"
        )
    return min(capacity, n)
