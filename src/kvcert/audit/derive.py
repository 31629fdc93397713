"""Everything in a bundle that follows from its rows: made once when it is built, and again when it is checked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from kvcert.audit.controls import controls
from kvcert.audit.examples import examples
from kvcert.audit.second.claims import Computed, claim_of, compute
from kvcert.audit.second.numbers import jackknife

#: Failure thresholds that the sensitivity tries for every task, beside the registered ones.
FAIL_BELOW = (0.25, 0.4, 0.6, 0.75, 1.0)
SHIFTS = (-0.1, -0.05, -0.02, 0.02, 0.05, 0.1)
COMPARED = 1e-9


def derive(folder: Path, name: str, claims: dict[str, Any], scorer: str) -> tuple[Computed, dict[str, Any]]:
    """The second computation and what is written of it: `second`, `controls`, `examples`, and the claim's `rows`."""
    folder, claim = Path(folder), claims["claims"][name]
    found = compute(folder, name, claims, scorer, FAIL_BELOW if name in ("C3", "C4", "C6") else ())
    runs = pq.read_table(folder / "runs.parquet").to_pandas()
    steps = pq.read_table(folder / "steps.parquet").to_pandas()
    used = _used_steps(found, steps) if name == "C1" else None
    content = {
        "second": second(name, claims, found),
        "controls": {"claim": name, "controls": controls(name, found, claim, used)},
        "examples": {
            "claim": name,
            "prompts": "The logs hold SHA-256 of a prompt, not its text; the task renders it again with the tokenizer.",
            "examples": examples(name, found.primary, runs, steps, claims["common"]["policy"]),
        },
    }
    return found, plain(content)


def second(name: str, claims: dict[str, Any], found: Computed) -> dict[str, Any]:
    """Parts, strata, jackknife intervals, leave-one-task-out, and sensitivity to thresholds."""
    claim, how, rows = claims["claims"][name], claim_of(name), found.primary

    def parts(some: pd.DataFrame) -> dict[str, float]:
        return how.parts(some, claim)

    errors = jackknife(rows, parts) if len(rows) and found.n_clusters > 1 else {}
    out = {
        str(cell): parts(rows[rows["cell"] != cell]) for cell in sorted(rows["cell"].unique())
    } if len(rows) else {}  # fmt: skip
    lines = [
        {"by": by, "name": label, "measure": m, "value": v}
        for (by, label, m), v in sorted(found.strata.items())
    ]
    return {
        "claim": name, "n_runs": found.n_runs, "n_clusters": found.n_clusters, "parts": found.parts,
        "jackknife_error": errors, "minima": {key: list(pair) for key, pair in found.minima.items()},
        "without_task": out, "fail_below": found.fail_below, "line_moved": _line_moved(claim, found.parts), "strata": lines,
    }  # fmt: skip


def _line_moved(claim: dict[str, Any], parts: dict[str, float]) -> list[dict[str, Any]]:
    """Whether every part would pass with its registered line moved."""
    found = []
    for name, value in parts.items():
        line = claim["lines"][name.split(" at ")[0]]
        for shift in SHIFTS:
            limit = line["threshold"] + shift
            found.append({"part": name, "line": limit, "passes": passes(value, limit, line["passes"])})
    return found


def passes(value: float | None, line: float, direction: str) -> bool | None:
    """The registered comparison; None for a value that is no number."""
    if value is None or math.isnan(value):
        return None
    return bool(value >= line if direction == ">=" else value > line)


def rows_table(found: Computed) -> pa.Table:
    """The claim's rows with their labels as a table to store, list columns left to `runs.parquet`."""
    drop = [name for name in ("place", "block", "unit") if name in found.rows]
    frame = found.rows.drop(columns=drop).reset_index(drop=True)
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def _used_steps(found: Computed, steps: pd.DataFrame) -> pd.DataFrame:
    keep = steps["run_id"].isin(found.rows["run_id"]) if len(found.rows) else np.zeros(len(steps), bool)
    keep = keep & (steps["units"] > 0) & np.isfinite(steps["error"]) & steps["certificate"].notna()
    return steps[keep].astype({"certificate": float, "error": float})


def plain(value: Any) -> Any:
    """JSON values: NaN as null, infinities as text, NumPy unwrapped."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def difference(one: Any, two: Any, where: str = "") -> str | None:
    """Where two JSON values first differ (numbers by more than 1e-9, relative above 1); None when they agree."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in sorted(set(one) | set(two)):
            if key not in one or key not in two:
                return f"{where}.{key}".lstrip(".")
            inner = difference(one[key], two[key], f"{where}.{key}")
            if inner:
                return inner
        return None
    if isinstance(one, list) and isinstance(two, list):
        if len(one) != len(two):
            return f"{where} (length)".lstrip(". ")
        for index, (a, b) in enumerate(zip(one, two, strict=True)):
            inner = difference(a, b, f"{where}[{index}]")
            if inner:
                return inner
        return None
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (one, two))
    same = (
        abs(one - two) <= COMPARED * max(1.0, abs(two)) if numbers else (type(one), one) == (type(two), two)
    )
    return None if same else where.lstrip(".") or "value"
