"""The other reading of "draws averaged first", reported beside: signals and scores averaged over draws."""

from __future__ import annotations

import pandas as pd

from kvcert.claims.frames import UNIT


def average_draws(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per example, setting and budget: mean signal, doubt and score; it fails when the mean score does."""
    key = [*UNIT, "budget", "stratum", "cluster", "cell", "place"]
    means = rows.groupby(key, as_index=False).agg(
        signal=("signal", "mean"), doubt=("doubt", "mean"), score=("score", "mean"),
        fail_below=("fail_below", "first"), full_fail=("full_fail", "first"),
    )  # fmt: skip
    return means.assign(fail=means["score"] < means["fail_below"], weight=1.0)
