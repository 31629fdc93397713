"""X2: the variance estimator and the radius on recorded attention, analytically, by simulation and by enumeration."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from kvcert.claims.heads import BANDS, EDGES
from kvcert.exhibits import clustered, outcome, registration
from kvcert.exhibits.outcome import Measured
from kvcert.exhibits.traces import Trace, design, read
from kvcert.exhibits.x2_draws import sample, summary, uniforms
from kvcert.exhibits.x2_exact import analytic, enumerate_samples, small_design
from kvcert.survey.inclusion import Design

Rows = list[dict[str, Any]]


def measure(config: dict[str, Any], root: Path, progress: Callable[[str], None]) -> None:
    """Measure X2 on the traces of these results and write its outcome.

    Raises
    ------
    KvcertError when traces are missing or the registration is not complete.
    """
    started = time.monotonic()
    given = registration.load(root)["X2"]["parameters"]
    constants = config["study"]["constants"]
    exact: Rows = []
    drawn: Rows = []
    small: Rows = []
    torch.set_num_threads(config["run"]["threads"])
    with torch.inference_mode():
        for number, trace in enumerate(read(config, given["examples"]), 1):
            exact += analytic_rows(trace, given, constants)
            drawn += drawn_rows(trace, given, constants)
            small += small_rows(trace, given, constants)
            progress(f"X2: example {number}, {time.monotonic() - started:.0f} s")
    frames = {"": banded(drawn), "analytic": banded(exact), "enumeration": pd.DataFrame(small)}
    about = {
        "examples": number,
        "units": {"drawn": len(drawn), "analytic": len(exact), "enumerated": len(small)},
        "draws": given["draws"],
        "population": "the context's tokens; what a run appends later is not in the traces",
        "seconds": round(time.monotonic() - started, 1),
    }
    outcome.record(Path(config["run"]["results"]), root, "X2", expectations(frames, given), frames, about)


def analytic_rows(trace: Trace, given: dict[str, Any], constants: dict[str, float]) -> Rows:
    """One row per (layer, KV head, step, setting, budget) of the whole panel; no draws."""
    steps = trace.steps(given["steps"])
    logits, rows = trace.logits(steps), []
    a = (logits - logits.amax(-1, keepdim=True)).exp()
    for setting in trace.scores:
        for budget in given["budgets"]:
            whole, _ = design(trace, setting, budget, constants)
            for i, layer in enumerate(trace.layers):
                part = Design(whole.threshold[i], whole.tail[i], whole.expected[i])
                found = analytic(a[i], part, trace.values[i], given["grades"])
                rows += [
                    trace.key
                    | {"layer": layer, "head": head, "step": step, "setting": setting, "budget": budget}
                    | {"n": trace.n, "m": float(part.expected[head]), "tail": int(part.tail[head].sum())}
                    | {name: float(value[head, at]) for name, value in found.items()}
                    for head in range(a.shape[1])
                    for at, step in enumerate(steps)
                    if part.tail[head].any()
                ]
    return rows


def drawn_rows(trace: Trace, given: dict[str, Any], constants: dict[str, float]) -> Rows:
    """The same fields and the simulation's, for a registered random choice of (layer, KV head) pairs.

    Settings, budgets and steps of a pair share their uniforms, as runs do.
    """
    steps, seed = trace.steps(given["steps"]), given["seed"]
    stream = trace.stream("X2", seed)
    pairs = stream.sample(trace.heads, min(given["pairs"], len(trace.heads)))
    word, logits, rows = stream.below(2**32), trace.logits(steps), []
    a = (logits - logits.amax(-1, keepdim=True)).exp()
    kinds = [(setting, budget) for setting in trace.scores for budget in given["budgets"]]
    designs = {kind: design(trace, *kind, constants)[0] for kind in kinds}
    for i, head in pairs:
        used = [
            kind
            for kind in kinds
            if designs[kind].tail[i, head].any()
            and float(designs[kind].expected[i, head]) >= constants["m_min"]
        ]
        parts: dict[tuple[str, float], list[Any]] = {kind: [] for kind in used}
        for start in range(0, given["draws"], given["block"]):
            block = range(start, min(start + given["block"], given["draws"]))
            u32 = uniforms(seed, word, i, head, trace.n, block)
            for kind in used:
                parts[kind].append(
                    sample(
                        logits[i, head],
                        designs[kind].threshold[i, head],
                        trace.values[i, head],
                        u32,
                        constants["delta"],
                    )
                )
        for kind in used:
            whole = designs[kind]
            part = Design(*(field[i, head : head + 1] for field in whole))
            known = analytic(a[i, head : head + 1], part, trace.values[i, head : head + 1], given["grades"])
            for at, (step, found) in enumerate(
                zip(steps, summary(parts[kind], given["grades"]), strict=True)
            ):
                rows.append(
                    trace.key
                    | {"layer": trace.layers[i], "head": head, "step": step}
                    | {"setting": kind[0], "budget": kind[1], "n": trace.n, "m": float(part.expected)}
                    | {"tail": int(part.tail.sum())}
                    | {name: float(value[0, at]) for name, value in known.items()}
                    | found
                )
    return rows


def small_rows(trace: Trace, given: dict[str, Any], constants: dict[str, float]) -> Rows:
    """Small populations of real tokens, with a design of their own, and all of their samples."""
    stream, rows = trace.stream("X2 enumeration", given["seed"]), []
    step = 0
    logits = trace.logits([step])
    for setting, z in trace.scores.items():
        for i, head in stream.sample(trace.heads, min(given["small"]["pairs"], len(trace.heads))):
            chosen = torch.tensor(sorted(stream.sample(range(trace.n), given["small"]["n"])))
            pi = small_design(z[i, head, chosen], given["small"]["m"], constants["epsilon"])
            found = enumerate_samples(
                logits[i, head, 0, chosen], pi, trace.values[i, head, chosen], constants["delta"]
            )
            place = {"layer": trace.layers[i], "head": head, "step": step, "setting": setting}
            rows.append(trace.key | place | {"n": len(chosen), "m": given["small"]["m"]} | found)
    return rows


def banded(rows: Rows) -> pd.DataFrame:
    """The rows with the band of the shadow's effective sample size (`ess_band`) and of R (`r_band`)."""
    frame = pd.DataFrame(rows)
    band = np.minimum(np.searchsorted(EDGES, frame["ess"]), len(BANDS) - 1)
    frame["ess_band"] = pd.Categorical.from_codes(band, BANDS, ordered=True).astype(str)
    frame["r_band"] = np.select([frame["r"] <= 0.1, frame["r"] <= 1.0], ["<=0.1", "0.1-1"], ">1")
    return frame


def expectations(frames: dict[str, pd.DataFrame], given: dict[str, Any]) -> dict[str, Measured]:
    """Every registered expectation's value."""
    drawn, exact, small = frames[""], frames["analytic"], frames["enumeration"]
    interval = given["interval"]
    low, high = min(given["budgets"]), max(given["budgets"])

    def apart(frame: pd.DataFrame) -> Measured:
        return Measured(
            float(((frame["expected"] - frame["linear"]).abs() / frame["linear"]).max()), n=len(frame)
        )

    def middle(column: str, rows: pd.DataFrame) -> Measured:
        return clustered.measured(rows, clustered.median(rows[column].to_numpy(float)), interval)

    def average(column: str, rows: pd.DataFrame) -> Measured:
        return clustered.measured(rows, clustered.mean(rows[column].to_numpy(float)), interval)

    ratios = [middle("ratio", drawn[drawn["budget"] == budget]) for budget in given["budgets"]]
    small_budget, large_budget = drawn[drawn["budget"] == low], drawn[drawn["budget"] == high]
    heavy = small_budget[small_budget["r"] > 1.0]
    unseen = exact[f"unseen_{given['grades'][0]}"]
    return {
        "X2.analytic": apart(exact),
        "X2.enumerated": apart(small),
        "X2.ratio_low": min(ratios, key=lambda entry: entry.value or 0.0),
        "X2.ratio_high": max(ratios, key=lambda entry: entry.value or 0.0),
        "X2.bias": middle("bias_share", small_budget),
        "X2.coverage_small": average("coverage", small_budget),
        "X2.coverage_large": average("coverage", large_budget),
        "X2.heavy": average("guarded", heavy),
        "X2.unseen": Measured(float(unseen.max()), n=len(unseen)),
        "X2.small": middle("ratio", small),
    }
