"""Columns of a frame as short JSON lists."""

from __future__ import annotations

import numpy as np
import pandas as pd

#: A certificate is never negative: −1 stands for an infinite one, which JSON cannot hold.
INFINITE = -1


def codes(column: pd.Series) -> tuple[list[str], list[int]]:
    """Distinct names, in natural order, and for each row the place of its name."""
    names = sorted(column.unique(), key=_natural)
    place = {name: at for at, name in enumerate(names)}
    return names, [place[name] for name in column]


def rounded(column: pd.Series, digits: int) -> list[float | int | None]:
    """Numbers with `digits` significant digits, whole ones without a point; null where there is none."""
    values = pd.to_numeric(column, errors="coerce").to_numpy(float)
    return [short(value, digits) if np.isfinite(value) else None for value in values]


def infinite(values: np.ndarray, digits: int = 3) -> list[float | int | None]:
    """Non-negative figures with three digits; null where missing, −1 where infinite."""
    return [INFINITE if np.isposinf(v) else short(v, digits) if np.isfinite(v) else None for v in values]


def short(value: float, digits: int) -> float | int:
    """The number rounded to `digits` significant digits."""
    number = float(f"{value:.{digits}g}")
    return int(number) if number.is_integer() else number


def _natural(name: str) -> tuple[int, float, str]:
    """Numbers by value, before words."""
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)
