"""Points with intervals over ordered categories: what most panels here are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation


def points(
    axes: Axes, order: Sequence[object], table: pd.DataFrame, x: str, shift: float, look: dict, label: str
) -> None:
    """One line of means with intervals; `shift` moves it sideways so that intervals do not hide each other.

    `table` has the columns `x`, `mean`, `low`, `high`; categories of `order` without a row are left out.
    """
    at, mean, spread = _placed(order, table, x, shift)
    axes.errorbar(at, mean, yerr=spread, label=label, elinewidth=0.9, capsize=1.5, **look)


def marks(
    axes: Axes, order: Sequence[object], table: pd.DataFrame, y: str, shift: float, look: dict, label: str
) -> None:
    """As `points` with the categories from top to bottom and no line between them."""
    at, mean, spread = _placed(order, table, y, shift)
    look = look | {"linestyle": "none"}
    axes.errorbar(mean, at, xerr=spread, label=label, elinewidth=0.9, capsize=1.5, **look)


def _placed(
    order: Sequence[object], table: pd.DataFrame, key: str, shift: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places, means and the intervals' two arms, of the categories that have a row."""
    rows = table.set_index(key)
    here = [index for index, name in enumerate(order) if name in rows.index]
    part = rows.loc[[order[index] for index in here]]
    mean = part["mean"].to_numpy(float)
    arms = np.vstack(
        [mean - part["low"].fillna(part["mean"]), part["high"].fillna(part["mean"]) - mean]
    ).clip(min=0)
    return np.array(here, float) + shift, mean, arms


def shifts(count: int, width: float = 0.36) -> np.ndarray:
    """`count` sideways offsets centred on 0."""
    return np.linspace(-width / 2, width / 2, count) if count > 1 else np.zeros(1)


def categories(axes: Axes, labels: Sequence[str], name: str, rotation: float = 0) -> None:
    """Ticks for ordered categories."""
    axes.set_xticks(range(len(labels)), labels, rotation=rotation)
    axes.set_xlim(-0.5, len(labels) - 0.5)
    axes.set_xlabel(name)
    axes.grid(axis="x", visible=False)


def legend_below(axes: Axes, inches: float, columns: int, **options: Any) -> None:
    """A legend centred `inches` below the axes: a fixed distance, so that the layout finds room for it in one pass."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    place = axes.transAxes + ScaledTranslation(0, -inches, figure.dpi_scale_trans)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=place,
        ncols=columns,
        columnspacing=0.9,
        **options,
    )
