"""X5 in few numbers: median slopes with intervals, and median errors along both interventions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.exhibits import clustered

#: Column of the summary → column of the rows whose median it is.
MEDIANS = {
    "dispersion": "slope_dispersion",
    "mass": "slope_query_error",
    "mass_value": "slope_query_value",
    "mass_offset": "slope_offset_error",
    "mass_chi": "slope_query_chi",
    "key_part": "key_part",
    "value_part": "value_part",
    "relative": "relative",
    "to_poisson": "to_poisson",
    "tightness": "tightness",
}


def slopes(rows: pd.DataFrame, interval: dict[str, Any]) -> pd.DataFrame:
    """Per variant and budget (and over all budgets, NaN): medians over units, `<name>_low` to `<name>_high` their interval.

    `dispersion`, `mass`, `mass_value`, `mass_offset` are slopes, `mass_chi` that of the variation of the weights within
    strata, which the turned query changes beside the mass; `key_part` and `value_part` the norm of either part over that of
    the error (they are vectors: the two need not sum to 1); `relative` error over |o|; `to_poisson` error over the
    linearised standard error of the Poisson design at the same budget; `tightness` value part over its bound. `fit_mass`
    and `fit_dispersion` are coefficients of log error on log mass and log dispersion over units as they are: they say how
    units differ, not what causes it.
    """
    rows = rows.assign(
        key_part=rows["key"] / rows["error"],
        value_part=rows["value"] / rows["error"],
        relative=rows["error"] / rows["output"],
        to_poisson=rows["error"] / rows["poisson"],
        tightness=rows["value"] / rows["bound"],
    )
    found = []
    for variant, of_variant in rows.groupby("variant", sort=False):
        for budget in [*sorted(rows["budget"].unique()), np.nan]:
            part = of_variant if np.isnan(budget) else of_variant[of_variant["budget"] == budget]
            entry: dict[str, Any] = {"variant": variant, "budget": budget, "units": len(part)}
            for name, column in MEDIANS.items():
                here = part[np.isfinite(part[column])]
                entry |= _named(
                    name,
                    clustered.measured(here, clustered.median(here[column].to_numpy(float)), interval),
                )
            x = np.column_stack([np.ones(len(part)), np.log(part[["mass", "dispersion"]])])
            y = np.log(part["error"].to_numpy())
            for at, name in ((1, "fit_mass"), (2, "fit_dispersion")):
                entry |= _named(name, clustered.measured(part, clustered.regression(x, y, at), interval))
            found.append(entry)
    return pd.DataFrame(found)


def _named(name: str, found: Any) -> dict[str, Any]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def curves(rows: pd.DataFrame, given: dict[str, Any]) -> pd.DataFrame:
    """Errors along the interventions relative to each unit's own error as it is: quartiles over units.

    `line` is dispersion, query (turned query), query value (its value part) or offset; `x` the factor of the dispersion or
    the median factor of the mass that was reached; `low`, `middle`, `high` the quartiles.
    """
    found = []
    for variant, part in rows.groupby("variant", sort=False):
        for factor in given["dispersion_factors"]:
            y = part[f"dispersion_{factor:g}"] / part["error"]
            found.append(_point(variant, "dispersion", factor, y))
        for line, kind, what in (
            ("query", "query", "error"),
            ("query value", "query", "value"),
            ("offset", "offset", "error"),
        ):
            for factor in given["mass_factors"]:
                mass = part[f"{kind}_{factor:g}_mass"]
                used = mass <= given["mass_cap"]
                y = part[f"{kind}_{factor:g}_{what}"] / part[what]
                found.append(_point(variant, line, float((mass / part["mass"])[used].median()), y[used]))
    return pd.DataFrame(found)


def _point(variant: Any, line: str, x: float, y: pd.Series) -> dict[str, Any]:
    low, middle, high = y.quantile([0.25, 0.5, 0.75])
    return {
        "variant": variant,
        "line": line,
        "x": x,
        "low": low,
        "middle": middle,
        "high": high,
        "units": len(y),
    }
