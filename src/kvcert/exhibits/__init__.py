"""The theorems on a real model: exhibits X1 to X5, the negative controls and the ablations.

`kvcert.exhibits.<module>.measure(config, root, progress)` runs one and writes its rows and its outcome. This file and
`registration` and `outcome` need no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError

#: Exhibit → module of this package that measures it.
EXHIBITS: dict[str, str] = {
    "X1": "x1_unidentifiability",
    "X2": "x2_estimator",
    "X3": "x3_assumption",
    "X4": "x4_overhead",
    "X5": "x5_merging",
    "controls": "controls",
    "ablations": "ablations",
}


def run(name: str, config: dict[str, Any], root: Path, progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure one exhibit and return its outcome, which lies in `{results}/exhibits/<name>.json` then.

    Parameters
    ----------
    config : resolved configuration. root : folder of the project, with `preregistration/exhibits.yaml`.
    progress : told in a line what was done.

    Raises
    ------
    KvcertError when there is no such exhibit, or it lacks what it reads.
    """
    if name not in EXHIBITS:
        raise KvcertError(f"no exhibit {name!r}; there are {', '.join(EXHIBITS)}")
    found: dict[str, Any] = import_module(f"kvcert.exhibits.{EXHIBITS[name]}").measure(config, root, progress)
    return found
