"""Controls by Monte Carlo at fixed query: the right design, then one assumption broken at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kvcert.exhibits.control_units import Drawn, Unit, certificate
from kvcert.survey.linearised import linearised_variance


def rows(unit: Unit) -> list[dict[str, Any]]:
    """One row per control: bias in Monte Carlo standard errors, coverage, mean squared error, largest radius."""
    kept, log_pi, s = unit.kept, unit.pi.log(), unit.logits
    shuffled = shuffle(log_pi, kept, unit.other)
    one = torch.zeros_like(log_pi)

    def draw(weights: Tensor, declared: Tensor) -> Drawn:
        return certificate(weights, declared, unit.values, kept, unit.delta)

    found = {
        "right design": draw(s - log_pi, log_pi),
        "declared pi = 1": draw(s, one),
        "offset off": draw(s, log_pi),
        "shuffled pi": draw(s - shuffled, shuffled),
    }
    right = mse(unit, found["right design"])
    return [
        unit.names
        | {
            "control": name,
            "bias": bias(unit, drawn),
            "coverage": float(((drawn.out - unit.truth).norm(dim=-1) <= drawn.radius).double().mean()),
            "mse_ratio": mse(unit, drawn) / right if right > 0 else None,
            "radius_max": float(drawn.radius.max()),
        }
        for name, drawn in found.items()
    ] + [unit.names | {"control": "reference", "bias": reference(unit)}]


def shuffle(log_pi: Tensor, kept: Tensor, order: Tensor) -> Tensor:
    """The declared log pi of each draw's retained tail tokens, permuted among them; [draws, n]. `order` decides how."""
    drawn, last = kept & (log_pi < 0), torch.iinfo(torch.int64).max
    place = torch.where(drawn, torch.arange(len(log_pi)), last).argsort(dim=-1, stable=True)
    other = torch.where(drawn, order, last).argsort(dim=-1, stable=True)
    moved = torch.zeros(kept.shape, dtype=log_pi.dtype).scatter(
        -1, place, log_pi.expand(kept.shape).gather(-1, other)
    )
    return torch.where(drawn, moved, log_pi)


def bias(unit: Unit, drawn: Drawn) -> float:
    """|mean(o_hat) - o| over its Monte Carlo standard error (root of the summed variances of the coordinates)."""
    error = (drawn.out.var(dim=0).sum() / len(drawn.out)).sqrt()
    return float((drawn.out.mean(0) - unit.truth).norm() / error.clamp_min(1e-300))


def mse(unit: Unit, drawn: Drawn) -> float:
    """Mean squared error of the estimate over the draws."""
    return float((drawn.out - unit.truth).square().sum(-1).mean())


def reference(unit: Unit) -> float:
    """The same for the Horvitz-Thompson total of the residuals at the true normaliser, which is unbiased, with its
    exact standard error: what the test says when nothing is broken."""
    a = unit.logits.softmax(-1)
    weight = torch.where(unit.kept, a / unit.pi, 0.0)
    mean = (weight @ (unit.values - unit.truth)).mean(0)
    return float(mean.norm() / (linearised_variance(a, unit.pi, unit.values) / len(weight)).sqrt())
