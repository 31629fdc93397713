"""The panel of (layer, query head) pairs, and what is measured on it at every step."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from kvcert.cache.context import ContextCache
from kvcert.cache.thinned import Shadow
from kvcert.kernels import Decoded
from kvcert.models import LoadedModel
from kvcert.policies import Selection
from kvcert.spacing import panel_layers
from kvcert.survey.truth import shadow_attention


@dataclass
class Panel:
    """Certificate and truth of every forward pass, for a fixed set of rows.

    After a pass of T tokens each entry of `taken` is float32 [panel layers, R, H, T].
    """

    model: LoadedModel
    context: ContextCache | Shadow
    n: int
    selections: list[Selection]
    constants: dict[str, float]
    layers: list[int] = field(init=False)
    taken: dict[str, list[Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.layers = panel_layers(self.model.n_layers, int(self.constants["panel_layers"]))
        self._log_pi = torch.stack([torch.stack([s.log_pi[i] for s in self.selections]) for i in self.layers])
        self._keep = torch.stack([torch.stack([s.keep[i] for s in self.selections]) for i in self.layers])
        expected = torch.stack([torch.stack([s.expected[i] for s in self.selections]) for i in self.layers])
        per = self.model.n_heads // self.model.n_kv_heads

        def by_query_head(x: Tensor) -> Tensor:
            return x.repeat_interleave(per, -1)

        sampled = self._log_pi < 0
        #: [panel layers, R, H]: expected and realised tail sample size, tail size, tokens evicted.
        self.expected = by_query_head(expected)
        self.tail = by_query_head(sampled.sum(-1))
        self.tail_kept = by_query_head((sampled & self._keep).sum(-1))
        self.evicted = by_query_head((~self._keep).sum(-1))
        #: bool [H]: the registered panel takes the first query head of each KV head.
        self.first = torch.arange(self.model.n_heads, device=self.evicted.device) % per == 0

    def listen(self, layer: int, q: Tensor, decoded: Decoded, own_keys: Tensor, own_values: Tensor) -> None:
        """Store a layer's certificate and measure the truth with the same queries on the shadow cache."""
        i = self.layers.index(layer)
        keys, values = self.context.keys[layer][0, :, : self.n], self.context.values[layer][0, :, : self.n]
        truth = shadow_attention(
            q.float(),
            keys.float(),
            values.float(),
            own_keys.float(),
            own_values.float(),
            self._log_pi[i],
            self._keep[i],
            self.context.scale,
        )
        out = decoded.out.float()
        assert decoded.radius is not None, "a certified layer has a certificate"
        assert decoded.guarded is not None
        # Too small a sample says nothing about what it missed: no finite radius.
        unknown = (self.tail[i] > 0) & (
            (self.expected[i] < self.constants["m_min"]) | (self.tail_kept[i] == 0)
        )
        infinite = torch.where(unknown, float("inf"), 0.0).float()[..., None]
        record = {
            "variance": decoded.variance,
            "bound": decoded.bound,
            "radius": decoded.radius + infinite,
            "guarded": decoded.guarded + infinite,
            "error": (out - truth.out).norm(dim=-1),
            "norm": out.norm(dim=-1),
            "norm_true": truth.out.norm(dim=-1),
            "ess": decoded.ess,
            "ess_full": truth.ess,
            "p_max": decoded.p_max,
            "p_sampled": decoded.p_sampled,
            "r_max": truth.r_max,
            "r_kept": truth.r_kept,
        }
        for name, value in record.items():
            self.taken.setdefault(name, []).append(value)

    def collect(self) -> dict[str, Tensor]:
        """What the last pass measured, float32 [panel layers, R, H, T]; the panel is ready for the next pass."""
        taken = {name: torch.stack(values) for name, values in self.taken.items()}
        self.taken = {}
        return taken

    def step_figures(self, taken: dict[str, Tensor]) -> dict[str, Tensor]:
        """Means over the registered panel, [R, T]: certificate, guarded, error (relative), and units counted."""
        member = (self.evicted > 0) & self.first  # nothing evicted: 0 <= 0 is no coverage
        count = member.sum((0, 2))
        norm = taken["norm"].clamp_min(self.constants["floor"])

        def mean(name: str) -> Tensor:
            relative = torch.where(member[..., None], taken[name] / norm, 0.0)
            total = relative.sum((0, 2)) / count.clamp_min(1)[:, None]
            return torch.where(count[:, None] > 0, total, float("nan"))

        return {
            "certificate": mean("radius"),
            "guarded": mean("guarded"),
            "error": mean("error"),
            "units": count[:, None].expand(-1, taken["norm"].shape[-1]),
        }
