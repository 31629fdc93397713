"""Cluster bootstrap within strata, with all statistics of a claim evaluated on the same resamples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.stats import beta

#: Maps (B, n) row weights to (B, k) statistics, NaN where a statistic is undefined.
Statistic = Callable[[np.ndarray], np.ndarray]
#: Upper limit of numbers in one block of row weights (32 MB).
BLOCK = 4_000_000
ROUNDS = 20


@dataclass(frozen=True)
class Plan:
    """How intervals are made: level, number of resamples, seed. Read from the registration."""

    level: float
    resamples: int
    seed: int


@dataclass(frozen=True)
class Estimates:
    """Point estimates (k,) and their resampled values (B, k), by name."""

    names: tuple[str, ...]
    point: np.ndarray
    samples: np.ndarray
    level: float
    clusters: int
    redrawn: int = 0
    notes: list[str] = field(default_factory=list)

    def value(self, name: str) -> float:
        """The point estimate; NaN when undefined."""
        return float(self.point[self.names.index(name)])

    def interval(self, name: str, level: float | None = None, share: bool = False) -> tuple[float, float]:
        """Percentile interval; for a share at 0 or 1 the exact (Clopper-Pearson) bound over the clusters."""
        level = self.level if level is None else level
        value = self.value(name)
        if share and (value <= 0.0 or value >= 1.0):
            return exact_bound(value, self.clusters, level)
        draws = self.samples[:, self.names.index(name)]
        draws = draws[~np.isnan(draws)]
        if len(draws) == 0 or np.isnan(value) or self.clusters < 2:
            return float("nan"), float("nan")
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def error(self, name: str) -> float:
        """Bootstrap standard error; NaN with fewer than two clusters."""
        draws = self.samples[:, self.names.index(name)]
        draws = draws[~np.isnan(draws)]
        return float(np.std(draws, ddof=1)) if len(draws) > 1 and self.clusters > 1 else float("nan")


def exact_bound(value: float, clusters: int, level: float) -> tuple[float, float]:
    """Clopper-Pearson interval of a share of exactly 0 or 1 over `clusters` independent clusters."""
    tail = (1 - level) / 2
    if value >= 1.0:
        return float(beta.ppf(tail, clusters, 1)), 1.0
    return 0.0, float(beta.ppf(1 - tail, 1, clusters))


def estimate(rows: pd.DataFrame, statistic: Statistic, names: Sequence[str], plan: Plan) -> Estimates:
    """Evaluate `statistic` on the rows as they are and on resampled clusters.

    `rows` has the columns `stratum` (the task) and `cluster`; clusters are drawn with replacement within
    their stratum, and a row's weight is how often its cluster was drawn. A resample on which a statistic
    that the full sample defines is undefined (one class only) is redrawn, and counted in `redrawn`.
    """
    code, labels = pd.factorize(rows["cluster"], sort=True)
    stratum = (
        pd.Series(rows["stratum"].to_numpy()).groupby(code).first().to_numpy() if len(rows) else np.array([])
    )
    point = statistic(np.ones((1, len(rows))))[0]
    wanted = ~np.isnan(point)
    rng = np.random.default_rng(plan.seed)
    samples = np.full((plan.resamples, len(point)), np.nan)
    todo, redrawn = np.arange(plan.resamples), 0
    if len(labels) < 2 or not wanted.any():
        return Estimates(tuple(names), point, samples, plan.level, len(labels))
    for _ in range(ROUNDS):
        samples[todo] = _evaluate(statistic, code, resample(stratum, len(todo), rng), len(point))
        todo = todo[np.isnan(samples[todo][:, wanted]).any(axis=1)]
        if len(todo) == 0:
            break
        redrawn += len(todo)
    notes = [f"{len(todo)} resamples stayed undefined after {ROUNDS} draws"] if len(todo) else []
    return Estimates(tuple(names), point, samples, plan.level, len(labels), redrawn, notes)


def resample(stratum: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """(size, clusters) counts: within each stratum as many clusters are drawn, with replacement, as it has."""
    counts = np.zeros((size, len(stratum)), dtype=np.int32)
    for name in sorted(set(stratum.tolist())):
        members = np.flatnonzero(stratum == name)
        counts[:, members] = rng.multinomial(len(members), np.full(len(members), 1 / len(members)), size=size)
    return counts


def _evaluate(statistic: Statistic, code: np.ndarray, counts: np.ndarray, width: int) -> np.ndarray:
    step = max(1, BLOCK // max(1, len(code)))
    blocks = [
        statistic(counts[start : start + step][:, code].astype(float))
        for start in range(0, len(counts), step)
    ]
    return np.concatenate(blocks) if blocks else np.zeros((0, width))
