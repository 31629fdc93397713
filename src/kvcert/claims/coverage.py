"""What C1 measures on every run: shares of covered steps and of covered (layer, head, step)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kvcert.claims.auc import ratio
from kvcert.claims.frames import Study
from kvcert.claims.heads import BANDS, HeadCounts, count_heads, error_ratio
from kvcert.claims.steps import read_steps


@dataclass(frozen=True)
class Coverage:
    """`runs` (with `row`, `C1a`, `C1b`, `C1b guarded`) has the runs with a usable step; `steps.run` points to `row`."""

    runs: pd.DataFrame
    steps: pd.DataFrame
    heads: HeadCounts
    ratio: np.ndarray  # (steps,) panel error / panel certificate
    size: int  # rows before runs without a usable step left
    counts: dict[str, Any]
    bands: tuple[str, ...] = tuple(BANDS)


def measure_runs(study: Study, runs: pd.DataFrame) -> Coverage:
    """Read steps and heads of `runs` and average within each run."""
    steps, unusable = read_steps(study.files("steps"), runs["run_id"])
    heads = count_heads(study.files("heads"), runs["run_id"])
    run = steps["run"].to_numpy()
    certificate, error = steps["certificate"].to_numpy(), steps["error"].to_numpy()
    n = np.bincount(run, minlength=len(runs)).astype(float)
    covered = np.bincount(run[error <= certificate], minlength=len(runs))
    pairs = heads.units.sum(axis=1).astype(float)
    rows = runs.assign(row=np.arange(len(runs)))
    rows["C1a"] = ratio(covered, n)
    rows["C1b"] = ratio(heads.covered.sum(axis=1), pairs)
    rows["C1b guarded"] = ratio(heads.guarded.sum(axis=1), pairs)
    counts = {
        "invalid_runs": study.invalid, "steps": len(steps), "steps_unusable": unusable,
        "steps_with_infinite_certificate": int(np.isinf(certificate).sum()), "heads": int(pairs.sum()),
        "heads_unusable": int(heads.unusable.sum()), "heads_with_infinite_radius": int(heads.infinite.sum()),
        "runs_without_usable_step": int((n == 0).sum()),
    }  # fmt: skip
    kept = rows[(n > 0)].reset_index(drop=True)
    return Coverage(kept, steps, heads, error_ratio(error, certificate), len(runs), counts)
