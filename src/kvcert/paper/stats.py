"""Means with cluster-bootstrap intervals for tables and figures; the claims' own statistics live in `kvcert.claims`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kvcert.claims.bootstrap import Plan, estimate

#: What a cluster is: all runs of one example share its text and its uniforms.
CLUSTER = ("model", "task", "length", "example")
RESAMPLES = 2000


def cluster_mean(frame: pd.DataFrame, column: str, seed: int = 2607) -> tuple[float, float, float, int]:
    """Mean over examples of the mean within an example, with its 95 % interval.

    Parameters
    ----------
    frame : DataFrame
        Rows with the cluster's columns and `column`; missing values are left out.
    column : str
        A number or a truth value.
    seed : int
        Seed of the resampling.

    Returns
    -------
    mean, low, high : float
        NaN without rows; the interval is NaN with fewer than two clusters.
    clusters : int
        Number of examples.

    Notes
    -----
    Clusters are resampled within their task, as for the claims. Where every cluster has the same value the percentile
    interval has no width; a share at 0 or 1 gets the exact binomial bound over clusters instead (Clopper–Pearson).
    """
    rows = frame.dropna(subset=[column])
    means = rows.groupby(list(CLUSTER), observed=True, sort=True)[column].mean()
    n, values = len(means), means.to_numpy(float)
    if n == 0:
        return (float("nan"),) * 3 + (0,)
    clusters = pd.DataFrame(
        {"stratum": means.index.get_level_values("task").astype(str), "cluster": range(n)}
    )
    estimates = estimate(
        clusters,
        lambda weights: (weights @ values / weights.sum(axis=1))[:, None],
        ["mean"],
        Plan(0.95, RESAMPLES, seed),
    )
    low, high = estimates.interval("mean", share=n > 1 and bool(np.isin(values, (0.0, 1.0)).all()))
    return estimates.value("mean"), low, high, n


def table_of_means(frame: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """`cluster_mean` of every group: columns `by`, `mean`, `low`, `high`, `clusters`, `n` (rows used)."""
    columns = [*by, "mean", "low", "high", "clusters", "n"]
    rows = []
    for key, part in frame.groupby(list(by), observed=True, sort=True):
        rows.append(
            (
                *(key if isinstance(key, tuple) else (key,)),
                *cluster_mean(part, column),
                part[column].notna().sum(),
            )
        )
    return pd.DataFrame(rows, columns=columns)
