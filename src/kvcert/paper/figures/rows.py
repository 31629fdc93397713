"""How ways of keeping the cache are named, ordered and told apart in figures: policy, parameters, scorer."""

from __future__ import annotations

from typing import Any

import pandas as pd

from kvcert.paper.figures.style import POLICIES, style

NAMES = {
    "poisson": "Poisson",
    "topk": "top-k",
    "random": "random tail",
    "streaming": "sinks + recent",
    "full": "full cache",
    "mixture": "mixture",
    "uniform": "uniform tail, 1/π",
    "uncorrected": "Poisson, no offset",
    "adakv": "head budgets",
    "lru": "least recently used",
}
#: Markers of further rows of one policy, which keep its colour.
MARKERS = ["o", "s", "D", "v", "P", "^", "X", "h", "<", ">", "p", "d", "*", "H", "8", "4"]
#: More rows than this are not drawn in one picture.
MOST = 40


def named(free: pd.DataFrame) -> pd.DataFrame:
    """Runs with a column `row`: the policy as logged, and its scorer where the policy was run with several."""
    scorers = free.groupby("policy")["scorer"].transform("nunique")
    return free.assign(row=free["policy"].where(scorers == 1, free["policy"] + ", " + free["scorer"]))


def fewer(free: pd.DataFrame, primary: str | None) -> tuple[pd.DataFrame, int]:
    """The runs that one picture can show, and how many rows are left out: those of other scorers than the primary one.

    Without a primary scorer it is the one with most runs.
    """
    evicted = free[free["policy"] != "full"]
    if evicted["row"].nunique() <= MOST:
        return free, 0
    scored = evicted[evicted["row"] != evicted["policy"]]
    best = primary if (scored["scorer"] == primary).any() else scored["scorer"].mode().min()
    kept = free[(free["row"] == free["policy"]) | (free["scorer"] == best)]
    return kept, int(free["row"].nunique() - kept["row"].nunique())


def ordered(rows: list[str]) -> list[str]:
    """Rows by policy in the order of `POLICIES`, then by name."""
    known = list(POLICIES)
    return sorted(rows, key=lambda row: (known.index(base(row)) if base(row) in known else 99, row))


def base(row: str) -> str:
    """The policy without parameters and scorer: `mixture[lam=0.3], h2o` → `mixture`."""
    return row.partition(",")[0].partition("[")[0]


def label(row: str) -> str:
    """For people: `mixture[lam=0.3], h2o` → `mixture λ=0.3, h2o`."""
    policy, rest = base(row), row[len(base(row)) :]
    rest = rest.replace("[lam=", " λ=").replace("[", " ").replace("]", "")
    return NAMES.get(policy, policy) + rest


def looks(rows: list[str]) -> list[dict[str, Any]]:
    """Colour, marker and line of each row: those of its policy; further rows of a policy take markers still free."""
    present = {base(row) for row in rows}
    free = [marker for marker in MARKERS if marker not in {POLICIES[p][1] for p in present & set(POLICIES)}]
    seen: set[str] = set()
    found: list[dict[str, Any]] = []
    for index, row in enumerate(rows):
        policy = base(row)
        look = style(index)
        if policy in POLICIES:
            look = dict(zip(("color", "marker", "linestyle"), POLICIES[policy], strict=True))
        if (policy in seen or policy not in POLICIES) and free:
            look["marker"] = free.pop(0)
        seen.add(policy)
        found.append(look)
    return found
