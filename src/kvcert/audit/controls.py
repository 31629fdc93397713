"""Negative controls: labels shuffled, certificates shuffled; every claim must then say what chance says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from kvcert.audit.second.claims import Computed
from kvcert.audit.second.numbers import auc, gate, spearman

SEED, ROUNDS = 20260721, 200
Rng = np.random.Generator
#: One permutation's figures, and what each must be on average.
Trial = Callable[[Rng], dict[str, float]]


def controls(
    name: str, found: Computed, claim: dict[str, Any], steps: pd.DataFrame | None
) -> list[dict[str, Any]]:
    """Both controls of one claim.

    Returns
    -------
    One entry per control and figure: seed, rounds, `expected`, mean and standard deviation over the rounds, the
    observed figure, how often chance reached it, and whether the control behaved (mean within 4 standard errors
    + 0.005 of what is expected).
    """
    rows, lines = found.primary, []
    for number, kind in enumerate(("shuffled labels", "shuffled certificates")):
        trial, observed, expected, note = _trial(name, kind, rows, claim, steps)
        entry: dict[str, Any] = {
            "control": kind,
            "seed": [SEED, int(name[1]), number],
            "rounds": ROUNDS,
            "note": note,
        }
        if trial is None or len(rows) == 0:
            lines.append(entry | {"figure": None, "behaved": None})
            continue
        rng = np.random.default_rng(entry["seed"])
        drawn = pd.DataFrame([trial(rng) for _ in range(ROUNDS)])
        for figure in observed:
            told = _outcome(figure, drawn[figure].to_numpy(), observed[figure], expected[figure])
            lines.append(entry | told)
    return lines


def _outcome(figure: str, values: np.ndarray, observed: float, expected: float) -> dict[str, Any]:
    known = values[~np.isnan(values)]
    if len(known) < 2 or np.isnan(expected):
        return {"figure": figure, "observed": observed, "expected": expected, "behaved": None}
    mean, spread = float(known.mean()), float(known.std(ddof=1))
    return {
        "figure": figure, "observed": observed, "expected": expected, "mean": mean, "sd": spread,
        "reached": float(np.mean(known >= observed - 1e-12)),
        "behaved": bool(abs(mean - expected) <= 4 * spread / np.sqrt(len(known)) + 0.005),
    }  # fmt: skip


def _trial(
    name: str, kind: str, rows: pd.DataFrame, claim: dict[str, Any], steps: pd.DataFrame | None
) -> tuple[Trial | None, dict[str, float], dict[str, float], str]:
    labels = kind == "shuffled labels"
    if name == "C1":
        return _steps(labels, steps)
    if name in ("C2", "C3"):
        return _signs(labels, rows)
    if name in ("C4", "C6"):
        return _aucs(labels, rows, "fail" if name == "C4" else "induced")
    return _gates(name, labels, rows, claim)


def _steps(
    labels: bool, steps: pd.DataFrame | None
) -> tuple[Trial | None, dict[str, float], dict[str, float], str]:
    """Errors or certificates permuted over the steps: coverage is then that of independent ones, rho is 0."""
    what = "errors" if labels else "certificates"
    note = f"{what} permuted over all steps: coverage of independent pairs, rank correlation 0"
    if steps is None or len(steps) < 2:
        return None, {}, {}, note
    error, certificate = steps["error"].to_numpy(), steps["certificate"].to_numpy()
    ranks = [pd.Series(side).rank().to_numpy() for side in (error, certificate)]
    ranks = [(side - side.mean()) / max(float(side.std()), 1e-300) for side in ranks]
    chance = float(np.mean(np.searchsorted(np.sort(error), certificate, side="right")) / len(error))

    def trial(rng: Rng) -> dict[str, float]:
        order = rng.permutation(len(error))
        moved = (error[order], certificate) if labels else (error, certificate[order])
        pair = (ranks[0][order], ranks[1]) if labels else (ranks[0], ranks[1][order])
        return {
            "coverage": float(np.mean(moved[0] <= moved[1])),
            "rank correlation": float(np.mean(pair[0] * pair[1])),
        }

    observed = {
        "coverage": float(np.mean(error <= certificate)),
        "rank correlation": spearman(certificate, error),
    }
    return trial, observed, {"coverage": chance, "rank correlation": 0.0}, note


def _signs(labels: bool, rows: pd.DataFrame) -> tuple[Trial | None, dict[str, float], dict[str, float], str]:
    """Which side of a pair is which is forgotten, example by example: the mean difference is then 0."""
    if not labels:
        return None, {}, {}, "this claim uses no certificate: shuffling certificates changes nothing in it"
    place, names = pd.factorize(rows["cluster"], sort=True)
    difference = rows["difference"].to_numpy(float)

    def trial(rng: Rng) -> dict[str, float]:
        return {"difference": float(np.mean(difference * rng.choice((-1.0, 1.0), len(names))[place]))}

    observed = {"difference": float(np.mean(difference)) if len(rows) else float("nan")}
    return (
        trial,
        observed,
        {"difference": 0.0},
        "the two policies of a pair swapped at random, example by example",
    )


def _aucs(
    labels: bool, rows: pd.DataFrame, label: str
) -> tuple[Trial | None, dict[str, float], dict[str, float], str]:
    signal, positive = rows["signal"].to_numpy(float), rows[label].to_numpy(bool)
    weight, block = rows["weight"].to_numpy(float), rows["block"].to_numpy(int)

    def figures(score: np.ndarray, truth: np.ndarray) -> dict[str, float]:
        return {"pooled AUC": auc(score, truth, weight), "conditional AUC": auc(score, truth, weight, block)}

    def trial(rng: Rng) -> dict[str, float]:
        order = rng.permutation(len(signal))
        return figures(signal, positive[order]) if labels else figures(signal[order], positive)

    note = f"{'labels' if labels else 'certificates'} permuted over all runs: AUC at 0.5"
    return trial, figures(signal, positive), {"pooled AUC": 0.5, "conditional AUC": 0.5}, note


def _gates(
    name: str, labels: bool, rows: pd.DataFrame, claim: dict[str, Any]
) -> tuple[Trial | None, dict[str, float], dict[str, float], str]:
    """What the certificate gate captures when it knows nothing: the registered fraction of all gain."""
    fraction, column = claim["scope"]["fraction"], "raised" if name == "C5" else "gain"
    cells = [np.arange(len(rows))] if name == "C5" else list(rows.groupby("budget").indices.values())
    signal, value, weight = (rows[key].to_numpy(float) for key in ("signal", column, "weight"))

    def captured(score: np.ndarray, worth: np.ndarray) -> dict[str, float]:
        sums = [
            gate(score[c], worth[c], weight[c], fraction) / max(float(weight[c].sum()), 1e-300) for c in cells
        ]
        return {"gain per run": float(np.mean(sums)) if sums else float("nan")}

    def trial(rng: Rng) -> dict[str, float]:
        order = np.arange(len(rows))
        for cell in cells:
            order[cell] = rng.permutation(cell)
        return captured(signal, value[order]) if labels else captured(signal[order], value)

    chance = [
        fraction * float(np.dot(weight[c], value[c])) / max(float(weight[c].sum()), 1e-300) for c in cells
    ]
    note = f"{'gains' if labels else 'certificates'} permuted{'' if name == 'C5' else ' within budgets'}: capture at random"
    expected = {"gain per run": float(np.mean(chance)) if chance else float("nan")}
    return trial, captured(signal, value), expected, note
