"""The seven statistics, computed a second way: labels by SQL in DuckDB, figures in plain NumPy.

Nothing here, and nothing that it imports, comes from `kvcert.claims`: a mistake there is not repeated here.
"""

from __future__ import annotations

from kvcert.audit.second.claims import Claim, Computed, claim_of, compute

__all__ = ["Claim", "Computed", "claim_of", "compute"]
