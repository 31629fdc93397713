"""The statistics of `kvcert.survey`, fused with attention: one pass over K and V, three backends, one dispatcher."""

from __future__ import annotations

from kvcert.kernels.dispatch import decode, resolve_backend
from kvcert.kernels.evict import evict
from kvcert.kernels.types import Decoded, Evicted

__all__ = ["Decoded", "Evicted", "decode", "evict", "resolve_backend"]
