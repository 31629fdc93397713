"""The true attention output against the shadow cache: this run's own full context, kept aside."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Truth(NamedTuple):
    """out : [R, H, T, D], o. lse : [R, H, T]. ess : [R, H, T], effective sample size of the full weights.
    r_max, r_kept : [R, H, T], max of a_i / (pi_i sum a) over the tail and over its retained part (0 if empty)."""

    out: Tensor
    lse: Tensor
    ess: Tensor
    r_max: Tensor
    r_kept: Tensor


def shadow_attention(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    own_keys: Tensor,
    own_values: Tensor,
    log_pi: Tensor,
    kept: Tensor,
    scale: float,
) -> Truth:
    """Softmax attention of every row's queries over the shared context and the row's own appended tokens.

    Parameters
    ----------
    q : [R, H, T, D]. keys, values : [K, n, D], the context's, shared by all rows.
    own_keys, own_values : [R, K, A, D], tokens appended after the context; the last T are those of the queries.
    log_pi : [R, K, n], log inclusion probability (0 = certain). kept : bool [R, K, n].
    """
    rows, heads, steps, dim = q.shape
    groups, n, own = keys.shape[0], keys.shape[1], own_keys.shape[2]
    per = heads // groups
    grouped = q.reshape(rows, groups, per * steps, dim)
    shared = grouped.transpose(0, 1).reshape(groups, rows * per * steps, dim)
    s = (shared @ keys.transpose(1, 2) * scale).view(groups, rows, per * steps, n).transpose(0, 1)
    s_own = (grouped @ own_keys.transpose(2, 3) * scale).view(rows, groups, per, steps, own)
    later = torch.ones(steps, own, dtype=torch.bool, device=q.device).triu(own - steps + 1)
    s_own = s_own.masked_fill(later, float("-inf")).view(rows, groups, per * steps, own)
    lse = torch.logaddexp(s.logsumexp(-1), s_own.logsumexp(-1))
    a, a_own = (s - lse[..., None]).exp(), (s_own - lse[..., None]).exp()
    mixed = a.transpose(0, 1).reshape(groups, rows * per * steps, n) @ values
    out = mixed.view(groups, rows, per * steps, dim).transpose(0, 1) + a_own @ own_values
    ess = 1.0 / (a.square().sum(-1) + a_own.square().sum(-1))
    tail = log_pi < 0
    share = torch.where(tail[:, :, None], a * (-log_pi).exp()[:, :, None], 0.0)
    r_max = share.amax(-1)
    r_kept = torch.where(kept[:, :, None], share, 0.0).amax(-1)

    def shape(x: Tensor) -> Tensor:
        return x.reshape(rows, heads, steps)

    return Truth(out.reshape(rows, heads, steps, dim), shape(lse), shape(ess), shape(r_max), shape(r_kept))
