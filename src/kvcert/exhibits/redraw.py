"""Many draws of a design on recorded queries, keys and values: the certificate of each, against the exact error."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kvcert.policies import design_of
from kvcert.survey.hajek import bernstein_radius, guard
from kvcert.survey.inclusion import TWO32, Design, capped_probabilities, certainty_set
from kvcert.survey.linearised import linearised_variance


class Recorded(NamedTuple):
    """Attention over a recorded context, float64. L layers, K heads (the panel's, one a KV head), S steps, n tokens.

    share : [L, K, S, n], softmax weights. logits : the same shape. values : [L, K, n, d]. z : [L, K, n], scores.
    """

    share: Tensor
    logits: Tensor
    values: Tensor
    z: Tensor


class Redrawn(NamedTuple):
    """What the draws of one design gave, [L, K, S, D] (D draws); `exact`, `r`: [L, K, S]; `m` broadcasts with them.

    error : ‖ô − o‖. radius, guarded : plain and guarded. variance : V̂. exact : the linearised variance. r : the largest
    a_i / (π_i Σ a) over the tail. m : expected tail sample size.
    """

    error: Tensor
    radius: Tensor
    guarded: Tensor
    variance: Tensor
    exact: Tensor
    r: Tensor
    m: Tensor


def recorded(trace: dict[str, Tensor], score: str, example: int) -> Recorded:
    """One example of a trace file (`kvcert.runner.trace.collect`) under one score, e.g. `score.streaming.snapkv`.

    Attention is over the context alone: the trace holds no keys of the question and the answer. The scale of
    the logits is d ** -0.5 (Llama, Qwen and Mistral families): the trace holds no scale of its own.
    """
    keys, values, queries = (trace[f"{example}/{name}"].double() for name in ("keys", "values", "queries"))
    per = queries.shape[1] // keys.shape[1]
    logits = queries[:, ::per] @ keys.transpose(-1, -2) * keys.shape[-1] ** -0.5
    return Recorded(logits.softmax(-1), logits, values, trace[f"{example}/{score}"].double())


def deployed(about: Recorded, capacity: int, constants: dict[str, float]) -> Design:
    """The registered design, π from the score; shaped [L, K, 1, n] to meet every step."""
    design = design_of(about.z, capacity, constants)
    return Design(design.threshold[:, :, None], design.tail[:, :, None], design.expected[:, :, None])


def oracle(about: Recorded, capacity: int, constants: dict[str, float]) -> Design:
    """π ∝ a of this very query: the same certainty set, the same m, the same floor; [L, K, S, n]."""
    certain = certainty_set(about.z, capacity, *_protected(constants))
    m = capacity - certain.sum(-1).double()
    tail = ~certain[:, :, None].expand(about.share.shape)
    pi = capped_probabilities(about.share, tail, m[:, :, None].expand(tail.shape[:-1]), constants["epsilon"])
    threshold = (torch.where(tail, pi, 1.0) * TWO32).floor().to(torch.int64)
    tail = threshold < 2**32
    expected = torch.where(tail, threshold.double(), 0.0).sum(-1) / TWO32
    return Design(threshold, tail, expected)


def _protected(constants: dict[str, float]) -> tuple[int, int, float]:
    return int(constants["n_sink"]), int(constants["n_recent"]), constants["rho"]


def redraw(about: Recorded, design: Design, u32: Tensor, constants: dict[str, float]) -> Redrawn:
    """Draw `design` with the uniforms `u32` [D, L, K, S, n] and certify each draw."""
    truth = about.share @ about.values
    log_pi, pi = design.log_pi.double(), design.pi
    found = [
        _certify(about, truth, log_pi, pi, (draw < design.threshold), design.expected, constants)
        for draw in u32
    ]
    error, radius, guarded, variance = (torch.stack(column, -1) for column in zip(*found, strict=True))
    exact = linearised_variance(about.share, pi, about.values[:, :, None])
    r = torch.where(design.tail, about.share / pi, 0.0).amax(-1)
    return Redrawn(error, radius, guarded, variance, exact, r, design.expected)


def _certify(
    about: Recorded, truth: Tensor, log_pi: Tensor, pi: Tensor, keep: Tensor, expected: Tensor, constants: dict[str, float]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """As `survey.hajek.hajek_certificate`, all steps of a head in one matrix product; error, radius, guarded, V̂."""
    values = about.values
    p = (about.logits - log_pi).masked_fill(~keep, float("-inf")).softmax(-1)
    out = p @ values
    sampled = keep & (log_pi < 0)
    tail = torch.where(sampled, p, 0.0)
    count = sampled.double().sum(-1)
    centre = sampled.double() @ values / count.clamp_min(1.0)[..., None]
    squares = values.square().sum(-1)[:, :, None]

    def distance(to: Tensor) -> Tensor:  # squared, of every value to one point a step
        cross = to @ values.transpose(-1, -2)
        return (squares - 2.0 * cross + to.square().sum(-1, keepdim=True)).clamp_min(0.0)

    variance = ((1.0 - pi) * tail.square() * distance(out)).sum(-1)
    largest = tail.amax(-1)
    bound = (tail * distance(centre).sqrt()).amax(-1) + (out - centre).norm(dim=-1) * largest
    radius = bernstein_radius(variance, bound, constants["delta"])
    guarded = guard(radius, largest)
    # As the runner does: too small a sample says nothing about what it missed.
    blind = (expected < constants["m_min"]) | (count == 0)
    infinite = torch.where(blind, float("inf"), 0.0)
    return (out - truth).norm(dim=-1), radius + infinite, guarded + infinite, variance
