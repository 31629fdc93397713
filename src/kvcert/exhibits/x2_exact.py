"""What needs no draw: the linearised variance of every recorded head, and all samples of small real populations."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from kvcert.survey.hajek import hajek_certificate
from kvcert.survey.inclusion import TWO32, Design, capped_probabilities
from kvcert.survey.linearised import linearised_variance, single_sum_estimate, softmax_mean


def analytic(a: Tensor, design: Design, values: Tensor, grades: list[int]) -> dict[str, Tensor]:
    """The linearised variance, the expectation of V̂ with true centre and normaliser, and where the variance sits.

    Parameters
    ----------
    a : softmax weights up to a factor, [heads, steps, n]. design : of those heads, [heads, n]. values : [heads, n, d].
    grades : numbers of draws D; units with π < 1/D are what D draws will mostly not see.

    Returns
    -------
    dict of [heads, steps]: `linear` by `survey.linearised.linearised_variance`; `expected` = Σ π_i t_i over the terms t_i
    of `single_sum_estimate`, each evaluated alone; `unseen_<D>`, the share of the variance at π < 1/D, and `units_<D>`,
    how many such units there are; `top3`, the share of the three units with the most; `ess`; `r`, the largest
    a_i / (π_i A) of the tail.
    """
    pi = design.pi[:, None].expand(a.shape)
    spread = values[:, None].expand(*a.shape, values.shape[-1])
    o, total = softmax_mean(a, spread), a.sum(-1)
    linear = linearised_variance(a, pi, spread)
    # One retained unit at a time: the estimator's own terms, times the probability of meeting them.
    unit = single_sum_estimate(
        a[..., None],
        pi[..., None],
        spread[..., None, :],
        torch.ones_like(pi, dtype=torch.bool)[..., None],
        o[..., None, :].expand(spread.shape),
        total[..., None].expand(a.shape),
    )
    contribution = pi * unit
    share = a / total[..., None]
    found = {
        "linear": linear,
        "expected": contribution.sum(-1),
        "top3": contribution.topk(min(3, a.shape[-1]), -1).values.sum(-1) / linear,
        "ess": 1.0 / share.square().sum(-1),
        "r": torch.where(pi < 1, share / pi, 0.0).amax(-1),
    }
    for grade in grades:
        rare = pi < 1.0 / grade
        found[f"unseen_{grade}"] = torch.where(rare, contribution, 0.0).sum(-1) / linear
        found[f"units_{grade}"] = rare.sum(-1).double()
    return found


def small_design(z: Tensor, m: float, epsilon: float) -> Tensor:
    """π of a small population: its unit with the largest score is certain, the others share an expected sample of m.

    Rounded down to multiples of 2⁻³² like every design here.
    """
    tail = torch.ones(z.shape, dtype=torch.bool)
    tail[z.argmax()] = False
    pi = capped_probabilities(z, tail, torch.tensor(m, dtype=torch.float64), epsilon)
    return torch.where(tail, (pi * TWO32).floor() / TWO32, 1.0)


def enumerate_samples(logits: Tensor, pi: Tensor, values: Tensor, delta: float) -> dict[str, Any]:
    """Every sample of a small population with its probability: exact expectations, no Monte Carlo.

    Parameters
    ----------
    logits : [n]. pi : [n], at least one of them 1, so that no sample is empty altogether. values : [n, d].

    Returns
    -------
    dict: `linear`, `expected` (of the estimator with true centre and normaliser), `linear_mse` (of the linearised error
    itself), `total` (expectation of the Horvitz–Thompson normaliser over its truth), `mse`, `bias`, `bias_share`, `v_hat`,
    `ratio` = E[V̂]/MSE, `coverage`, `guarded`, `empty` (probability of an empty tail sample, whose radius is infinite).
    """
    tail = torch.nonzero(pi < 1)[:, 0]
    kept = torch.ones(2 ** len(tail), len(pi), dtype=torch.bool)
    kept[:, tail] = (torch.arange(len(kept))[:, None] >> torch.arange(len(tail))) % 2 == 1
    chance = torch.where(kept, pi, 1.0 - pi).prod(-1)
    a = (logits - logits.max()).exp()
    o, total = softmax_mean(a, values), a.sum()
    count = kept[:, tail].sum(-1)
    centre = (kept[:, tail].double() @ values[tail]) / count.clamp_min(1)[:, None]
    found = hajek_certificate(
        logits.masked_fill(~kept, -math.inf), pi.log().expand(kept.shape), values.expand(len(kept), -1, -1),
        centre, delta=delta,
    )  # fmt: skip
    weight = torch.where(kept, a / pi, 0.0)
    linear = weight @ (values - o) / total
    error = found.out - o
    squared = error.square().sum(-1)
    size, mean, mse = squared.sqrt(), chance @ error, float(chance @ squared)

    def covered(radius: Tensor) -> float:
        return float(chance @ ((count == 0) | (size <= radius)).double())

    v_hat = float(chance @ found.variance)
    known = single_sum_estimate(a, pi, values, kept, o, total.expand(len(kept)))
    return {
        "samples": len(kept),
        "linear": float(linearised_variance(a, pi, values)),
        "expected": float(chance @ known),
        "linear_mse": float(chance @ linear.square().sum(-1)),
        "total": float(chance @ weight.sum(-1) / total),
        "mse": mse,
        "bias": float(mean.norm()),
        "bias_share": float(mean.square().sum()) / mse,
        "v_hat": v_hat,
        "ratio": v_hat / mse,
        "coverage": covered(found.radius),
        "guarded": covered(found.guarded),
        "empty": float(chance @ (count == 0).double()),
    }
