"""Negative controls: one assumption broken at a time, and what has to happen then."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from kvcert.exhibits import control_draws, control_logs, control_needle, registration
from kvcert.exhibits.control_units import units
from kvcert.exhibits.interval import median, share
from kvcert.exhibits.material import Reading, readings
from kvcert.exhibits.outcome import Measured, record
from kvcert.exhibits.witness import Case, decode
from kvcert.policies.base import certain
from kvcert.runner.decoding import decode_full

Progress = Callable[[str], None]
#: Monte Carlo standard errors beyond which a bias is no noise.
BEYOND = 3.0
#: Tokens decoded with everything kept.
STEPS = 4


def measure(config: dict[str, Any], root: Path, progress: Progress) -> dict[str, Any]:
    """Run every control and record them."""
    parameters = registration.load(root)["controls"]["parameters"]
    results, started = Path(config["run"]["results"]), time.monotonic()
    found: list[dict[str, Any]] = []
    whole: list[dict[str, Any]] = []
    torch.set_num_threads(config["run"]["threads"])
    with torch.inference_mode():
        for reading in readings(config, parameters["examples_per_task"], STEPS):
            whole += identity(reading)
            reading.context.end = reading.ids.shape[1] - 1
            for unit in units(reading, parameters["budget"], parameters["draws"]):
                found += control_draws.rows(unit) + control_needle.rows(unit, parameters)
            progress(
                f"controls: {reading.names['task']} example {reading.example}, {time.monotonic() - started:.0f} s"
            )
    labels, shuffles = control_logs.shuffled_labels(results, root, config, parameters["shuffles"])
    damaged = control_logs.damaged_logs(results, root, config)
    progress(f"controls: labels and damaged logs, {time.monotonic() - started:.0f} s")
    rows, kept = pd.DataFrame(found), pd.DataFrame(whole)
    measured = by_draws(rows) | by_needle(rows) | by_identity(kept) | by_logs(damaged)
    about = {
        "model": config["study"]["models"][0]["name"],
        "seed": config["study"]["seed"],
        "draws": parameters["draws"],
    }
    about |= {
        "units": int((rows["control"] == "right design").sum()),
        "seconds": round(time.monotonic() - started, 1),
    }
    return record(
        results, root, "controls", measured | {"controls.shuffled_labels": labels},
        {"": rows, "identity": kept, "labels": shuffles, "damages": damaged}, about,
    )  # fmt: skip


def identity(reading: Reading) -> list[dict[str, Any]]:
    """Everything kept at pi = 1, decoded through the retained cache, beside the full cache's own greedy tokens."""
    last, place = int(reading.ids[0, -1]), reading.ids.shape[1] - 1
    full = decode_full(reading.model, reading.context, last, place, STEPS).tokens
    shape = (reading.model.n_layers, reading.model.n_kv_heads, reading.n)
    keep = torch.ones(shape, dtype=torch.bool, device=reading.ids.device)
    settings = reading.spec["settings"]
    cases = [Case(setting, reading.context, certain(keep), torch.ones(shape)) for setting in settings]
    rows = []
    for setting, seen in zip(settings, decode(reading, cases, STEPS), strict=True):
        error = seen.heads["error"] / seen.heads["norm_true"].clamp_min(1e-30)
        same = sum(a == b for a, b in zip(seen.tokens, full, strict=False)) / len(full)
        figures = {
            "variance": float(seen.heads["variance"].max()),
            "error": float(error.max()),
            "tokens": same,
        }
        rows.append(reading.names | {"setting": setting} | figures)
    return rows


def by_draws(rows: pd.DataFrame) -> dict[str, Measured]:
    """The Monte Carlo controls' values."""

    def of(control: str) -> pd.DataFrame:
        some = rows[rows["control"] == control]
        return some.assign(beyond=some["bias"] > BEYOND, within=some["bias"] <= BEYOND)

    right = of("right design")
    beside = f"right design: {right['beyond'].mean():.3f} beyond, coverage {right['coverage'].mean():.3f}"
    return {
        "controls.reference": share(of("reference"), "within"),
        "controls.declared_one_radius": Measured(
            float(of("declared pi = 1")["radius_max"].max()), n=len(right)
        ),
        "controls.declared_one_coverage": share(of("declared pi = 1"), "coverage"),
        "controls.offset_off_bias": share(of("offset off"), "beyond", beside),
        "controls.offset_off_coverage": share(of("offset off"), "coverage", beside),
        "controls.shuffled_pi_bias": share(of("shuffled pi"), "beyond", beside),
        "controls.shuffled_pi_mse": median(of("shuffled pi"), "mse_ratio"),
    }


def by_needle(rows: pd.DataFrame) -> dict[str, Measured]:
    """The planted needle's values."""
    missed, alone, company = (
        rows[rows["control"] == f"needle {how}"] for how in ("missed", "caught alone", "caught in company")
    )
    ess = (
        f"full attention's own ESS: median {missed['ess_full_before'].median():.1f}, "
        f"then {missed['ess_full'].median():.1f}"
    )
    beside = (
        f"among other drawn tokens: plain {company['coverage'].mean():.3f}, "
        f"guarded {company['coverage_guarded'].mean():.3f}"
    )
    return {
        "controls.missed_coverage": share(missed, "coverage"),
        "controls.missed_diagnostics": share(missed, "unmoved", ess),
        "controls.caught_ess": median(alone, "ess"),
        "controls.caught_plain": share(alone, "coverage", beside),
        "controls.caught_guarded": share(alone, "coverage_guarded", beside),
    }


def by_identity(rows: pd.DataFrame) -> dict[str, Measured]:
    """The values with everything kept."""
    return {
        "controls.identity_variance": Measured(float(rows["variance"].max()), n=len(rows)),
        "controls.identity_output": Measured(float(rows["error"].max()), n=len(rows)),
        "controls.identity_tokens": Measured(float(rows["tokens"].mean()), n=len(rows)),
    }


def by_logs(damaged: pd.DataFrame) -> dict[str, Measured]:
    """What the gate let pass and what it refused."""
    whole, broken = damaged[damaged["damage"] == "none"], damaged[damaged["damage"] != "none"]
    passed = ", ".join(broken["damage"][~broken["refused"]]) or "none"
    return {
        "controls.whole_logs": Measured(float((~whole["refused"]).mean()), n=len(whole)),
        "controls.damaged_logs": Measured(
            float(broken["refused"].mean()), n=len(broken), note=f"let pass: {passed}"
        ),
    }
