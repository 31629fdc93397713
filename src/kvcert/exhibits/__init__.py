"""The theorems on a real model: exhibits X1 to X5, the negative controls and the ablations.

`kvcert.exhibits.<module>.measure(config, root, progress)` runs one and writes its rows and its outcome. This file and
`registration` and `outcome` need no torch.
"""

from __future__ import annotations

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
