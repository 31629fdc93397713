"""Repeated thinning: a token that survives several compressions has the product of its conditional probabilities."""

from __future__ import annotations

import math

from torch import Tensor


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
