"""Repeated thinning: a token that survives several compressions has the product of its conditional probabilities."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from kvcert.survey.inclusion import TWO32, Design


class Thinned(NamedTuple):
    """What one more stage leaves.

    keep : bool [..., n]. log_pi : float64 [..., n], cumulative; a token that is gone keeps that of the stage that
    dropped it. expected : float64 [...], expected number of retained units with cumulative Pi < 1, given earlier stages.
    """

    keep: Tensor
    log_pi: Tensor
    expected: Tensor


def compose(log_pi: Tensor, conditional: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Cumulative log Pi after one more stage, and the conditional probability actually used.

    Parameters
    ----------
    log_pi : [..., n], cumulative so far (never overwritten by the caller: store the result).
    conditional : [..., n], pi of this stage given the earlier ones.
    epsilon : floor of the *cumulative* Pi; the conditional is raised where the product would fall below it.

    Returns
    -------
    (log Pi', pi) with Pi' = Pi * pi >= min(epsilon, Pi). Horvitz-Thompson totals stay unbiased when the draws are
    conditionally independent (docs/method.md; two-phase sampling, Sarndal et al. 1992, chapter 9).
    """
    floor = (math.log(epsilon) - log_pi).clamp_max(0.0)
    log_conditional = conditional.log().maximum(floor)
    return log_pi + log_conditional, log_conditional.exp()


def thin(design: Design, log_pi: Tensor, alive: Tensor, u32: Tensor, epsilon: float) -> Thinned:
    """Draw one more stage and compose its probabilities with the earlier ones.

    Parameters
    ----------
    design : this stage's design over the tokens that are alive (`poisson_design(..., alive=alive)`).
    log_pi : float64 [..., n], cumulative so far; 0 for tokens that are new at this stage.
    alive : bool [..., n], retained so far or new.
    u32 : int64 [..., n], this stage's own uniforms. Those of an earlier stage would undo the product: a token would be
        kept with probability min(pi_1, pi_2) and weighted by 1 / (pi_1 pi_2).
    epsilon : floor of the cumulative Pi, rounded down to a multiple of 2**-32 as in the design.

    Returns
    -------
    Thinned. A conditional probability is raised (and rounded up to a multiple of 2**-32) where the product would fall
    below the floor; the draw uses the raised one.
    """
    floor = math.floor(epsilon * TWO32)
    least = (floor * (-log_pi).exp()).ceil().clamp_max(TWO32).to(torch.int64)
    # New tokens have the design's own floor; only what was thinned before can fall below it.
    threshold = torch.where(alive & (log_pi < 0), design.threshold.maximum(least), design.threshold)
    composed, _ = compose(log_pi, threshold.double() / TWO32, floor / TWO32)
    cumulative = torch.where(alive, composed, log_pi)
    sampled = alive & (cumulative < 0)
    expected = torch.where(sampled, threshold.double(), 0.0).sum(-1) / TWO32
    return Thinned(alive & (u32 < threshold), cumulative, expected)
