"""The full cache of one example: prefill, scores, the full run, and the shadow that truth is measured on."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from kvcert.cache.base import HookCache, buffers
from kvcert.models import LoadedModel
from kvcert.scorers import Scorer


class ContextCache(HookCache):
    """Keys and values of every token, one row, plus the last `window` queries of every layer.

    Parameters
    ----------
    slots : tokens that will ever be held (prompt and answer).
    window : last queries kept per layer, for scorers and traces.
    implementation : transformers' name of the attention used for the prefill (sdpa, flash_attention_2, eager).
    """

    def __init__(
        self,
        model: LoadedModel,
        slots: int,
        window: int,
        scorers: dict[str, Scorer],
        implementation: str = "sdpa",
    ) -> None:
        like = next(model.model.parameters())
        shape = (model.n_layers, 1, model.n_kv_heads, slots, model.head_dim)
        super().__init__(buffers(*shape, like=like), buffers(*shape, like=like))
        self.window, self.scorers, self.implementation = window, scorers, implementation
        self.queries: list[Tensor | None] = [None] * model.n_layers
        self.observing = True
        self.scale = 0.0

    def attend(self, module: torch.nn.Module, q: Tensor, scale: float) -> Tensor:
        """Causal attention of the newest T tokens, q [1, H, T, D]; returns [1, T, H, D]."""
        layer, steps = int(module.layer_idx), q.shape[2]  # type: ignore[arg-type]
        stop = self.end + steps
        k, v = self.keys[layer][:, :, :stop], self.values[layer][:, :, :stop]
        self.scale = scale
        past = self.queries[layer]
        self.queries[layer] = (q[0] if past is None else torch.cat([past, q[0]], 1))[
            :, -self.window :
        ].clone()
        for scorer in self.scorers.values():
            if self.observing and scorer.accumulates:
                scorer.observe(layer, q[0], k[0], scale)
        out = self._attention(module, q, k, v, scale)
        self.finish_layer(layer)
        return out

    def _attention(self, module: torch.nn.Module, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        steps, seen = q.shape[2], k.shape[2]
        if self.implementation != "sdpa":
            # A registered implementation does its own causal masking (flash-attn's is bottom-right).
            function = ALL_ATTENTION_FUNCTIONS[self.implementation]
            return function(module, q, k, v, None, scaling=scale, dropout=0.0)[0]
        mask = None
        if 1 < steps < seen:
            # SDPA's own causal flag is top-left aligned: wrong for a continuation.
            mask = torch.ones(steps, seen, dtype=torch.bool, device=q.device).tril(seen - steps)
        out = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=steps == seen and steps > 1, scale=scale, enable_gqa=True
        )
        return out.transpose(1, 2)

    def scores(self, n: int) -> dict[str, Tensor]:
        """z of the first n tokens from what has been read so far, by scorer: float64 [layers, KV heads, n]."""
        found = {}
        for name, scorer in self.scorers.items():
            rows = []
            for layer, queries in enumerate(self.queries):
                assert queries is not None, "scores before prefill"
                keys, values = (x[layer][0, :, : self.end] for x in (self.keys, self.values))
                rows.append(scorer.score(layer, queries, keys, n, self.scale, values))
            found[name] = torch.stack(rows)
        return found
