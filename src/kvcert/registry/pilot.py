"""What a pilot on other seeds says about task difficulty: pass rates inside each task, full and evicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from kvcert.claims.frames import TEXT, read_columns
from kvcert.grid import shards

COLUMNS = ["model", "task", "length", "example", "setting", "policy", "budget", "draw", "regime", "valid",
           "score", "fail"]  # fmt: skip
KEY = ["model", "task", "length", "setting", "policy", "budget"]
HEADINGS = ("task", "length", "setting", "policy", "budget", "examples", "mean score", "pass rate", "invalid")
#: Where the registration wants the full run's pass rate inside each task.
BAND = (0.3, 0.7)


def pass_rates(results: Path, config: dict[str, Any]) -> pd.DataFrame:
    """One row per task, setting, policy and budget: `examples`, `runs`, `invalid`, `mean_score`, `pass_rate`.

    Draws are averaged within an example first. Unfinished shards are skipped.
    """
    files = [Path(results) / "runs" / f"{spec['shard']}.parquet" for spec in shards(config)]
    tables = [read_columns(file, COLUMNS) for file in files if file.is_file()]
    if not tables:
        return pd.DataFrame(columns=[*KEY, "examples", "runs", "invalid", "mean_score", "pass_rate"])
    runs = pa.concat_tables(tables).to_pandas()
    for column in set(TEXT) & set(runs.columns):
        runs[column] = runs[column].astype(str)
    runs = runs[runs["regime"] == "free"].copy()
    runs["score"] = runs["score"].astype(float)
    runs["passed"] = 1.0 - runs["fail"].astype(float)
    broken = (~runs["valid"].astype(bool)).to_numpy()
    runs.loc[broken, ["score", "passed"]] = np.nan
    example = runs.groupby([*KEY, "example"], as_index=False).agg(
        score=("score", "mean"), passed=("passed", "mean"), runs=("valid", "size"), valid=("valid", "sum")
    )
    rates = example.groupby(KEY, as_index=False).agg(
        examples=("example", "size"),
        runs=("runs", "sum"),
        valid=("valid", "sum"),
        mean_score=("score", "mean"),
        pass_rate=("passed", "mean"),
    )
    rates["invalid"] = rates["runs"] - rates["valid"]
    return rates[[*KEY, "examples", "runs", "invalid", "mean_score", "pass_rate"]]


def summarise(results: Path, config: dict[str, Any]) -> str:
    """Markdown: the pass rates and, per task, whether the full run is inside the wanted band."""
    rates = pass_rates(results, config)
    names = {task["name"]: task for task in config["study"]["tasks"]}
    wanted = f"Pass rate = 1 - share of failures; wanted for the full run: {BAND[0]:g}-{BAND[1]:g}."
    lines = [f"Pilot, seed {config['study']['seed']}. {wanted}", ""]
    lines += [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    for row in rates.to_dict("records"):
        cells = [
            row["task"],
            row["length"],
            row["setting"],
            row["policy"],
            f"{row['budget']:g}",
            row["examples"],
        ]
        cells += [f"{row['mean_score']:.3f}", f"{row['pass_rate']:.3f}", row["invalid"]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines.append("")
    full = (
        rates[rates["policy"] == "full"]
        .groupby(["task", "length"], as_index=False)
        .agg(pass_rate=("pass_rate", "mean"))
    )
    for row in full.to_dict("records"):
        task, rate = names.get(row["task"], {}), row["pass_rate"]
        place = "below" if rate < BAND[0] else "above" if rate > BAND[1] else "inside"
        what = f"{task.get('params', {})}, fail below {task.get('fail_below')}"
        lines.append(
            f"- {row['task']} at {row['length']} tokens, {what}: full run passes {rate:.2f}, {place} the band"
        )
    return "\n".join(lines)
