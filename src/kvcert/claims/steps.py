"""Panel certificate and error per step of the named runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from kvcert.claims.frames import read_columns

COLUMNS = ["run_id", "certificate", "error", "units"]


def read_steps(files: list[Path], run_ids: pd.Series) -> tuple[pd.DataFrame, int]:
    """Columns `run` (position in `run_ids`), `certificate`, `error` of the steps with something evicted.

    The second value counts steps left out because certificate or error is no number.
    """
    index, parts, unusable = pd.Index(run_ids), [], 0
    for file in files:
        table = read_columns(file, COLUMNS)
        run = index.get_indexer(table.column("run_id").to_numpy(zero_copy_only=False))
        certificate, error, units = (table.column(name).to_numpy() for name in COLUMNS[1:])
        keep = (run >= 0) & (units > 0)
        good = keep & np.isfinite(error) & ~np.isnan(certificate)
        unusable += int((keep & ~good).sum())
        parts.append(pd.DataFrame({"run": run[good], "certificate": certificate[good], "error": error[good]}))
    if not parts:
        parts.append(
            pd.DataFrame({"run": np.zeros(0, int), "certificate": np.zeros(0), "error": np.zeros(0)})
        )
    return pd.concat(parts, ignore_index=True), unusable
