"""Real attention heads with a real design, in float64: what the Monte Carlo controls break on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kvcert.attention import forward
from kvcert.exhibits.material import Reading
from kvcert.policies import design_of
from kvcert.runner.example import example_hash
from kvcert.runner.panel import panel_layers
from kvcert.survey.hajek import bernstein_radius, guard
from kvcert.survey.inclusion import TWO32
from kvcert.survey.philox import philox4x32


@dataclass(frozen=True)
class Unit:
    """One (example, setting, layer, head): logits [n], values [n, d], pi [n] (1 for certain tokens and for those after the
    context), all float64; `u32` the draws' uniforms and `other` a second stream, both int64 [draws, n]."""

    names: dict[str, Any]
    logits: Tensor
    values: Tensor
    pi: Tensor
    u32: Tensor
    other: Tensor
    delta: float

    @property
    def truth(self) -> Tensor:
        """o, [d]."""
        return self.logits.softmax(-1) @ self.values

    @property
    def kept(self) -> Tensor:
        """The draws, bool [draws, n]."""
        return self.u32 < (self.pi * TWO32).long()


class Drawn(NamedTuple):
    """Estimate and certificate of every draw: out [draws, d], the rest [draws]."""

    out: Tensor
    variance: Tensor
    radius: Tensor
    guarded: Tensor
    ess: Tensor
    p_max: Tensor


def units(reading: Reading, budget: float, draws: int) -> Iterator[Unit]:
    """The panel's heads (first query head of each KV head) at the first decode step of one prompt."""
    model, spec, context = reading.model, reading.spec, reading.context
    constants, n, size = spec["constants"], reading.n, reading.ids.shape[1]
    forward(model.model, context, reading.ids[:, -1:], size - 1)
    per, seed, hashed = (
        model.n_heads // model.n_kv_heads,
        spec["seed"],
        example_hash(spec["model"]["name"], reading.prompt.sha256),
    )
    place, draw = torch.arange(size), torch.arange(draws)[:, None]
    pi = {}
    for setting in spec["settings"]:
        z = reading.scores(setting, spec["scorer"])
        design = design_of(z, reading.capacity(budget), constants)
        pi[setting] = torch.nn.functional.pad(design.pi, (0, size - n), value=1.0).cpu()
    for layer in panel_layers(model.n_layers, int(constants["panel_layers"])):
        queries = context.queries[layer]
        assert queries is not None
        for head in range(model.n_kv_heads):
            keys = context.keys[layer][0, head, :size].double().cpu()
            logits = keys @ queries[head * per, -1].double().cpu() * context.scale
            values = context.values[layer][0, head, :size].double().cpu()
            key, where = (seed & 0xFFFFFFFF, seed >> 32), layer * 65536 + head
            u32, other = (philox4x32(key, (place, where, hashed, (draw << 8) | stage)) for stage in (0, 255))
            for setting, found in pi.items():
                if bool((found[layer, head] < 1).any()):
                    names = reading.names | {"setting": setting, "layer": layer, "head": head * per}
                    yield Unit(names, logits, values, found[layer, head], u32, other, constants["delta"])


def certificate(
    weights: Tensor, log_pi: Tensor, values: Tensor, kept: Tensor, delta: float, centre: Tensor | None = None
) -> Drawn:
    """Certified attention of many samples of one population, by the moments Q0, Q1, Q2 (`survey.hajek` in one pass).

    Parameters
    ----------
    weights : [n] or [draws, n], log of the weights w before normalising (logits - log pi in the right design).
    log_pi : [n] or [draws, n], the *declared* log inclusion probability, in the variance alone.
    values : [n, d]. kept : bool [draws, n]. centre : [draws, d] (default: mean of the retained tail values).
    """
    p = weights.expand(kept.shape).masked_fill(~kept, float("-inf")).softmax(-1)
    sampled = kept & (log_pi < 0)
    excluded = torch.where(sampled, -torch.expm1(log_pi), 0.0)
    out, size = p @ values, values.square().sum(-1)
    c = excluded * p.square()
    q0, q1, q2 = c.sum(-1), c @ values, c @ size
    variance = (q2 - 2 * (out * q1).sum(-1) + out.square().sum(-1) * q0).clamp_min(0.0)
    if centre is None:
        tail = sampled.double()
        centre = tail @ values / tail.sum(-1, keepdim=True).clamp_min(1.0)
    spread = (size - 2 * centre @ values.T + centre.square().sum(-1, keepdim=True)).clamp_min(0.0).sqrt()
    share = torch.where(sampled, p, 0.0)
    p_sampled = share.amax(-1)
    bound = (share * spread).amax(-1) + (out - centre).norm(dim=-1) * p_sampled
    radius = bernstein_radius(variance, bound, delta)
    return Drawn(out, variance, radius, guard(radius, p_sampled), 1 / p.square().sum(-1), p.amax(-1))
