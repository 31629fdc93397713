"""Merging evicted tokens into strata: the merged output, and its error in exact parts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Strata:
    """A partition of the evicted tokens of each head, and how a stratum's mean is weighted.

    one : float64 [heads, strata, n], 1 where the token is in the stratum; no 1 in a column: kept exactly.
    weight : float64 [heads, n], weights within the stratum, summing to 1 in each; 0 where kept.
    """

    one: Tensor
    weight: Tensor

    @property
    def evicted(self) -> Tensor:
        """bool [heads, n]."""
        return self.one.sum(1) > 0

    def means(self, x: Tensor) -> Tensor:
        """Stratum means of x [heads, n, d]: [heads, strata, d]."""
        return self.one @ (self.weight[..., None] * x)

    def centres(self, x: Tensor) -> Tensor:
        """The mean of each token's own stratum, [heads, n, d]; 0 where kept."""
        return self.one.transpose(1, 2) @ self.means(x)


def labels_by_position(evicted: Tensor, slots: Tensor) -> Tensor:
    """int64 [heads, n]: contiguous blocks of evicted tokens of nearly equal size, `slots` [heads] of them; -1 kept."""
    order = evicted.long().cumsum(-1) - 1
    block = order * slots[:, None] // evicted.sum(-1, keepdim=True).clamp_min(1)
    return torch.where(evicted, block, -1)


def labels_by_key(evicted: Tensor, slots: Tensor, keys: Tensor) -> Tensor:
    """int64 [heads, n]: the middle token of each position block is a pivot; every evicted token joins the pivot whose
    key is nearest in cosine. keys [heads, n, d]."""
    blocks = labels_by_position(evicted, slots)
    unit = torch.nn.functional.normalize(keys, dim=-1)
    found = torch.full_like(blocks, -1)
    for head in range(len(blocks)):
        pivots = torch.stack([
            (place := torch.nonzero(blocks[head] == h)[:, 0])[len(place) // 2]
            for h in range(min(int(slots[head]), int(evicted[head].sum())))
        ])  # fmt: skip
        nearest = (unit[head] @ unit[head, pivots].T).argmax(-1)
        nearest[pivots] = torch.arange(len(pivots))
        found[head] = torch.where(evicted[head], nearest, -1)
    return found


def strata(labels: Tensor, mass: Tensor) -> Strata:
    """Strata from labels [heads, n]; `mass` [heads, n] > 0 weights the means (all 1: plain means)."""
    count = int(labels.max()) + 1
    one = (labels[:, None] == torch.arange(count)[:, None]).double()
    mass = torch.where(labels >= 0, mass.double(), 0.0)
    own = (one.transpose(1, 2) @ (one @ mass[..., None]))[..., 0]
    return Strata(one, mass / own.clamp_min(1e-300))


class Merged:
    """One set of heads with its evicted tokens merged; what does not depend on the query is computed once.

    Each stratum is one token with the mean key, the mean value and the logit offset log n_h. Logits are linear in the
    keys, so the mean key's logit is the mean of the logits.

    Parameters
    ----------
    values : [heads, n, d].
    """

    def __init__(self, values: Tensor, parts: Strata) -> None:
        self.values, self.parts = values, parts
        self.evicted = parts.evicted[:, None]
        self.means = parts.means(values)
        centre = parts.one.transpose(1, 2) @ self.means
        #: v_i - v̄_h of evicted tokens, 0 for kept ones.
        self.off = torch.where(parts.evicted[..., None], values - centre, 0.0)
        #: D_h², [heads, 1, strata].
        self.spread = (parts.one @ (parts.weight * self.off.square().sum(-1))[..., None])[..., 0][:, None]
        self.log_size = parts.one.sum(-1).log()[:, None]

    def truth(self, logits: Tensor, factor: float = 1.0) -> Tensor:
        """Attention o [heads, steps, d] over all tokens, their values v̄_h + f (v_i - v̄_h); stratum means do not move."""
        return logits.softmax(-1) @ (self.values + (factor - 1.0) * self.off)

    def output(self, logits: Tensor) -> Tensor:
        """Attention after merging, [heads, steps, d]: the same for every dispersion factor."""
        kept = logits.masked_fill(self.evicted, -torch.inf)
        mean = (self.parts.weight[:, None] * logits) @ self.parts.one.transpose(1, 2)
        joined = torch.cat([kept, mean + self.log_size], -1).softmax(-1)
        n = self.values.shape[1]
        return joined[..., :n] @ self.values + joined[..., n:] @ self.means

    def error(self, logits: Tensor, factor: float = 1.0) -> Tensor:
        """The error of merging, [heads, steps, d]."""
        return self.output(logits) - self.truth(logits, factor)

    def anatomy(self, logits: Tensor) -> dict[str, Tensor]:
        """The error and what it is made of, each [heads, steps].

        Notes
        -----
        With A_h the stratum's true mass, μ_h its true attention-weighted mean, Ã_h = n_h exp(s̄_h):
        e = (A/Ã) Σ (A_h/A) (v̄_h - μ_h) + Σ (Ã_h - A_h) (v̄_h - o) / Ã exactly. `value` is the norm of
        Σ (A_h/A) (v̄_h - μ_h), the error that is left when every stratum gets its true mass; it is linear in the
        dispersion and proportional to the mass. `bound` ≥ `value` by Cauchy–Schwarz within strata: Σ (A_h/A) χ_h D_h,
        χ_h² = Σ (α_i - ω_i)²/ω_i with α the true weights within the stratum and ω those of the mean (with plain means
        χ_h is the coefficient of variation of the attention weights), D_h² = Σ ω_i |v_i - v̄_h|².
        """
        a = torch.where(self.evicted, logits.softmax(-1), 0.0)
        one, weight = self.parts.one, self.parts.weight[:, None]
        share = a @ one.transpose(1, 2)
        # Σ α²/ω - 1 within a stratum, with α = a / A_h.
        square = (a.square() / weight.clamp_min(1e-300)) @ one.transpose(1, 2)
        chi = (square / share.square().clamp_min(1e-300) - 1.0).clamp_min(0.0)
        mass = a.sum(-1)
        return {
            "mass": mass,
            "dispersion": ((share * self.spread).sum(-1) / mass).sqrt(),
            "chi": ((share * chi).sum(-1) / mass).sqrt(),
            "bound": (share * (chi * self.spread).sqrt()).sum(-1),
            "value": (a @ self.off).norm(dim=-1),
            "error": self.error(logits).norm(dim=-1),
        }
