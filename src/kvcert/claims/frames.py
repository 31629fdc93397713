"""The runs of a study as one table: read, checked, keyed. Invalid runs are counted and never leave this file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from kvcert.errors import KvcertError
from kvcert.grid import shards
from kvcert.logs.integrity import require_gate

#: Columns of `runs` that the claims use.
COLUMNS = (
    "run_id", "model", "task", "length", "example", "setting", "scorer", "policy", "budget", "draw", "regime", "valid",
    "identity", "answer", "score", "fail", "fail_below", "logp_mean", "logp_first6", "signal", "signal_guarded",
    "evicted_mass", "seconds_prefill", "seconds_decode", "kept_bytes",
)  # fmt: skip
#: What names an example in one setting; the runs of a unit differ in scorer, policy, budget, draw and regime.
UNIT = ["model", "task", "length", "example", "setting"]
TEXT = ("model", "task", "setting", "scorer", "policy", "regime")


@dataclass(frozen=True)
class Study:
    """Everything a claim is scored from.

    `runs` holds the valid runs with the added columns `stratum` (task), `cluster` (task and example) and
    `cell` (model, task and length as one label; the task's name alone where it has one model and length).
    """

    runs: pd.DataFrame
    results: Path
    shards: tuple[str, ...]
    scorer: str
    common: dict[str, Any]
    invalid: int

    def files(self, table: str) -> list[Path]:
        """The Parquet files of one table, one per shard."""
        return [self.results / table / f"{name}.parquet" for name in self.shards]


def load(results: Path, config: dict[str, Any], common: dict[str, Any]) -> Study:
    """Read the runs of every shard of `config`, as many as the integrity gate counted."""
    report = require_gate(results)
    names = tuple(spec["shard"] for spec in shards(config))
    tables = [read_columns(results / "runs" / f"{name}.parquet", list(COLUMNS)) for name in names]
    frame = pa.concat_tables(tables).to_pandas() if tables else pd.DataFrame(columns=list(COLUMNS))
    if len(frame) != report.get("runs"):
        seen = f"{len(frame)} runs, the integrity gate saw {report.get('runs')}"
        raise KvcertError(f"{results / 'runs'}: {seen}; run `kvcert check`")
    runs, invalid = usable(frame)
    return Study(runs, results, names, config["study"]["scorer"], common, invalid)


def usable(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The valid runs among rows of `runs` with the columns that `Study` adds, and how many are not valid."""
    for column in TEXT:
        frame[column] = frame[column].astype(str)
    _refuse_contradictions(frame)
    numbers = np.isfinite(frame["logp_mean"].to_numpy(float))
    numbers &= (frame["regime"] == "forced").to_numpy() | frame["score"].notna().to_numpy()
    valid = frame["valid"].to_numpy(bool) & numbers
    runs = frame[valid].reset_index(drop=True)
    runs["stratum"] = runs["task"]
    runs["cluster"] = runs["task"] + "/" + runs["example"].astype(str)
    label = runs["model"] + "/" + runs["task"] + "/" + runs["length"].astype(str)
    single = runs.groupby("task")[["model", "length"]].nunique().max(axis=1).le(1).all()
    runs["cell"] = runs["task"] if single else label
    runs["score"] = runs["score"].astype(float)
    return runs, int((~valid).sum())


def read_columns(path: Path, columns: list[str]) -> pa.Table:
    """Some columns of one Parquet file, dictionaries unified; a clear line when it cannot be read."""
    try:
        return pq.read_table(path, columns=columns).unify_dictionaries().combine_chunks()
    except (OSError, pa.ArrowException, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise KvcertError(
            f"cannot read {path} ({reason}); run `kvcert check`, then rerun that shard"
        ) from None


def _refuse_contradictions(frame: pd.DataFrame) -> None:
    twice = frame["run_id"][frame["run_id"].duplicated()]
    if len(twice):
        raise KvcertError(
            f"run {twice.iloc[0]} is in the logs twice; delete results/*/ of that shard and rerun it"
        )
    score = frame["score"].astype(float)
    free = frame["valid"].to_numpy(bool) & score.notna().to_numpy() & frame["fail"].notna().to_numpy()
    wrong = free & ((score < frame["fail_below"]) != frame["fail"].map(bool, na_action="ignore")).to_numpy()
    if wrong.any():
        name = frame["run_id"].to_numpy()[wrong][0]
        raise KvcertError(
            f"run {name}: its label `fail` contradicts its score and threshold; rerun its shard"
        )
