"""X5: does the error of merging follow the dispersion of the merged values, the mass that they carry, or both?"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from kvcert.exhibits import clustered, outcome, registration
from kvcert.exhibits.outcome import Measured
from kvcert.exhibits.traces import read
from kvcert.exhibits.x5_rows import example_frames, with_slopes
from kvcert.exhibits.x5_summary import curves, slopes


def measure(config: dict[str, Any], root: Path, progress: Callable[[str], None]) -> None:
    """Measure X5 on the traces of these results and write its outcome.

    Raises
    ------
    KvcertError when traces are missing or the registration is not complete.
    """
    started = time.monotonic()
    given = registration.load(root)["X5"]["parameters"]
    torch.set_num_threads(config["run"]["threads"])
    pieces = []
    with torch.inference_mode():
        for number, trace in enumerate(read(config, given["examples"]), 1):
            pieces += example_frames(trace, given, config["study"]["constants"])
            progress(f"X5: example {number}, {time.monotonic() - started:.0f} s")
    rows = with_slopes(pd.concat(pieces, ignore_index=True), given)
    about = {
        "examples": number,
        "units": int((rows["variant"] == given["variants"][0]["name"]).sum()),
        "variants": [entry["name"] for entry in given["variants"]],
        "population": "the context's tokens; what a run appends later is not in the traces",
        "seconds": round(time.monotonic() - started, 1),
    }
    frames = {"": rows, "slopes": slopes(rows, given["interval"]), "curves": curves(rows, given)}
    outcome.record(Path(config["run"]["results"]), root, "X5", expectations(rows, given), frames, about)


def expectations(rows: pd.DataFrame, given: dict[str, Any]) -> dict[str, Measured]:
    """Every registered expectation's value, for the first variant."""
    main = rows[rows["variant"] == given["variants"][0]["name"]]

    def middle(column: str) -> Measured:
        part = main[np.isfinite(main[column])]
        return clustered.measured(
            part, clustered.median(part[column].to_numpy(float)), given["interval"],
            f"{len(main) - len(part)} units without a slope" if len(part) < len(main) else "",
        )  # fmt: skip

    mass = middle("slope_query_error")
    return {
        "X5.affine": Measured(float(main["affine_gap"].max()), n=len(main)),
        "X5.bound": Measured(float((main["value"] <= main["bound"] * (1 + 1e-9)).mean()), n=len(main)),
        "X5.dispersion": middle("slope_dispersion"),
        "X5.mass": mass,
        "X5.not_flat": Measured(mass.low, n=mass.n, note="lower end of the interval of X5.mass"),
    }
