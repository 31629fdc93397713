"""Counts of covered (layer, head, step) per run, read file by file: two million rows never meet in one table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from kvcert.claims.frames import read_columns

COLUMNS = ["run_id", "panel", "radius", "guarded", "error", "ess_full", "m", "tail"]
#: Upper edges of the strata by the shadow's effective sample size.
EDGES = np.array([2.0, 4.0, 8.0, 16.0, 32.0, np.inf])
BANDS = ["<=2", "2-4", "4-8", "8-16", "16-32", ">32"]


@dataclass(frozen=True)
class HeadCounts:
    """Per run (first axis, in the order given): panel pairs, covered ones, by ESS band; and error / radius ratios."""

    units: np.ndarray  # (runs, bands)
    covered: np.ndarray  # (runs, bands)
    guarded: np.ndarray  # (runs, bands)
    infinite: np.ndarray  # (runs,)
    unusable: np.ndarray  # (runs,)
    ratio: np.ndarray  # (pairs,) float32
    ratio_run: np.ndarray  # (pairs,) int32


def count_heads(files: list[Path], run_ids: pd.Series) -> HeadCounts:
    """Read the registered panel of the named runs. Pairs with nothing evicted leave; NaN is counted as unusable."""
    index = pd.Index(run_ids)
    shape = (len(index), len(BANDS))
    units, covered, guarded = (np.zeros(shape, np.int64) for _ in range(3))
    infinite, unusable = np.zeros(len(index), np.int64), np.zeros(len(index), np.int64)
    ratios, ratio_runs = [np.zeros(0, np.float32)], [np.zeros(0, np.int32)]
    for file in files:
        table = read_columns(file, COLUMNS)
        if table.num_rows == 0:
            continue
        names = table.column("run_id").combine_chunks()
        lookup = index.get_indexer(names.dictionary.to_pylist())
        run = lookup[names.indices.to_numpy()]
        data = {name: table.column(name).to_numpy() for name in COLUMNS[1:]}
        # T is empty where the design keeps everything: 0 <= 0 is no coverage.
        keep = (run >= 0) & data["panel"] & (data["tail"] > 0) & ~(data["m"] >= data["tail"])
        run, radius, wide = run[keep], data["radius"][keep], data["guarded"][keep]
        error, ess = data["error"][keep], data["ess_full"][keep]
        good = np.isfinite(error) & ~np.isnan(radius)
        unusable += np.bincount(run[~good], minlength=len(index))
        run, radius, wide, error, ess = run[good], radius[good], wide[good], error[good], ess[good]
        band = np.minimum(np.searchsorted(EDGES, ess), len(BANDS) - 1)
        cell = run * len(BANDS) + band
        for total, inside in (
            (units, np.ones(len(run), bool)),
            (covered, error <= radius),
            (guarded, error <= wide),
        ):
            total += np.bincount(cell[inside], minlength=units.size).reshape(shape)
        infinite += np.bincount(run[np.isinf(radius)], minlength=len(index))
        ratios.append(error_ratio(error, radius))
        ratio_runs.append(run.astype(np.int32))
    return HeadCounts(
        units, covered, guarded, infinite, unusable, np.concatenate(ratios), np.concatenate(ratio_runs)
    )


def error_ratio(error: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """error / radius as float32: 0 for an infinite radius and for 0 / 0, infinite for a positive error at radius 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0, 0.0, error / radius)
    return ratio.astype(np.float32)
