"""Certified attention in float64 and two obvious passes. Slow on purpose: every other backend is tested against it."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def decode_reference(
    q: Tensor, k: Tensor, v: Tensor, log_pi: Tensor, begin: Tensor, end: int, *,
    scale: float, centre: Tensor | None = None, level: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """As `kvcert.kernels.decode`, all in float64: out [R, H, T, D] and stats [8, R, H, T].

    Sources: docs/method.md (Hajek attention, variance estimator, range, radius, guarded radius).
    """
    rows, heads, steps, dim = q.shape
    per = heads // k.shape[1]
    slots = torch.arange(end)
    seen = (slots >= begin[:, :, None, None]) & (slots <= (end - steps + torch.arange(steps))[:, None])
    seen = seen.repeat_interleave(per, 1)  # [R, H, T, end]
    inside = (slots >= begin[:, :, None])[..., None]
    keys = torch.where(inside, k[:, :, :end].double(), 0.0).repeat_interleave(per, 1)
    values = torch.where(inside, v[:, :, :end].double(), 0.0).repeat_interleave(per, 1)
    offsets = torch.where(inside[..., 0], log_pi[:, :, :end].double(), 0.0).repeat_interleave(per, 1)[
        :, :, None
    ]
    mid = (
        torch.zeros(rows, heads, dim, dtype=torch.float64)
        if centre is None
        else centre.double().repeat_interleave(per, 1)
    )

    logits = (q.double() @ keys.transpose(2, 3) * scale - offsets).masked_fill(~seen, -math.inf)
    lse = logits.logsumexp(-1)
    p = torch.where(seen, (logits - lse[..., None]).exp(), 0.0)
    out = p @ values
    sampled = seen & (offsets < 0)
    spread = (values[:, :, None] - out[:, :, :, None]).square().sum(-1)  # second pass: ||v_i - o_hat||^2
    variance = torch.where(sampled, -torch.expm1(offsets) * p.square() * spread, 0.0).sum(-1)
    p_sampled = torch.where(sampled, p, 0.0).amax(-1)
    reach = torch.where(sampled, p * (values - mid[:, :, None]).norm(dim=-1)[:, :, None], 0.0).amax(-1)
    bound = reach + (out - mid[:, :, None]).norm(dim=-1) * p_sampled
    linear = bound * level / 3.0
    radius = linear + (linear.square() + 2.0 * variance * level).sqrt()
    guarded = torch.where(p_sampled < 1.0, radius / (1.0 - p_sampled), math.inf)
    squares = p.square().sum(-1)
    ess = torch.where(squares > 0, 1.0 / squares, 0.0)
    stats = torch.stack([lse, variance, bound, radius, guarded, ess, p.amax(-1), p_sampled])
    empty = ~seen.any(-1)
    stats[1:, empty] = 0.0
    return out, stats
