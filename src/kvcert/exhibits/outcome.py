"""What an exhibit found, held against what was registered: `results/exhibits/<name>.json` and Parquet rows beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from kvcert.errors import KvcertError
from kvcert.exhibits import registration
from kvcert.files import replacing, write_atomic

AS_EXPECTED, NOT_AS_EXPECTED, NOT_MEASURED = "as expected", "not as expected", "not measured"


@dataclass(frozen=True)
class Measured:
    """The value of one expectation: with an interval where there is one, the number of units behind it, and a note."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    note: str = ""


def judge(value: float | None, direction: str, line: float) -> str:
    """Hold a value against its registered line. NaN and nothing are `not measured`; equality is exact."""
    if value is None or math.isnan(value):
        return NOT_MEASURED
    held = {
        "at_least": value >= line,
        "at_most": value <= line,
        "above": value > line,
        "below": value < line,
        "equal": value == line,
    }[direction]
    return AS_EXPECTED if held else NOT_AS_EXPECTED


def record(
    results: Path,
    root: Path,
    name: str,
    measured: Mapping[str, Measured],
    frames: Mapping[str, pd.DataFrame],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Write an exhibit's rows and its outcome, the outcome last; returns the outcome.

    Parameters
    ----------
    measured : by the expectation's id; exactly the registered ones.
    frames : rows by part, written as `<name>.parquet` for the part "" and `<name>.<part>.parquet` for others.
    about : what a reader needs beside it: numbers of units, model, machine, seconds; plain JSON values.
    """
    entry = registration.load(root)[name]
    if set(measured) != {expectation["id"] for expectation in entry["expectations"]}:
        raise KvcertError(f"exhibit {name}: measured {sorted(measured)}, registered are others")
    folder = Path(results) / "exhibits"
    folder.mkdir(parents=True, exist_ok=True)
    for part, frame in frames.items():
        with replacing(folder / f"{name}{'.' if part else ''}{part}.parquet") as temporary:
            frame.to_parquet(temporary, index=False, compression="zstd")
    judged = []
    for expectation in entry["expectations"]:
        found = measured[expectation["id"]]
        outcome = judge(found.value, expectation["direction"], expectation["line"])
        judged.append(expectation | {k: _plain(v) for k, v in vars(found).items()} | {"outcome": outcome})
    content = {
        "exhibit": name,
        "title": entry["title"],
        "question": entry["question"],
        "registration": registration.status(root),
        "expectations": judged,
        "about": dict(about),
    }
    write_atomic(folder / f"{name}.json", json.dumps(content, indent=1, allow_nan=False) + "\n")
    return content


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: NaN is nothing, infinity is text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
