"""What an exhibit must be given before it is measured. No torch: the workflow reads this file to build its graph."""

from __future__ import annotations

#: Exhibit → what it reads: `model` (prepared weights and texts), `logs` (the grid's tables, past the gate), `traces`
#: (recorded queries, keys, values and scores of the grid), `claims` (scored on these logs), `cells` (runs of its own,
#: `kvcert.exhibits.grids.specs`).
NEEDS: dict[str, frozenset[str]] = {
    "X1": frozenset({"model"}),
    "X2": frozenset({"traces"}),
    "X3": frozenset({"model", "logs", "cells"}),
    "X4": frozenset({"model"}),
    "X5": frozenset({"traces"}),
    "controls": frozenset({"model", "logs"}),
    "ablations": frozenset({"logs", "claims", "cells"}),
}
#: Measured alone on the machine, since it takes time itself.
ALONE = frozenset({"X4"})
