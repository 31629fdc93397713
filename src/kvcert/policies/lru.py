"""Protected least-recently-used eviction: sinks, recents, and the tokens used last (as in arXiv 2605.18053)."""

from __future__ import annotations

from kvcert.policies.topk import TopK


class LRU(TopK):
    """`topk` on the score `last_used`, which `kvcert.grid.OWN_SCORE` fixes for this policy."""

    name = "lru"
