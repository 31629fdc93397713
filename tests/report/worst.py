"""The worst that logs can hold, as far as a page is concerned, and the page made of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

#: Answers of examples 0, 1, 2, … of the first task: what a model could say, and worse.
HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script><img src=x onerror='window.hacked = 3'>",
    "long " * 20_000,
    "\u202eright to left\u202c שלום עולם مرحبا",
    "👩‍👩‍👧‍👦 🎉 𝕂𝕍 é 中文",
    "nul\x00 bell\x07 escape\x1b[31m line\u2028paragraph\u2029\ufeff",
    "{{ 7 * 7 }} {% raw %} &lt;b&gt; &amp; \\u003c ]]> <!-- <style>*{display:none}</style>",
    "javascript:window.hacked=4 \" ' ` ${1+1} \\",
)


@dataclass(frozen=True)
class Made:
    """A finished results folder with its page."""

    results: Path
    config: dict[str, Any]
    page: Path
    runs: pd.DataFrame
    steps: pd.DataFrame


def hostile(name: str, shard: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Plant the hostile answers, an invalid run, an infinite certificate and a missed step."""
    if ".niah." not in shard:
        return frame
    if name == "runs":
        at = [HOSTILE[example % len(HOSTILE)] for example in frame["example"]]
        frame = frame.assign(answer=at, answers=[[text[:300], "right"] for text in at])
        bad = frame["run_id"].str.contains("/7/streaming/snapkv/poisson/0.5/1/free")
        frame["valid"] = ~bad
        frame["invalid_reason"] = [f"non-finite {HOSTILE[0]}" if b else None for b in bad]
        frame.loc[bad, ["score", "fail"]] = None
    if name == "steps":
        first = frame["run_id"].str.contains("/0/streaming/snapkv/poisson/0.25/0/free") & (frame["step"] == 1)
        frame.loc[first, ["certificate", "guarded"]] = float("inf")
        second = first.shift(1, fill_value=False)
        frame.loc[second, "error"] = frame.loc[second, "certificate"] * 3
    return frame
