"""Key norm: keys of small norm attract attention (Devoto et al. 2024, arXiv 2406.11430)."""

from __future__ import annotations

from torch import Tensor

from kvcert.scorers.base import Scorer


class KeyNorm(Scorer):
    """Minus the Euclidean norm of the key. Signed, so only its order is used."""

    name = "key_norm"
    kind = "ordinal"

    def raw(
        self, layer: int, queries: Tensor, keys: Tensor, n: int, scale: float, values: Tensor | None = None
    ) -> Tensor:
        return -keys[:, :n].float().norm(dim=-1)
