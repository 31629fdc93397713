"""What one run leaves behind, before it becomes rows of the three tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass
class Trail:
    """One run as it decodes: tokens with their figures, and per step the panel's."""

    tokens: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)
    heads: list[dict[str, np.ndarray]] = field(default_factory=list)
    broken: str | None = None

    def add(self, token: int, logp: float, entropy: float) -> None:
        """One more token."""
        self.tokens.append(token)
        self.logp.append(logp)
        self.entropy.append(entropy)

    def add_figures(self, figures: dict[str, np.ndarray], row: int, step: int) -> None:
        """The panel's means of one step, arrays [R, T]."""
        for name, values in figures.items():
            self.figures.setdefault(name, []).append(float(values[row, step]))

    def add_heads(self, taken: dict[str, np.ndarray], row: int, step: int) -> None:
        """Every panel pair's record of one step, arrays [layers, R, H, T]."""
        self.heads.append({name: values[:, row, :, step] for name, values in taken.items()})


@dataclass
class Run:
    """A finished run: its identity and scalars (`fields`), its trail, and its panel's fixed sizes."""

    fields: dict[str, Any]
    trail: Trail
    certified: bool
    sizes: dict[str, np.ndarray] | None = None


def distribution(logits: Tensor, chosen: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Greedy (or given) tokens of logits [..., V], their log-probability, the entropy, and whether all is finite.

    Returns four tensors of the leading shape: int64 tokens, float32 nats, float32 nats, bool.
    """
    finite = torch.isfinite(logits).all(-1)
    logp = torch.nan_to_num(logits).log_softmax(-1)
    tokens = logp.argmax(-1) if chosen is None else chosen
    entropy = -(logp.exp() * logp).sum(-1)
    return tokens, logp.gather(-1, tokens[..., None])[..., 0], entropy, finite
