"""Other queries for the same keys and values, so that the evicted mass changes while the values stay."""

from __future__ import annotations

import torch
from torch import Tensor


def raised(logits: Tensor, evicted: Tensor, factor: float) -> Tensor:
    """All evicted logits raised by one constant so that their mass share changes by `factor`; NaN where it would pass 1.

    An exact change of the mass and of nothing else within the strata: the query along a key coordinate that tells
    evicted from kept.
    """
    mass = torch.where(evicted[:, None], logits.softmax(-1), 0.0).sum(-1, keepdim=True)
    shift = (factor * (1 - mass) / (1 - factor * mass)).log()
    return torch.where(evicted[:, None], logits + shift, logits)


def along(keys: Tensor, evicted: Tensor, ridge: float) -> Tensor:
    """k_i·u [heads, n] for the direction u in key space that tells evicted from kept keys best (ridge least squares).

    Changing the query by t u √d changes the logits by t k_i·u: the real query's own way to more or less evicted mass.
    `ridge` is relative to the mean eigenvalue of the keys' covariance.
    """
    centred = keys - keys.mean(1, keepdim=True)
    target = evicted.double() - evicted.double().mean(-1, keepdim=True)
    gram = centred.transpose(1, 2) @ centred
    extra = gram.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * ridge
    u = torch.linalg.solve(
        gram + extra * torch.eye(gram.shape[-1]).double(), centred.transpose(1, 2) @ target[..., None]
    )
    return (centred @ u)[..., 0]


def turned(logits: Tensor, evicted: Tensor, direction: Tensor, factor: float, most: float) -> Tensor:
    """Logits of the query moved along `direction` until the evicted mass share has changed by `factor`.

    Bisection over |t| ≤ `most`; NaN where no such t is found there (or the share would pass 1).
    """

    def share(t: Tensor) -> Tensor:
        moved = logits + t[..., None] * direction[:, None]
        return torch.where(evicted[:, None], moved.softmax(-1), 0.0).sum(-1)

    wanted = share(torch.zeros(logits.shape[:-1], dtype=torch.float64)) * factor
    low, high = (torch.full_like(wanted, side * most) for side in (-1.0, 1.0))
    for _ in range(48):
        middle = (low + high) / 2
        above = share(middle) > wanted
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    found = logits + low[..., None] * direction[:, None]
    reached = (share(low) / wanted - 1).abs() < 1e-6
    return torch.where(reached[..., None], found, torch.nan)
