"""Every run and its steps as columns of numbers, small enough to travel inside the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kvcert.paper.logs import cell_labels, plain, read
from kvcert.report.embed import embedded_json
from kvcert.report.pack import codes, infinite, rounded

KEYS = ["model", "task", "length", "example", "setting"]
#: Choices on the page, in their order; `example` is a number, the others are names.
CHOICES = ("cell", "setting", "policy", "budget", "scorer", "draw", "regime")
FIGURES = {
    "score": 4, "logp_mean": 4, "evicted_mass": 3, "kept_tokens": 6, "capacity": 6,
    "context_tokens": 6, "kept_bytes": 8, "full_bytes": 8, "fail_below": 4,
}  # fmt: skip
LONGEST = 2000  # letters of an answer that are shown
#: Bytes of data that the page carries at most; with more, every second, third, … example is left out.
MOST = 10_000_000


def explorer_data(results: Path, most: int = MOST) -> dict[str, Any]:
    """What the run explorer reads: runs as columns, steps as columns, texts once each.

    Parameters
    ----------
    results : folder of the logs.
    most : bytes of JSON that must not be exceeded; examples are thinned evenly until it holds.
    """
    columns = ["run_id", *KEYS, "scorer", "policy", "budget", "draw", "regime", "valid", "invalid_reason", "fail",
               "answer", "answers", "signal", "error", *FIGURES]  # fmt: skip
    runs = plain(read(results, "runs", columns))
    every = 1
    while True:
        data = _data(results, runs[runs["example"] % every == 0].reset_index(drop=True), every)
        size = len(embedded_json(data))
        if size <= most or every > runs["example"].max():
            return data
        every = max(every + 1, int(np.ceil(every * size / most)))


def _data(results: Path, runs: pd.DataFrame, every: int) -> dict[str, Any]:
    steps = read(results, "steps", ["run_id", "step", "certificate", "guarded", "error"])
    steps = steps[steps["run_id"].isin(set(runs["run_id"]))]
    place = pd.Series(np.arange(len(runs)), index=runs["run_id"])
    row = steps["run_id"].map(place).to_numpy(int)
    order = np.lexsort((steps["step"].to_numpy(), row))
    counts = np.bincount(row, minlength=len(runs))
    texts: dict[str, int] = {}
    runs = runs.assign(cell=cell_labels(runs).astype(str), budget=[f"{b:g}" for b in runs["budget"]])
    data: dict[str, Any] = {
        "every": every, "names": {}, "example": runs["example"].tolist(), "n": counts.tolist(),
        "outcome": outcomes(runs), "full": _full(runs), "answer": [_put(texts, text) for text in runs["answer"]],
        "accepted": [[_put(texts, text) for text in answers] for answers in runs["answers"]],
        "invalid": [_put(texts, str(why)) if why is not None and why == why else None for why in runs["invalid_reason"]],
    }  # fmt: skip
    for name in CHOICES:
        data["names"][name], data[name] = codes(runs[name].astype(str))
    data |= {name: rounded(runs[name], digits) for name, digits in FIGURES.items()}
    data |= {name: infinite(runs[name].to_numpy(float), 4) for name in ("signal", "error")}
    data["steps"] = {
        short: infinite(steps[name].to_numpy(float)[order])
        for short, name in (("c", "certificate"), ("g", "guarded"), ("e", "error"))
    }
    data["texts"] = list(texts)
    return data


def outcomes(runs: pd.DataFrame) -> list[str]:
    """`pass`, `induced`, `inherent`, `fail` (the full cache's own failure), `invalid`, or `forced`."""
    full = runs[(runs["policy"] == "full") & (runs["regime"] == "free") & runs["valid"]]
    fails = full.set_index(KEYS)["fail"]
    fails = fails[~fails.index.duplicated()]
    of_full = fails.reindex(pd.MultiIndex.from_frame(runs[KEYS])).tolist()
    found = []
    for valid, regime, policy, fail, base in zip(
        runs["valid"], runs["regime"], runs["policy"], runs["fail"], of_full, strict=True
    ):
        if not valid:
            found.append("invalid")
        elif regime == "forced" or fail is None:
            found.append("forced")
        elif not fail:
            found.append("pass")
        elif policy == "full" or not isinstance(base, (bool, np.bool_)):
            found.append("fail")
        else:
            found.append("inherent" if base else "induced")
    return found


def _full(runs: pd.DataFrame) -> list[int | None]:
    """Row of the full-cache run of the same example and setting."""
    full = runs[(runs["policy"] == "full") & (runs["regime"] == "free")].drop_duplicates(KEYS)
    rows = pd.Series(full.index, index=pd.MultiIndex.from_frame(full[KEYS]))
    found = rows.reindex(pd.MultiIndex.from_frame(runs[KEYS]))
    return [None if np.isnan(at) else int(at) for at in found.to_numpy(float)]


def _put(texts: dict[str, int], text: str) -> int:
    """Place of a text in the list of texts, cut where it is longer than a page wants to show."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} … [cut: {len(text):,} characters in all]"
    return texts.setdefault(text, len(texts))
