"""The linearised Hajek error: its exact variance, and the single-sum estimator with a given centre and normaliser."""

from __future__ import annotations

import torch
from torch import Tensor


def softmax_mean(a: Tensor, values: Tensor) -> Tensor:
    """o = sum a_i v_i / sum a_i over the last-but-one dimension of values [..., n, d]; a [..., n]."""
    return (a[..., None] * values).sum(-2) / a.sum(-1, keepdim=True)


def linearised_variance(a: Tensor, pi: Tensor, values: Tensor) -> Tensor:
    """Trace of the variance of sum_S (a_i / (pi_i A)) (v_i - o) under Poisson sampling, [...].

    sum_U ((1 - pi_i) / pi_i) (a_i / A)**2 ||v_i - o||**2 (Sarndal et al. 1992, eq. 3.5.3 with residuals).
    """
    residual = (values - softmax_mean(a, values)[..., None, :]).square().sum(-1)
    share = a / a.sum(-1, keepdim=True)
    return ((1.0 - pi) / pi * share.square() * residual).sum(-1)


def single_sum_estimate(
    a: Tensor, pi: Tensor, values: Tensor, kept: Tensor, centre: Tensor, normaliser: Tensor
) -> Tensor:
    """sum_S ((1 - pi_i) / pi_i**2) (a_i / A)**2 ||v_i - centre||**2 for given centre [..., d] and A [...].

    With the true centre and the true normaliser its expectation is exactly `linearised_variance`; with o_hat and the
    estimated normaliser it is the certificate's V_hat.
    """
    residual = (values - centre[..., None, :]).square().sum(-1)
    term = (1.0 - pi) / pi.square() * (a / normaliser[..., None]).square() * residual
    return torch.where(kept, term, 0.0).sum(-1)
