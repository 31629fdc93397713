"""Controls on the grid's own logs: labels shuffled, files damaged. No torch here."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kvcert.claims import frames
from kvcert.claims.auc import auc, conditional_auc
from kvcert.claims.c6_attribution import failures
from kvcert.errors import KvcertError
from kvcert.exhibits.outcome import Measured
from kvcert.files import sha256_json
from kvcert.grid import shards
from kvcert.logs.integrity import check
from kvcert.logs.schema import TABLES
from kvcert.registry import load_claims
from kvcert.tasks.stream import Stream

Damage = Callable[[Path, str], None]


def shuffled_labels(
    results: Path, root: Path, config: dict[str, Any], shuffles: int
) -> tuple[Measured, pd.DataFrame]:
    """Attribution AUC of the certificate under shuffled labels, and its values; not measured without both classes."""
    claims = load_claims(root)
    claim = claims["claims"]["C6"]
    rows, _ = failures(frames.load(results, config, claims["common"]), claim)
    rows = rows[rows["setting"].isin(claim["scope"]["settings"])].reset_index(drop=True)
    induced, place = rows["induced"].to_numpy(bool), rows["place"].to_numpy(str)
    signal, weight = rows["signal"].to_numpy(float), rows["weight"].to_numpy(float)[None]
    if len(rows) == 0 or induced.all() or not induced.any():
        return Measured(None, n=len(rows), note="these logs hold no failures of both classes"), pd.DataFrame()
    found = []
    for number in range(shuffles):
        stream = Stream("labels", config["study"]["seed"], number)
        pooled = induced[stream.shuffled(range(len(rows)))]
        inside = induced.copy()
        for cell in np.unique(place):
            members = np.flatnonzero(place == cell)
            inside[members] = induced[stream.shuffled(members.tolist())]
        found.append(
            {"shuffle": number, "pooled": auc(signal, pooled, weight)[0],
             "conditional": conditional_auc(signal, inside, weight, place)[0]}
        )  # fmt: skip
    table = pd.DataFrame(found)
    means = table[["pooled", "conditional"]].mean()
    words = ", ".join(f"{name} {value:.3f}" for name, value in means.dropna().items())
    return Measured(float((means - 0.5).abs().max()), n=len(rows), note=f"mean AUC: {words}"), table


def damaged_logs(results: Path, root: Path, config: dict[str, Any]) -> pd.DataFrame:
    """One row per damage (and the undamaged copy): whether gate or scoring refused it, and in what words."""
    common, victim = load_claims(root)["common"], shards(config)[0]["shard"]
    found = []
    for name, damage in {"none": None, **DAMAGES}.items():
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder)
            for table in TABLES:
                (copy / table).mkdir()
                for path in sorted((Path(results) / table).glob("*.parquet")):
                    (copy / table / path.name).symlink_to(path.resolve())
            if damage is not None:
                damage(copy, victim)
            words = _refusal(copy, config, common)
        found.append(
            {"damage": name, "refused": words is not None, "words": (words or "").replace(folder, "…")}
        )
    return pd.DataFrame(found)


def _refusal(results: Path, config: dict[str, Any], common: dict[str, Any]) -> str | None:
    """The line with which the gate or the beginning of scoring refuses; None when both let it pass."""
    try:
        check(results, config)
        frames.load(results, config, common)
    except KvcertError as problem:
        return str(problem)
    return None


def _cut(results: Path, shard: str) -> None:
    path = results / "runs" / f"{shard}.parquet"
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])


def _missing(results: Path, shard: str) -> None:
    (results / "heads" / f"{shard}.parquet").unlink()


def _short(results: Path, shard: str) -> None:
    path = results / "steps" / f"{shard}.parquet"
    table = pq.read_table(path)
    _write(path, table.slice(0, table.num_rows - 1))


def _doubled(results: Path, shard: str) -> None:
    source = results / "runs" / f"{shard}.parquet"
    source.with_name(f"{shard}-{sha256_json(shard)[:4]}.parquet").write_bytes(source.read_bytes())


def _mislabelled(results: Path, shard: str) -> None:
    path = results / "runs" / f"{shard}.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("fail")
    _write(path, table.set_column(place, table.schema.field(place), pc.invert(table.column("fail"))))


def _write(path: Path, table: pa.Table) -> None:
    """In place of the link, with the original's metadata: the row count that it promises stays."""
    path.unlink()
    pq.write_table(table, path, compression="zstd")


DAMAGES: dict[str, Damage] = {
    "cut": _cut,
    "missing": _missing,
    "short": _short,
    "doubled": _doubled,
    "mislabelled": _mislabelled,
}
