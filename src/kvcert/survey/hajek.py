"""Hajek attention and the variance of its linearised error, in two obvious passes. This is the reference."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Certificate(NamedTuple):
    """What one query's retained tokens say about its own error. All [...] over leading dimensions.

    out : [..., d], o_hat. lse : log of the Horvitz-Thompson normaliser. variance : V_hat. bound : B_hat.
    radius : plug-in Bernstein radius. guarded : radius / (1 - p_sampled). ess : effective sample size of the retained
    weights. p_max : largest weight. p_sampled : largest weight among units with Pi < 1.
    """

    out: Tensor
    lse: Tensor
    variance: Tensor
    bound: Tensor
    radius: Tensor
    guarded: Tensor
    ess: Tensor
    p_max: Tensor
    p_sampled: Tensor


def bernstein_radius(variance: Tensor, bound: Tensor, delta: float) -> Tensor:
    """r = B L/3 + sqrt((B L/3)**2 + 2 V L), L = ln(2/delta): Bernstein's inequality inverted, with plug-in V and B.

    For vectors: Pinelis (1994), Ann. Probab. 22. V_hat's own error is ignored: no finite-sample guarantee.
    """
    log_term = math.log(2.0 / delta)
    linear = bound * (log_term / 3.0)
    return linear + (linear * linear + 2.0 * log_term * variance).sqrt()


def guard(radius: Tensor, p_sampled: Tensor) -> Tensor:
    """radius / (1 - p_sampled): an upper bound of the radius with p/(1-p) in place of p; infinite at p = 1."""
    rest = 1.0 - p_sampled
    return torch.where(rest > 0, radius / rest.clamp_min(1e-30), float("inf"))


def hajek_certificate(
    logits: Tensor, log_pi: Tensor, values: Tensor, centre: Tensor | None = None, *, delta: float = 0.05
) -> Certificate:
    """Hajek estimate of softmax attention from a Poisson sample, with its certificate.

    Parameters
    ----------
    logits : [..., n], s_i = q.k_i * scale of the retained tokens; -inf marks padding.
    log_pi : [..., n], log of the *cumulative* inclusion probability, 0 where Pi = 1.
    values : [..., n, d].
    centre : [..., d], reference centre of the range bound (default 0). V_hat does not depend on it.

    Notes
    -----
    w_i = exp(s_i) / Pi_i, p = w / sum w, o_hat = sum p_i v_i (Hajek 1971),
    V_hat = sum (1 - Pi_i) p_i**2 ||v_i - o_hat||**2, the Horvitz-Thompson single-sum estimator of the linearised
    residuals (Sarndal et al. 1992, eq. 5.7.4, for a Poisson design),
    B_hat = max p_i ||v_i - c|| + ||o_hat - c|| max p_i over units with Pi < 1.
    """
    weights = logits - log_pi
    lse = weights.logsumexp(-1)
    p = (weights - lse[..., None]).exp()
    alive = p > 0
    values = torch.where(alive[..., None], values, 0.0)
    out = (p[..., None] * values).sum(-2)
    sampled = alive & (log_pi < 0)
    p_tail = torch.where(sampled, p, 0.0)
    excluded = torch.where(sampled, -torch.expm1(log_pi), 0.0)
    distance = (values - out[..., None, :]).square().sum(-1)
    variance = (excluded * p.square() * distance).sum(-1)
    c = torch.zeros_like(out) if centre is None else centre
    spread = (values - c[..., None, :]).norm(dim=-1)
    p_sampled = p_tail.amax(-1)
    bound = (p_tail * spread).amax(-1) + (out - c).norm(dim=-1) * p_sampled
    radius = bernstein_radius(variance, bound, delta)
    return Certificate(
        out,
        lse,
        variance,
        bound,
        radius,
        guard(radius, p_sampled),
        1.0 / p.square().sum(-1),
        p.amax(-1),
        p_sampled,
    )
