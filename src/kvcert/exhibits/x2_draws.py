"""Many Poisson samples of one head at once: the Hájek estimate, its certificate and its error."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from kvcert.survey.hajek import bernstein_radius, guard
from kvcert.survey.inclusion import TWO32
from kvcert.survey.linearised import softmax_mean
from kvcert.survey.philox import philox4x32

_MASK = 0xFFFFFFFF


class Sampled(NamedTuple):
    """Per sample and step, float64 [D, steps] unless said otherwise.

    error : ô - o, [D, steps, d]. linear : squared norm of the linearised error. variance : V̂. radius, guarded : plain
    and guarded radius, infinite where the tail's sample is empty. ess : effective sample size of the retained weights.
    """

    error: Tensor
    linear: Tensor
    variance: Tensor
    radius: Tensor
    guarded: Tensor
    ess: Tensor


def uniforms(seed: int, example: int, layer: int, head: int, n: int, draws: range) -> Tensor:
    """The 32-bit uniforms [draws, n] of one head: the same words as `survey.philox.uniforms`, all draws at once."""
    word = torch.tensor(list(draws))[:, None] << 8
    key = (seed & _MASK, (seed >> 32) & _MASK)
    return philox4x32(key, (torch.arange(n), layer * 65536 + head, example, word))


def sample(logits: Tensor, threshold: Tensor, values: Tensor, u32: Tensor, delta: float) -> Sampled:
    """Every sample's estimate and certificate from a few matrix products over the tail.

    Parameters
    ----------
    logits : [steps, n]. threshold : int64 [n], floor(π·2³²). values : [n, d]. u32 : int64 [D, n].

    Notes
    -----
    With values and centre relative to o: W = Σ w, M = Σ w v, ô - o = M / W, V̂ = (R2 - 2 e·R1 + |e|² R0) / W² where
    R0, R1, R2 are the sums of (1 - π) w² times 1, v and |v|². The certainty set adds a constant to W and M alone. B̂ and
    the radii are those of `survey.hajek.hajek_certificate`, with c the mean of the retained tail values.
    """
    a = (logits - logits.amax(-1, keepdim=True)).exp()
    o = softmax_mean(a, values.expand(len(a), -1, -1))
    tail = threshold < 2**32
    pi, sure = threshold[tail].double() / TWO32, a[:, ~tail]
    kept = (u32[:, tail] < threshold[tail]).double()
    count = kept.sum(-1)
    v = values[tail] - values.mean(0)
    # 0 where nothing of the tail was kept: the radius is infinite there.
    centre = (kept @ v) / count.clamp_min(1.0)[:, None]
    square = v.square().sum(-1) - 2 * centre @ v.T + centre.square().sum(-1, keepdim=True)
    spread = kept * square.clamp_min(0.0).sqrt()
    found = []
    for step in range(len(a)):
        w = a[step, tail] / pi
        relative = values[tail] - o[step]
        excluded = (1.0 - pi) * w.square()
        columns = [w[:, None], w[:, None] * relative, excluded[:, None], excluded[:, None] * relative]
        columns += [(excluded * relative.square().sum(-1))[:, None], w.square()[:, None]]
        sums = kept @ torch.cat(columns, 1)
        d = values.shape[1]
        total, moment, r0, r1, r2, squares = sums.split([1, d, 1, d, 1, 1], -1)
        total = total + sure[step].sum()
        moment = moment + sure[step] @ (values[~tail] - o[step])
        error = moment / total
        variance = r2 - 2 * (error * r1).sum(-1, keepdim=True) + error.square().sum(-1, keepdim=True) * r0
        variance = (variance / total.square()).clamp_min(0.0)[:, 0]
        p_max = (kept * w).amax(-1) / total[:, 0]
        apart = (error + o[step] - values.mean(0) - centre).norm(dim=-1)
        bound = (spread * w).amax(-1) / total[:, 0] + apart * p_max
        radius = torch.where(count > 0, bernstein_radius(variance, bound, delta), torch.inf)
        found.append(
            Sampled(
                error,
                (moment / a[step].sum()).square().sum(-1),
                variance,
                radius,
                guard(radius, p_max),
                total[:, 0].square() / (squares[:, 0] + sure[step].square().sum()),
            )
        )
    return Sampled(*(torch.stack(parts, 1) for parts in zip(*found, strict=True)))


def summary(parts: list[Sampled], grades: list[int]) -> list[dict[str, Any]]:
    """What the samples show, one entry per step: error, V̂, bias and coverage; the linearised error after some draws."""
    error, linear, variance, radius, guarded, ess = (torch.cat(pieces) for pieces in zip(*parts, strict=True))
    draws, rows = len(error), []
    for step in range(error.shape[1]):
        squared = error[:, step].square().sum(-1)
        mean = error[:, step].mean(0)
        noise = float(squared.mean() - mean.square().sum()) / draws
        size = squared.sqrt()
        rows.append(
            {
                "draws": draws,
                "mse": float(squared.mean()),
                "v_hat": float(variance[:, step].mean()),
                "ratio": float(variance[:, step].mean() / squared.mean()),
                "bias": float(mean.norm()),
                "bias_noise": noise**0.5,
                # Unbiased: the mean's own Monte Carlo variance is taken off its squared norm.
                "bias_share": (float(mean.square().sum()) - noise) / float(squared.mean()),
                "coverage": float((size <= radius[:, step]).double().mean()),
                "guarded": float((size <= guarded[:, step]).double().mean()),
                "infinite": float(radius[:, step].isinf().double().mean()),
                "ess_kept": float(ess[:, step].median()),
            }
            | {f"linear_{grade}": float(linear[:grade, step].mean()) for grade in grades}
        )
    return rows
