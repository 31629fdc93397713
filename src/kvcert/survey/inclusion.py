"""Inclusion probabilities of the capped, floored Poisson design, and its draw."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

TWO32 = float(2**32)
#: A score below this share of the largest counts as 0: 1 / score must stay finite.
NEGLIGIBLE = 1e-290


class Design(NamedTuple):
    """A sampling design over context tokens.

    threshold : int64 [..., n], floor(pi * 2**32); 2**32 where the token is kept for certain.
    tail : bool [..., n], tokens with pi < 1.
    expected : float64 [...], m, the expected tail sample size.
    """

    threshold: Tensor
    tail: Tensor
    expected: Tensor

    @property
    def pi(self) -> Tensor:
        """Inclusion probabilities, float64 [..., n]: exactly threshold / 2**32."""
        return self.threshold.double() / TWO32

    @property
    def log_pi(self) -> Tensor:
        """log pi, float32 [..., n]; exactly 0 where the token is certain."""
        return self.pi.log().float()


def tree_sum(x: Tensor) -> Tensor:
    """Sum over the last dimension in a fixed binary-tree order, so that every device and batch gives the same bits."""
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = torch.nn.functional.pad(x, (0, 1))
        x = x[..., 0::2] + x[..., 1::2]
    return x[..., 0]


def capped_probabilities(z: Tensor, tail: Tensor, m: Tensor, epsilon: float) -> Tensor:
    """pi_i = clip(c z_i, epsilon, 1) on the tail, c the unique root of sum pi = m, found by bisection.

    Parameters
    ----------
    z : float64 [..., n], scores >= 0, finite.
    tail : bool [..., n].
    m : float64 [...], expected sample size, 0 <= m <= |T|.
    epsilon : floor of the probabilities.

    Returns
    -------
    float64 [..., n]; 0 outside the tail. Where no more than m scores are positive those are kept for certain and the
    remainder is uniform over the rest of the tail (docs/method.md; Sarndal, Swensson & Wretman 1992, section 3.6).
    """
    z = torch.where(tail, z, 0.0).double()
    z = z / z.amax(-1, keepdim=True).clamp_min(1e-300)
    size, m = tail.sum(-1).double(), m.double()
    positive = z > NEGLIGIBLE
    count = positive.sum(-1).double()
    # Geometric bisection: sqrt, product and clip are correctly rounded everywhere, exp and log are not.
    ones = torch.ones_like(m)
    low = ones * epsilon  # every pi at the floor
    smallest = torch.where(positive, z, 1.0).amin(-1)
    high = 1.0 / smallest  # every pi at 1

    def total(c: Tensor) -> Tensor:
        return tree_sum(torch.where(tail, (c[..., None] * z).clamp(epsilon, 1.0), 0.0))

    for _ in range(96):
        middle = low.sqrt() * high.sqrt()
        above = total(middle) > m
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    solved = (low[..., None] * z).clamp(epsilon, 1.0)
    rest = ((m - count) / (size - count).clamp_min(1.0)).clamp(0.0, 1.0)
    few = torch.where(positive, 1.0, rest[..., None])
    pi = torch.where((count <= m)[..., None], few, solved)
    return torch.where(tail, pi, 0.0)


def defensive_mixture(z: Tensor, tail: Tensor, lam: float) -> Tensor:
    """g_i = (1 - lam) z_i / sum_T z + lam / |T| on the tail: the score mixed with the uniform distribution.

    Fed to `capped_probabilities` in place of z it gives pi_i = clip(c g_i, epsilon, 1) with sum_T pi = m. As sum g = 1,
    c >= m - epsilon |T|, so that every tail token, capped or not, has

        pi_i >= lam (m / |T| - epsilon), and pi_i >= lam m / |T| where no probability lies at the floor,

    which is so whenever lam m / |T| >= (1 + lam) epsilon. Hence a_i / pi_i <= a_i |T| / (lam m) for every tail token,
    whatever the score says; a capped token has pi_i = 1 and a_i / pi_i = a_i. (The bound grows with |T| / m, and the
    design's rounding to multiples of 2**-32 takes up to that much from pi_i.)

    Parameters
    ----------
    z : [..., n], scores >= 0, finite. tail : bool [..., n]. lam : mixing weight, 0 < lam <= 1; 1 is the uniform tail.

    Returns
    -------
    float64 [..., n], 0 outside the tail; a tail whose scores are all 0 is uniform (Hesterberg 1995, "Weighted average
    importance sampling and defensive mixture distributions").
    """
    z = torch.where(tail, z, 0.0).double()
    largest = z.amax(-1, keepdim=True)
    # Divided by the largest first: the sum of finite scores need not be finite.
    z = z / largest.clamp_min(1e-300)
    total = tree_sum(z)[..., None]
    even = torch.where(tail, 1.0, 0.0).double() / tail.sum(-1, keepdim=True).clamp_min(1)
    share = torch.where(total > 0, z / total.clamp_min(1e-300), even)
    return (1.0 - lam) * share + lam * even


def certainty_set(
    z: Tensor, capacity: int, n_sink: int, n_recent: int, rho: float, alive: Tensor | None = None
) -> Tensor:
    """bool [..., n]: sinks, recents and the top floor(rho * (K - |C0|)) of the others by score (ties: earlier first).

    `alive`, bool [..., n], names the candidates where an earlier compression has already dropped tokens.

    Raises
    ------
    ValueError when the capacity does not exceed the protected tokens.
    """
    n = z.shape[-1]
    protected = protected_tokens(n, n_sink, n_recent).to(z.device)
    base = int(protected.sum())
    if capacity <= base:
        raise ValueError(f"capacity {capacity} does not exceed the {base} protected tokens")
    top = int(rho * (capacity - base))
    last = protected if alive is None else protected | ~alive
    ranked = torch.where(last, -1.0, z.double()).sort(dim=-1, descending=True, stable=True).indices
    certain = protected.expand(z.shape).clone().scatter(-1, ranked[..., :top], True)
    return certain if alive is None else certain & alive


def protected_tokens(n: int, n_sink: int, n_recent: int) -> Tensor:
    """bool [n], C0: the first `n_sink` and the last `n_recent` tokens."""
    position = torch.arange(n)
    return (position < n_sink) | (position >= n - n_recent)


def poisson_design(
    z: Tensor,
    capacity: int,
    *,
    n_sink: int,
    n_recent: int,
    rho: float,
    epsilon: float,
    lam: float = 0.0,
    alive: Tensor | None = None,
) -> Design:
    """The registered design: certainty set C, tail with pi proportional to the score, expected total K.

    With `lam` > 0 the tail follows `defensive_mixture` instead; the certainty set is that of the score all the same.

    Parameters
    ----------
    z : [..., n] importance scores >= 0.
    capacity : K, tokens kept per KV head in expectation. K >= n keeps everything.
    lam : weight of the uniform part, 0 (the registered design) to 1 (a uniform tail).
    alive : bool [..., n], the tokens that earlier compressions have left (default: all). The probabilities are then
        those of this stage, given the earlier ones; the others have threshold 0 and are outside the tail.

    Returns
    -------
    Design; probabilities are rounded down to multiples of 2**-32, which are then the true ones.
    """
    n = z.shape[-1]
    whole = torch.full(z.shape, 2**32, dtype=torch.int64, device=z.device)
    there = whole > 0 if alive is None else alive.expand(z.shape)
    if capacity >= n:
        expected = torch.zeros(z.shape[:-1], dtype=torch.float64, device=z.device)
        return Design(whole * there, whole < 0, expected)
    certain = certainty_set(z, capacity, n_sink, n_recent, rho, alive)
    tail = there & ~certain
    m = (capacity - certain.sum(-1).double()).minimum(tail.sum(-1).double())
    sizes = defensive_mixture(z, tail, lam) if lam else z
    pi = torch.where(tail, capped_probabilities(sizes, tail, m, epsilon), 1.0)
    threshold = (pi * TWO32).floor().to(torch.int64) * there
    tail = there & (threshold < 2**32)
    return Design(threshold, tail, torch.where(tail, threshold.double(), 0.0).sum(-1) / TWO32)


def poisson_draw(design: Design, u32: Tensor) -> Tensor:
    """bool [..., n]: keep iff u32 < floor(pi * 2**32). `u32` int64 in [0, 2**32)."""
    return u32 < design.threshold
