"""Ways to alter values in a snapshot: unbounded ones with a factor, bounded ones without."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from kvcert.survey.philox import philox4x32
from kvcert.tasks.stream import Stream


@dataclass(frozen=True)
class Alteration:
    """`none`, `scale`, `shift` (by `factor`), `permutation`, `rotation` or `sign`."""

    kind: str
    factor: float = 1.0


NONE = Alteration("none")
BOUNDED = (Alteration("permutation"), Alteration("rotation"), Alteration("sign"))


def unbounded(factors: list[float]) -> tuple[Alteration, ...]:
    """Scaling and shifting by each factor."""
    return tuple(Alteration(kind, float(factor)) for kind in ("scale", "shift") for factor in factors)


def alter(values: Tensor, chosen: Tensor, how: Alteration, key: tuple[object, ...]) -> Tensor:
    """Values [K, n, d] with those at `chosen` (bool [K, n]) altered; the others keep their bits.

    A shift is `factor` times the head's mean norm along (1, …, 1)/√d. A permutation moves every chosen value of a head by
    the same number of places among the chosen. A rotation is one random orthogonal matrix. `key` names the random choices.
    """
    d = values.shape[-1]
    if how.kind == "none":
        return values
    if how.kind == "scale":
        changed = values * how.factor
    elif how.kind == "shift":
        step = values.float().norm(dim=-1).mean(-1)[:, None, None] / math.sqrt(d)
        changed = (values + how.factor * step).to(values.dtype)
    elif how.kind == "sign":
        changed = -values
    elif how.kind == "rotation":
        changed = (values.float() @ rotation(d).to(values.device)).to(values.dtype)
    elif how.kind == "permutation":
        changed = values.clone()
        for head, row in enumerate(chosen):
            places = row.nonzero()[:, 0]
            if len(places) > 1:
                turn = 1 + Stream("permutation", *key, head).below(len(places) - 1)
                changed[head, places] = values[head, places.roll(turn)]
    else:
        raise ValueError(f"no alteration {how.kind!r}")
    return torch.where(chosen[..., None], changed, values)


def rotation(d: int) -> Tensor:
    """A fixed random orthogonal matrix, float32 [d, d]: the Q of normal numbers made from counter-based uniforms."""
    place = torch.arange(d * d)
    u, w = ((philox4x32((d, word), (place, 0, 0, 0)).double() + 0.5) / 2**32 for word in (1, 2))
    normal = (-2.0 * u.log()).sqrt() * (2.0 * math.pi * w).cos()
    q, r = torch.linalg.qr(normal.view(d, d))
    return (q * r.diagonal().sign()).float()
