"""What one run of X1 leaves in its tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kvcert.exhibits.witness import Seen


def run_of(names: dict[str, Any], seen: Seen, base: Seen, answer: str) -> dict[str, Any]:
    """One row: the hash, whether it is the unaltered run's, and the answer as the user reads it."""
    return names | {"sha256": seen.sha256, "same": seen.sha256 == base.sha256, "answer": answer}


def heads_of(names: dict[str, Any], seen: Seen, base: Seen) -> pd.DataFrame:
    """One row per (panel layer, head with something evicted, step); factors are over the unaltered run's."""
    layer, head = (x.cpu().numpy() for x in seen.member.nonzero(as_tuple=True))
    layer, steps = np.array(seen.layers)[layer], len(seen.tokens)
    frame = pd.DataFrame(
        {"layer": np.repeat(layer, steps), "head": np.repeat(head, steps),
         "step": np.tile(np.arange(1, steps + 1), len(layer))}
    )  # fmt: skip
    for name in ("error", "radius", "guarded", "norm"):
        frame[name] = seen.heads[name][seen.member].double().cpu().numpy().reshape(-1)
    for name in ("error", "radius"):
        before = base.heads[name][seen.member].double().cpu().numpy().reshape(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            frame[f"{name}_factor"] = np.where(
                np.isfinite(before) & (before > 0), frame[name].to_numpy() / before, np.nan
            )
    frame["covered"] = frame["error"] <= frame["radius"]
    return frame.assign(**names)


def steps_of(names: dict[str, Any], seen: Seen) -> pd.DataFrame:
    """One row per step: panel means of relative error and certificate."""
    frame = pd.DataFrame({"step": np.arange(1, len(seen.tokens) + 1)})
    for name in ("certificate", "guarded", "error"):
        frame[name] = seen.figures[name].double().cpu().numpy()
    frame["covered"] = frame["error"] <= frame["certificate"]
    return frame.assign(**names)
