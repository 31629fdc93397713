"""Certified attention as one grouped torch expression: the fallback on any device, no loop, no repeated keys."""

from __future__ import annotations

import torch
from torch import Tensor


def decode_grouped(
    q: Tensor, k: Tensor, v: Tensor, log_pi: Tensor, begin: Tensor, end: int, *,
    scale: float, centre: Tensor | None, certificate: bool, level: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """As `kvcert.kernels.decode`: out [R, H, T, D] float32 and stats [8 or 1, R, H, T].

    The moments use matrix products, so K and V are read twice; padding is replaced before it is multiplied.
    """
    rows, heads, steps, dim = q.shape
    groups = k.shape[1]
    k, v, log_pi = k[:, :, :end], v[:, :, :end], log_pi[:, :, :end]
    slots = torch.arange(end, device=q.device)
    inside = slots >= begin[:, :, None]
    causal = slots <= (end - steps + torch.arange(steps, device=q.device))[:, None]
    values = v.float().masked_fill(~inside[..., None], 0.0)
    if certificate and centre is not None:
        values = torch.where(inside[..., None], values - centre[:, :, None], 0.0)
    log_pi = log_pi.masked_fill(~inside, 0.0)

    grouped = (q.float() * scale).reshape(rows, groups, heads // groups * steps, dim)
    logits = (grouped @ k.float().transpose(2, 3)).view(rows, groups, -1, steps, end) - log_pi[
        :, :, None, None
    ]
    seen = inside[:, :, None, None] & causal
    logits = logits.masked_fill(~seen, float("-inf")).view(rows, groups, -1, end)
    lse = logits.logsumexp(-1)
    unseen = ~seen.expand(-1, -1, heads // groups, -1, -1).reshape_as(logits)
    p = logits.softmax(-1).masked_fill(unseen, 0.0)  # more digits near p = 1 than exp(logits - lse)

    def shape(*planes: Tensor) -> Tensor:
        return torch.stack([x.reshape(rows, heads, steps) for x in planes])

    if not certificate:
        return (p @ values).reshape(rows, heads, steps, dim), shape(lse)
    miss = -torch.expm1(log_pi)
    sampled = (log_pi < 0).float()[:, :, None]
    squares = p * p
    q0_weights = squares * miss[:, :, None]
    both = torch.cat([p, q0_weights], 2) @ values
    shifted, first = both.chunk(2, 2)  # o_hat - c and Q1
    size = values.square().sum(-1)
    second = (q0_weights @ size[..., None])[..., 0]
    variance = second - 2.0 * (shifted * first).sum(-1) + shifted.square().sum(-1) * q0_weights.sum(-1)
    variance = variance.clamp_min(0.0)
    p_sampled = (p * sampled).amax(-1)
    bound = (p * (sampled * size.sqrt()[:, :, None])).amax(-1) + shifted.norm(dim=-1) * p_sampled
    linear = bound * (level / 3.0)
    radius = linear + (linear.square() + 2.0 * level * variance).sqrt()
    guarded = torch.where(p_sampled < 1.0, radius / (1.0 - p_sampled), float("inf"))
    total = squares.sum(-1)
    ess = torch.where(total == 0, 0.0, 1.0 / total)
    out = shifted if centre is None else shifted + centre[:, :, None]
    if centre is not None:
        out = torch.where(total[..., None] == 0, 0.0, out)
    return out.reshape(rows, heads, steps, dim), shape(
        lse, variance, bound, radius, guarded, ess, p.amax(-1), p_sampled
    )
