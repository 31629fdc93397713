"""Read-only view of a results folder for tables, figures and the console: claims' JSON and the three Parquet tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from kvcert.errors import KvcertError
from kvcert.logs.schema import TABLES

CLAIMS = tuple(f"C{number}" for number in range(1, 8))


def read(
    results: Path, table: str, columns: Sequence[str], filter: ds.Expression | None = None
) -> pd.DataFrame:
    """Chosen columns of every shard of `table` (`runs`, `steps`, `heads`), in the order of the shards' names.

    A table without files gives an empty frame with the right columns; a damaged file is a one-line error.
    """
    schema = TABLES[table]
    wanted = pa.schema([schema.field(name) for name in columns])
    files = sorted(str(path) for path in (Path(results) / table).glob("*.parquet"))
    if not files:
        return wanted.empty_table().to_pandas()
    try:
        return ds.dataset(files, schema=schema).to_table(columns=list(columns), filter=filter).to_pandas()
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise KvcertError(
            f"{results}/{table}: cannot be read ({reason}); delete the damaged shard and rerun it"
        ) from None


def read_claims(results: Path) -> dict[str, dict[str, Any]]:
    """The scored claims that exist, by identifier, in order."""
    claims = {}
    for claim in CLAIMS:
        path = Path(results) / "claims" / f"{claim}.json"
        if not path.is_file():
            continue
        try:
            claims[claim] = json.loads(path.read_text())
        except ValueError:
            raise KvcertError(f"{path} is not valid JSON; run `kvcert score` again") from None
    return claims


class Logs:
    """A results folder, each table read once and only when needed.

    Parameters
    ----------
    results : Path
        Folder of the logs and scores.
    config : dict, optional
        Resolved configuration; with it, steps are those of the primary scorer, as in the claims.
    """

    def __init__(self, results: Path, config: dict[str, Any] | None = None) -> None:
        self.results = Path(results)
        self.scorer = (config or {}).get("study", {}).get("scorer")

    @cached_property
    def claims(self) -> dict[str, dict[str, Any]]:
        """Scored claims by identifier."""
        return read_claims(self.results)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Every run, without its texts, and with the name of its `cell`."""
        skip = {"answer", "token_ids", "answers", "prompt_sha256"}
        runs = plain(read(self.results, "runs", [name for name in TABLES["runs"].names if name not in skip]))
        return runs.assign(cell=cell_labels(runs))

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks that were run."""
        return sorted(self.runs["task"].unique())

    @cached_property
    def free(self) -> pd.DataFrame:
        """Valid free-running runs: those with a score."""
        runs = self.runs
        return runs[(runs["regime"] == "free") & runs["valid"]].reset_index(drop=True)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Steps of the valid token-forced Poisson runs with something evicted, with the run's keys and its `cell`."""
        columns = ["run_id", "step", "certificate", "error", "units"]
        steps = read(
            self.results, "steps", columns, ds.field("certificate").is_valid() & (ds.field("units") > 0)
        )
        runs = self.runs
        keep = (
            (runs["regime"] == "forced") & (runs["policy"] == "poisson") & runs["valid"] & ~runs["identity"]
        )
        keep &= (runs["scorer"] == self.scorer) if self.scorer else True
        names = ["model", "task", "length", "example", "setting", "budget", "draw", "cell"]
        steps = steps.join(runs[keep].set_index("run_id")[names], on="run_id", how="inner")
        return steps[steps["certificate"].notna() & np.isfinite(steps["error"])].reset_index(drop=True)


def cell_labels(runs: pd.DataFrame) -> pd.Series:
    """The task, or model/task/length where a task comes with several of them: the claims' name of a cell."""
    if runs.groupby("task")[["model", "length"]].nunique().max(axis=1).le(1).all():
        return runs["task"]
    return runs["model"] + "/" + runs["task"] + "/" + runs["length"].astype(str)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Categoricals to strings: group-bys then list only what is there."""
    categorical = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    return frame.astype(dict.fromkeys(categorical, object))
