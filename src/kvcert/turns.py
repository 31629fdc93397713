"""Which policies and scorers can compress a history that is compressed at every turn. No torch: the configuration asks."""

from __future__ import annotations

from typing import Any

from kvcert.errors import KvcertError
from kvcert.grid import SCORELESS

#: Policies that choose among the tokens an earlier compression has left.
POLICIES = ("full", "topk", "poisson", "random", "streaming")
#: Importance scores that can be computed from those tokens alone.
SCORERS = ("snapkv",)


def check_row(where: str, task: str, row: dict[str, Any], scorer: str) -> None:
    """Refuse a row that cannot be compressed repeatedly, in one line that starts with `where`.

    Parameters
    ----------
    task : the task whose history is compressed at every turn. row : a row of the study. scorer : the study's own.
    """
    aside = f"{task} compresses its history at every turn of the streaming setting"
    if row["policy"] not in POLICIES:
        raise KvcertError(
            f"{where}.policy: {aside}, which {row['policy']} does not support; "
            f"leave the row or the task out, or use {', '.join(POLICIES)}"
        )
    # What a policy without a score has evicted is weighed by the study's.
    used = scorer if row["policy"] in SCORELESS else row.get("scorer") or scorer
    if used not in SCORERS:
        raise KvcertError(
            f"{where}.scorer: {aside}, which the scorer {used} does not support; use {', '.join(SCORERS)}"
        )
