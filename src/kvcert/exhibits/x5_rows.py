"""X5's rows: every head with its evicted tokens merged, as it is and under both interventions, and its slopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from kvcert.exhibits import x5_merge as merge
from kvcert.exhibits.traces import Trace, design
from kvcert.exhibits.x5_queries import along, raised, turned
from kvcert.survey.inclusion import Design
from kvcert.survey.linearised import linearised_variance

Columns = dict[str, Tensor]


def example_frames(trace: Trace, given: dict[str, Any], constants: dict[str, float]) -> list[pd.DataFrame]:
    """One row per (layer, KV head, step, setting, budget, variant), every intervention in columns."""
    steps, frames = trace.steps(given["steps"]), []
    logits = trace.logits(steps)
    for setting, z in trace.scores.items():
        for budget in given["budgets"]:
            whole, capacity = design(trace, setting, budget, constants)
            for i, layer in enumerate(trace.layers):
                part = Design(*(field[i] for field in whole))
                slots = capacity - (~part.tail).sum(-1)
                if not ((slots >= 1) & (part.tail.sum(-1) > slots)).all():
                    continue
                moved = queries(logits[i], trace.keys[i], part.tail, given)
                base = {"layer": layer, "setting": setting, "budget": budget, "n": trace.n}
                rival = poisson_error(logits[i], part, trace.values[i])
                for variant in given["variants"]:
                    parts = partition(variant, part.tail, slots, trace.keys[i], z[i])
                    found = interventions(logits[i], trace.values[i], parts, moved, given)
                    found["poisson"] = rival
                    frames.append(flat(found, trace.key | base | {"variant": variant["name"]}, steps))
    return frames


def partition(
    variant: dict[str, str], evicted: Tensor, slots: Tensor, keys: Tensor, z: Tensor
) -> merge.Strata:
    """The strata of a registered variant: `strata` is position or key, `weights` is equal or score."""
    if variant["strata"] == "position":
        labels = merge.labels_by_position(evicted, slots)
    else:
        labels = merge.labels_by_key(evicted, slots, keys)
    # A stratum of zero scores falls back to its plain mean, as the design's tail does.
    weights = (
        torch.ones_like(z) if variant["weights"] == "equal" else z.clamp_min(z.amax(-1, keepdim=True) * 1e-12)
    )
    return merge.strata(labels, weights)


def queries(logits: Tensor, keys: Tensor, evicted: Tensor, given: dict[str, Any]) -> Columns:
    """Logits of the altered queries: `offset_<g>` (mass alone) and `query_<g>` (the real query, turned)."""
    direction, found = along(keys, evicted, given["ridge"]), {}
    for factor in given["mass_factors"]:
        found[f"offset_{factor:g}"] = raised(logits, evicted, factor)
        found[f"query_{factor:g}"] = turned(logits, evicted, direction, factor, given["most"])
    return found


def interventions(
    logits: Tensor, values: Tensor, parts: merge.Strata, moved: Columns, given: dict[str, Any]
) -> Columns:
    """The anatomy of the error as it is, and the errors under both interventions, each [heads, steps].

    `key` is the norm of the error at dispersion 0, where only the strata's masses are wrong.
    """
    merged = merge.Merged(values, parts)
    found = merged.anatomy(logits) | {"output": merged.truth(logits).norm(dim=-1)}
    out = merged.output(logits)
    start = out - merged.truth(logits, 0.0)
    unit = out - merged.truth(logits) - start
    found["key"] = start.norm(dim=-1)
    gap = torch.zeros_like(found["error"])
    for factor in given["dispersion_factors"]:
        error = out - merged.truth(logits, factor)
        found[f"dispersion_{factor:g}"] = error.norm(dim=-1)
        gap = torch.maximum(gap, (error - start - factor * unit).norm(dim=-1) / error.norm(dim=-1))
    # The error must be affine in the factor: error(f) = error(0) + f (error(1) - error(0)).
    found["affine_gap"] = gap
    for name, altered in moved.items():
        shown = merged.anatomy(altered)
        found |= {f"{name}_{what}": shown[what] for what in ("error", "value", "mass", "chi")}
    return found


def poisson_error(logits: Tensor, part: Design, values: Tensor) -> Tensor:
    """Root of the linearised variance of the Poisson design with the same certainty set and budget, [heads, steps]."""
    shape = (*logits.shape, values.shape[-1])
    a = (logits - logits.amax(-1, keepdim=True)).exp()
    return linearised_variance(a, part.pi[:, None].expand(a.shape), values[:, None].expand(shape)).sqrt()


def flat(found: Columns, base: dict[str, Any], steps: list[int]) -> pd.DataFrame:
    """A frame of all heads and steps from columns [heads, steps]."""
    heads = len(next(iter(found.values())))
    frame = pd.DataFrame({name: value.reshape(-1).numpy() for name, value in found.items()})
    frame.insert(0, "head", np.repeat(np.arange(heads), len(steps)))
    frame.insert(1, "step", np.tile(steps, heads))
    for name, value in base.items():
        frame[name] = value
    return frame


def with_slopes(rows: pd.DataFrame, given: dict[str, Any]) -> pd.DataFrame:
    """Log-log slopes of each unit: of its error in the dispersion factor, and in its evicted mass.

    The mass slopes are over the factors that were reached and keep the mass at or below `mass_cap`; NaN with fewer than
    three.
    """
    factors = [factor for factor in given["dispersion_factors"] if factor > 0]
    x = np.tile(np.log(factors), (len(rows), 1))
    rows["slope_dispersion"] = slopes(x, np.log(rows[[f"dispersion_{f:g}" for f in factors]].to_numpy()))
    for kind in ("query", "offset"):
        names = [f"{kind}_{f:g}" for f in given["mass_factors"]]
        mass = rows[[f"{name}_mass" for name in names]].to_numpy()
        x = np.where(mass <= given["mass_cap"], np.log(mass), np.nan)
        for what in ("error", "value"):
            y = np.log(rows[[f"{name}_{what}" for name in names]].to_numpy())
            rows[f"slope_{kind}_{what}"] = slopes(x, y)
        rows[f"slope_{kind}_chi"] = slopes(x, np.log(rows[[f"{name}_chi" for name in names]].to_numpy()))
    return rows


def slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least-squares slope of each row of y on x over its finite points; NaN with fewer than three."""
    good = np.isfinite(x) & np.isfinite(y)
    count = good.sum(1)
    x, y = np.where(good, x, 0.0), np.where(good, y, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        dx = np.where(good, x - (x.sum(1) / count)[:, None], 0.0)
        return np.where(count >= 3, (dx * y).sum(1) / (dx * dx).sum(1), np.nan)
