"""H2O-like score: attention accumulated over every query so far (Zhang et al. 2023, arXiv 2306.14048)."""

from __future__ import annotations

from torch import Tensor

from kvcert.scorers.base import Scorer, causal_probabilities


class H2O(Scorer):
    """Sum of the attention that a token received from every query of the prefill, averaged over the query heads."""

    name = "h2o"
    accumulates = True
    #: Queries per block: bounds the memory of the attention matrix.
    block = 256

    def __init__(self, constants: dict[str, float]) -> None:
        super().__init__(constants)
        self._mass: dict[int, Tensor] = {}

    def observe(self, layer: int, queries: Tensor, keys: Tensor, scale: float) -> None:
        steps, seen = queries.shape[1], keys.shape[1]
        total = keys.new_zeros(keys.shape[0], seen).float()
        if layer in self._mass and seen > steps:
            total[:, : seen - steps] = self._mass[layer][:, : seen - steps]
        for start in range(0, steps, self.block):
            stop = min(start + self.block, steps)
            visible = seen - steps + stop
            part = causal_probabilities(queries[:, start:stop], keys[:, :visible], scale)
            total[:, :visible] += part.mean(1).sum(1)
        self._mass[layer] = total

    def raw(
        self, layer: int, queries: Tensor, keys: Tensor, n: int, scale: float, values: Tensor | None = None
    ) -> Tensor:
        return self._mass[layer][:, :n]
