"""Five runs each way, chosen by the hash of their names and so by nobody: both answers and the step trace."""

from __future__ import annotations

import hashlib
from typing import Any

import pandas as pd

EACH = 5
#: Claim -> (column of its rows or None, what True means, what False means).
WAYS = {
    "C1": ("C1a", "every step covered", "some step not covered"),
    "C2": ("difference", "Poisson at least as good as top-k", "Poisson worse than top-k"),
    "C3": ("difference", "eviction did harm", "eviction did no harm"),
    "C4": ("fail", "failed", "did not fail"),
    "C5": ("raised", "a larger budget helped", "a larger budget did not help"),
    "C6": ("induced", "cache-induced failure", "inherent failure"),
    "C7": ("gain", "recomputation helps", "recomputation does not help"),
}
UNIT = ["model", "task", "length", "example", "setting"]


def examples(
    name: str, rows: pd.DataFrame, runs: pd.DataFrame, steps: pd.DataFrame, policy: str
) -> list[dict[str, Any]]:
    """At most five runs of either kind: answers of the run and of the full cache, accepted answers, token ids, trace.

    The logs hold the prompt's SHA-256 and not its text; `kvcert prepare` and the task render it again.
    """
    column, yes, no = WAYS[name]
    if len(rows) == 0:
        return []
    values = rows[column]
    if name == "C1":
        chosen = values >= 1.0
    elif name == "C2":
        chosen = values >= 0
    else:
        chosen = values.astype(float) > 0
    found = []
    for way, some in ((yes, rows[chosen]), (no, rows[~chosen])):
        found += [_one(way, key, runs, steps) for key in _picked(some, runs, policy)]
    return found


def _picked(rows: pd.DataFrame, runs: pd.DataFrame, policy: str) -> list[str]:
    if "run_id" not in rows:  # an example of a paired claim: its certified run with the smallest budget
        mine = runs[(runs["policy"] == policy) & (runs["regime"] == "free")].sort_values(["budget", "draw"])
        rows = rows[UNIT].merge(mine.drop_duplicates(UNIT), on=UNIT)
    return sorted(rows["run_id"], key=lambda key: hashlib.sha256(str(key).encode()).hexdigest())[:EACH]


def _one(way: str, key: str, runs: pd.DataFrame, steps: pd.DataFrame) -> dict[str, Any]:
    run = runs[runs["run_id"] == key].iloc[0]
    same = (runs[UNIT] == run[UNIT]).all(axis=1) & (runs["policy"] == "full")
    full = runs[same].iloc[0] if same.any() else None
    trace = steps[steps["run_id"] == key].sort_values("step")
    return {
        "way": way, "run_id": key, "prompt_sha256": run["prompt_sha256"], "accepted": list(run["answers"]),
        "answer": run["answer"], "answer_full_cache": None if full is None else full["answer"],
        "score": run["score"], "score_full_cache": None if full is None else full["score"],
        "signal": run["signal"], "confidence": run["logp_mean"], "token_ids": [int(t) for t in run["token_ids"]],
        "trace": [
            {name: _plain(row[name]) for name in ("step", "logp", "certificate", "error", "covered")}
            for row in trace.to_dict("records")
        ],
    }  # fmt: skip


def _plain(value: Any) -> Any:
    return None if value is None or pd.isna(value) else value
