"""Certificates as they would have been under other choices, recomputed from the logged heads. No torch.

Panel, window, floor, δ and the form of the radius enter after the draw: variance, bound, weights and errors of every
logged head say what each choice would have given. ρ and ε enter before it and need reruns (`ablations`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.frames import read_columns
from kvcert.spacing import panel_layers

COLUMNS = [
    "run_id", "step", "layer", "panel", "variance", "bound", "radius", "error", "norm", "p_sampled", "m", "tail",
    "tail_kept",
]  # fmt: skip
EVERY = 10**9


@dataclass(frozen=True)
class Variant:
    """One choice. `layers` and `steps` may exceed what is logged: then all of them are meant."""

    factor: str
    value: str
    registered: bool
    floor: float
    delta: float
    layers: int
    signal_steps: int
    form: str = "registered"
    all_heads: bool = False
    coverage_steps: int = EVERY


def listed(constants: dict[str, float], parameters: dict[str, Any]) -> list[Variant]:
    """The registered configuration first, then every variant that needs no rerun, factor by factor."""
    base = Variant(
        "registered",
        "all as registered",
        True,
        float(constants["floor"]),
        float(constants["delta"]),
        int(constants["panel_layers"]),
        int(constants["signal_steps"]),
    )

    def each(
        factor: str, field: str, values: Iterable[Any], name: Callable[[Any], str] = "{:g}".format
    ) -> list[Variant]:
        known, listed = getattr(base, field), list(values)
        listed += [] if known in listed else [known]  # every factor has its registered value to compare with
        return [
            replace(base, factor=factor, value=name(x), registered=x == known, **{field: x}) for x in listed
        ]

    names = {False: "first of each KV head", True: "all"}
    found = [base, *each("query heads", "all_heads", (False, True), names.__getitem__)]
    found += each("panel layers", "layers", parameters["layers"])
    # The window is a choice about the run's signal; its coverage is that of the steps inside it.
    found += [
        replace(v, coverage_steps=v.signal_steps)
        for v in each("signal steps", "signal_steps", parameters["steps"])
    ]
    found += each("floor", "floor", parameters["floors"]) + each("delta", "delta", parameters["deltas"])
    return found + each("radius", "form", parameters["forms"], str)


def radius(
    form: str, variance: np.ndarray, bound: np.ndarray, p_sampled: np.ndarray, delta: float
) -> np.ndarray:
    """(n,) radius of one form from the logged V̂, B̂ and the largest sampled weight.

    `registered`: plug-in Bernstein. `guarded`: it over 1 − p. `no range term`: √(2 V̂ L). `standard error`: √V̂.
    """
    level = math.log(2.0 / delta)
    if form == "standard error":
        return np.sqrt(variance)
    if form == "no range term":
        return np.sqrt(2.0 * level * variance)
    linear = bound * (level / 3.0)
    plain = linear + np.sqrt(linear * linear + 2.0 * level * variance)
    if form == "registered":
        return plain
    if form != "guarded":
        raise ValueError(f"no radius of the form {form!r}")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p_sampled < 1.0, plain / (1.0 - p_sampled), np.inf)


def evenly(layers: list[int], count: int) -> list[int]:
    """`count` evenly spaced of the logged layers, as the panel itself is laid out; all where there are fewer."""
    return [layers[i] for i in panel_layers(len(layers), count)]


def recompute(files: list[Path], run_ids: pd.Series, variants: list[Variant]) -> list[pd.DataFrame]:
    """Per variant and run (index of `run_ids`): `C1a`, `C1b` and `signal`, NaN where a run has no usable unit.

    C1a is the share of steps whose panel error is within the panel certificate, C1b the share of covered (layer, head,
    step), `signal` the mean step certificate of the first steps: as the runner and claim C1 define them.
    """
    index = pd.Index(run_ids)
    found = [
        pd.DataFrame(np.nan, index=range(len(index)), columns=["C1a", "C1b", "signal"]) for _ in variants
    ]
    for file in files:
        table = read_columns(file, COLUMNS)
        if table.num_rows == 0:
            continue
        names = table.column("run_id").combine_chunks()
        run = index.get_indexer(names.dictionary.to_pylist())[names.indices.to_numpy()]
        keep = run >= 0
        data = {name: table.column(name).to_numpy()[keep] for name in COLUMNS[1:]}
        data |= {
            name: data[name].astype(np.float64)
            for name in ("variance", "bound", "error", "norm", "p_sampled")
        }
        data["run"] = run[keep]
        if len(data["run"]):
            for frame, variant in zip(found, variants, strict=True):
                _fill(frame, data, variant)
    return found


def _fill(frame: pd.DataFrame, data: dict[str, np.ndarray], variant: Variant) -> None:
    """Write one file's runs into a variant's frame."""
    layers = sorted(np.unique(data["layer"]).tolist())
    inside = np.isin(data["layer"], evenly(layers, variant.layers)) & (data["panel"] | variant.all_heads)
    data = {name: values[inside] for name, values in data.items()}
    r = radius(variant.form, data["variance"], data["bound"], data["p_sampled"], variant.delta)
    r = np.where(np.isinf(data["radius"]), np.inf, r)  # a sample too small to say anything
    error, run, step = data["error"], data["run"], data["step"]

    sampled = (data["tail"] > 0) & ~(data["m"] >= data["tail"]) & (step <= variant.coverage_steps)
    sampled &= np.isfinite(error) & ~np.isnan(r)
    C1b = pd.Series((error <= r)[sampled]).groupby(run[sampled]).mean()

    evicted = data["tail"] > data["tail_kept"]
    norm = np.maximum(data["norm"], variant.floor)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = pd.DataFrame({"run": run, "step": step, "certificate": r / norm, "error": error / norm})[
            evicted
        ]
    steps = relative.groupby(["run", "step"], as_index=False).mean()
    window = steps["step"] <= variant.signal_steps
    signal = steps[window & steps["certificate"].notna()].groupby("run")["certificate"].mean()
    steps = steps[
        (steps["step"] <= variant.coverage_steps) & np.isfinite(steps["error"]) & steps["certificate"].notna()
    ]
    C1a = (steps["error"] <= steps["certificate"]).groupby(steps["run"]).mean()
    for name, values in (("C1a", C1a), ("C1b", C1b), ("signal", signal)):
        frame.loc[values.index, name] = values.to_numpy(float)
