"""A heavy token planted in a real head: what the draw missed leaves no trace, what it caught masks itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from kvcert.exhibits.control_units import Drawn, Unit, certificate
from kvcert.survey.inclusion import TWO32
from kvcert.tasks.stream import Stream


def rows(unit: Unit, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """`needle missed`, `needle caught alone`, `needle caught in company`: coverage, effective sample sizes, what moved."""
    tail = (unit.pi < 1).nonzero()[:, 0]
    place = int(tail[Stream("needle", *unit.names.values()).below(len(tail))])
    missed = plant(unit, place, parameters["needle_share_missed"], parameters["needle_pi"])
    without = missed.kept & (torch.arange(len(unit.pi)) != place)
    # The needle's probability is set in both: without it the token's own value and key stand at its place.
    before = certify(replace(unit, pi=missed.pi), without)
    after = certify(missed, without)
    equal = torch.stack([(x == y).reshape(len(x), -1).all(-1) for x, y in zip(before, after, strict=True)])
    found = [_row(missed, "needle missed", after) | {"unmoved": float(equal.all(0).double().mean())}]
    caught = plant(unit, place, parameters["needle_share_caught"], parameters["needle_pi"])
    alone = ((caught.pi == 1) | (torch.arange(len(unit.pi)) == place))[None]
    found.append(_row(caught, "needle caught alone", certify(caught, alone)))
    company = caught.kept | (torch.arange(len(unit.pi)) == place)
    found.append(_row(caught, "needle caught in company", certify(caught, company)))
    ess = [float(1 / u.logits.softmax(-1).square().sum()) for u in (unit, missed)]
    found[0] |= {"ess_full_before": ess[0], "ess_full": ess[1]}
    return found


def plant(unit: Unit, place: int, share: float, pi: float) -> Unit:
    """The unit with a token at `place` that holds `share` of the full attention and is drawn with probability `pi`.

    Setting its logit is replacing its key by a multiple of the query. Its value moves by three mean norms along
    (1, …, 1)/√d.
    """
    logits, values, probability = unit.logits.clone(), unit.values.clone(), unit.pi.clone()
    logits[place] = float("-inf")
    logits[place] = logits.logsumexp(-1) + math.log(share / (1 - share))
    values[place] += 3 * unit.values.norm(dim=-1).mean() / math.sqrt(values.shape[-1])
    probability[place] = math.floor(pi * TWO32) / TWO32
    return replace(unit, logits=logits, values=values, pi=probability)


def certify(unit: Unit, kept: Tensor) -> Drawn:
    """The right design on given samples, bool [samples, n]."""
    log_pi = unit.pi.log()
    return certificate(unit.logits - log_pi, log_pi, unit.values, kept, unit.delta)


def _row(unit: Unit, control: str, drawn: Drawn) -> dict[str, Any]:
    error = (drawn.out - unit.truth).norm(dim=-1)
    return unit.names | {
        "control": control,
        "coverage": float((error <= drawn.radius).double().mean()),
        "coverage_guarded": float((error <= drawn.guarded).double().mean()),
        "ess": float(drawn.ess.median()),
        "error": float(error.median()),
        "radius": float(drawn.radius.median()),
        "guarded": float(drawn.guarded.median()),
    }
