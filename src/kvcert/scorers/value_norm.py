"""Value-aware score: window attention times the norm of the value, the size of a token's term in the output."""

from __future__ import annotations

from torch import Tensor

from kvcert.scorers.snapkv import SnapKV


class ValueNorm(SnapKV):
    """The SnapKV-like score times ||v||, so that a token with a large value state is not dropped for little attention.

    a_i ||v_i|| is the size of what token i adds to the attention output. The variance of `survey.linearised` is smallest,
    at a given expected size, for probabilities proportional to a_i ||v_i - o||, of which it is the part that needs no o.
    Guo et al. 2024 (arXiv 2406.12335) weigh attention by the 1-norm of the value; VaSE (arXiv 2606.03928) protects tokens
    of large value norm and evicts the others at random: `uncorrected` with this score comes closest to it.
    """

    name = "value_norm"

    def raw(
        self, layer: int, queries: Tensor, keys: Tensor, n: int, scale: float, values: Tensor | None = None
    ) -> Tensor:
        if values is None:
            raise ValueError("scorer value_norm: needs the values")
        return super().raw(layer, queries, keys, n, scale) * values[:, :n].float().norm(dim=-1)
