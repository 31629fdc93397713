"""Look-ups in a scored claim's JSON: numbers, parts, strata, and why there is nothing."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

Claim = dict[str, Any]
STRATA = ["name", "by", "measure", "value", "ci_low", "ci_high", "n_runs", "n_clusters"]
#: The part that the paper's number is about; the numbers of the other claims are about no single part.
PAPER_PART = {"C1": "C1a", "C2": "parity", "C6": "pooled"}

#: Printed on every table, figure and console of a grid that is not the frozen one.
EXPLORATORY = "exploratory: not the registered study"


def finite(value: Any) -> float | None:
    """A finite number, or None for null, text (`inf`) and not-a-number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def reason(claim: Claim | None, key: str) -> str:
    """Why a panel of this claim is empty: the claim's own reasons, or that it was not scored."""
    if claim is None:
        return f"{key} has not been scored"
    return "; ".join(str(line) for line in claim.get("reasons") or []) or f"{key} holds no such figure"


def parts(claim: Claim, deciding_only: bool = True) -> list[dict[str, Any]]:
    """The registered lines of a claim; the claim's own value where it lists none."""
    listed = [
        part
        for part in claim.get("parts") or []
        if not deciding_only or part.get("role", "decides") == "decides"
    ]
    if listed:
        return listed
    keys = ("value", "ci_low", "ci_high", "threshold")
    return [{"name": claim.get("part") or "value", "passed": None} | {key: claim.get(key) for key in keys}]


def paper_number(claim: Claim, part: str) -> float | None:
    """The paper's number where it is about this part."""
    about = PAPER_PART.get(str(claim.get("claim")))
    same = about is not None and (part == about or part.startswith(f"{about} "))
    return finite(claim.get("paper_number")) if same else None


def exploratory(claims: dict[str, Claim]) -> str | None:
    """The warning that goes with every number of claims not scored as registered; None when all were, or none is scored."""
    status = {str((claim.get("registration") or {}).get("status")) for claim in claims.values()}
    return EXPLORATORY if status - {"registered"} else None


def registration_lines(claims: dict[str, Claim]) -> list[str]:
    """Under which registration the claims were scored: each hash once."""
    lines = []
    for claim in claims.values():
        told = claim.get("registration") or {}
        lines.append(
            f"Registration: {told.get('status', 'unknown')}, {told.get('sha256') or 'nothing frozen'}"
        )
        chain = told.get("amendments") or {}
        if chain.get("count"):
            lines.append(f"Amendments: {chain['count']}, chain {chain['head']}")
    return list(dict.fromkeys(lines))


def paper_text(claim: Claim) -> str:
    """What the paper reports, short: verdict and number, `survived 0.97`."""
    number = finite(claim.get("paper_number"))
    return (
        f"{claim.get('paper_verdict') or 'unknown'}{'' if number is None or number == 0 else f' {number:g}'}"
    )


def strata(claim: Claim | None) -> pd.DataFrame:
    """The strata as a frame with the columns `STRATA`; missing and infinite values are NaN."""
    frame = pd.DataFrame((claim or {}).get("strata") or [])
    frame = frame.reindex(columns=[*STRATA, *(name for name in frame if name not in STRATA)])
    for name in ("value", "ci_low", "ci_high"):  # `inf` is text in the JSON and becomes a number here
        frame[name] = pd.to_numeric(frame[name], errors="coerce").astype(float)
    return frame.rename(columns={"value": "mean", "ci_low": "low", "ci_high": "high"})


def coverage_strata(claim: Claim | None) -> pd.DataFrame:
    """C1's strata with `budget` as a number and `group`: the cell, the band of ESS, or `all`."""
    frame = strata(claim)
    frame = frame[frame["by"].isin(["budget", "budget x task", "budget x ess"])].copy()
    frame = frame[frame["name"] != "pooled"]
    split = [name.rsplit("/", 1) for name in frame["name"].astype(str)]
    frame["budget"] = [float(pieces[-1]) for pieces in split]
    frame["group"] = [pieces[0].removeprefix("ESS ") if len(pieces) == 2 else "all" for pieces in split]
    return frame
