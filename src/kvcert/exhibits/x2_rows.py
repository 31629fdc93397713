"""X2's rows: every panel head analytically, some heads by simulation, small real populations by enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from kvcert.claims.heads import BANDS, EDGES
from kvcert.exhibits import clustered
from kvcert.exhibits.traces import KEY, Trace, design
from kvcert.exhibits.x2_draws import Sampled, sample, summary, uniforms
from kvcert.exhibits.x2_exact import analytic, enumerate_samples, small_design
from kvcert.survey.inclusion import Design

Rows = list[dict[str, Any]]


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

    Settings, budgets and steps of a pair share their uniforms, as runs do. Designs whose expected tail sample is below
    m_min are left out: their radius is infinite by definition.
    """
    steps, stream = trace.steps(given["steps"]), trace.stream("X2", given["seed"])
    pairs = stream.sample(trace.heads, min(given["pairs"], len(trace.heads)))
    word, logits, rows = stream.below(2**32), trace.logits(steps), []
    a = (logits - logits.amax(-1, keepdim=True)).exp()
    kinds = [(setting, budget) for setting in trace.scores for budget in given["budgets"]]
    designs = {kind: design(trace, *kind, constants)[0] for kind in kinds}
    for i, head in pairs:
        here = {
            kind: Design(*(field[i, head : head + 1] for field in whole)) for kind, whole in designs.items()
        }
        here = {
            kind: part
            for kind, part in here.items()
            if part.tail.any() and float(part.expected) >= constants["m_min"]
        }
        parts: dict[tuple[str, float], list[Sampled]] = {kind: [] for kind in here}
        for start in range(0, given["draws"], given["block"]):
            block = range(start, min(start + given["block"], given["draws"]))
            u32 = uniforms(given["seed"], word, i, head, trace.n, block)
            for kind, part in here.items():
                parts[kind].append(
                    sample(logits[i, head], part.threshold[0], trace.values[i, head], u32, constants["delta"])
                )
        for kind, part in here.items():
            known = analytic(a[i, head : head + 1], part, trace.values[i, head : head + 1], given["grades"])
            found = summary(parts[kind], given["grades"])
            place = {
                "layer": trace.layers[i],
                "head": head,
                "setting": kind[0],
                "budget": kind[1],
                "n": trace.n,
            }
            place |= {"m": float(part.expected), "tail": int(part.tail.sum())}
            rows += [
                trace.key
                | place
                | {"step": step}
                | {k: float(v[0, at]) for k, v in known.items()}
                | found[at]
                for at, step in enumerate(steps)
            ]
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
    frame["ess_band"] = np.array(BANDS)[band]
    frame["r_band"] = np.select([frame["r"] <= 0.1, frame["r"] <= 1.0], ["<=0.1", "0.1-1"], ">1")
    return frame


def bands(drawn: pd.DataFrame, interval: dict[str, Any]) -> pd.DataFrame:
    """Summaries by budget, over all units (`by` = all) and by band of the effective sample size and of R.

    `ratio` (E[V̂]/MSE), `bias_share` and `mse_share` (MSE over the linearised variance) are medians, `coverage` and
    `guarded` means, over units; the interval of each is `<name>_low` to `<name>_high`.
    """
    drawn = drawn.assign(mse_share=drawn["mse"] / drawn["linear"], all="all")
    kinds = dict.fromkeys(("ratio", "bias_share", "mse_share"), clustered.median)
    kinds |= dict.fromkeys(("coverage", "guarded"), clustered.mean)
    parts = []
    for by, column in (("all", "all"), ("ess", "ess_band"), ("r", "r_band")):
        groups, whole = ["budget", column], None
        for name, kind in kinds.items():
            found = clustered.by(drawn, groups, name, kind, interval)
            found = found.rename(
                columns={"value": name, "low": f"{name}_low", "high": f"{name}_high", "n": "units"}
            )
            whole = (
                found if whole is None else whole.merge(found, on=[*groups, "units"], validate="one_to_one")
            )
        assert whole is not None
        whole["examples"] = [
            len(drawn[(drawn["budget"] == b) & (drawn[column] == g)].drop_duplicates(list(KEY)))
            for b, g in zip(whole["budget"], whole[column], strict=True)
        ]
        parts.append(whole.rename(columns={column: "band"}).assign(by=by))
    return pd.concat(parts, ignore_index=True)
