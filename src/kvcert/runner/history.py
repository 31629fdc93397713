"""One row's history as it is thinned turn by turn: what is alive, and with which cumulative inclusion probability."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from kvcert import policies
from kvcert.errors import KvcertError
from kvcert.grid import CERTIFIED
from kvcert.policies import Selection, design_of
from kvcert.survey.thinning import thin

#: A 32-bit uniform that no threshold exceeds: a token that has it is never drawn.
NEVER = 2**32


@dataclass
class History:
    """State between compressions, over absolute positions.

    alive : bool [layers, KV heads, n so far]. log_pi : float64, same shape, cumulative; 0 under policies without a
    design. lost : float64 [layers, KV heads], share of the importance score evicted so far, stages compounded.
    """

    row: dict[str, Any]
    constants: dict[str, float]
    alive: Tensor = field(default_factory=lambda: torch.ones(0, 0, 0, dtype=torch.bool))
    log_pi: Tensor = field(default_factory=lambda: torch.zeros(0, 0, 0, dtype=torch.float64))
    lost: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.float64))

    def grow(self, layers: int, heads: int, n: int, device: torch.device) -> None:
        """New tokens up to position n: alive, with inclusion probability 1."""
        alive = torch.ones(layers, heads, n, dtype=torch.bool, device=device)
        log_pi = torch.zeros(layers, heads, n, dtype=torch.float64, device=device)
        if old := self.alive.shape[-1]:
            alive[..., :old], log_pi[..., :old] = self.alive, self.log_pi
        else:
            self.lost = torch.zeros(layers, heads, dtype=torch.float64, device=device)
        self.alive, self.log_pi = alive, log_pi

    def compress(self, z: Tensor, capacity: int, u32: Tensor) -> Selection:
        """One stage: keep `capacity` of the tokens that are alive, by score z and this stage's uniforms.

        Parameters
        ----------
        z : float64 [layers, KV heads, n], 0 where a token is gone. u32 : int64, same shape.
        """
        chosen = self._sampled(z, capacity, u32) if self._certified else self._chosen(z, capacity, u32)
        if bool((chosen.keep & ~self.alive).any()):
            raise KvcertError(f"policy {self.row['policy']}: chose a token that an earlier turn has evicted")
        now = (z * ~chosen.keep).sum(-1) / z.sum(-1).clamp_min(1e-300)
        self.lost = self.lost + (1.0 - self.lost) * now
        self.alive = chosen.keep
        return chosen

    @property
    def _certified(self) -> bool:
        return self.row["policy"] in CERTIFIED

    def _sampled(self, z: Tensor, capacity: int, u32: Tensor) -> Selection:
        design = design_of(z, capacity, self.constants, alive=self.alive)
        stage = thin(design, self.log_pi, self.alive, u32, self.constants["epsilon"])
        self.log_pi = stage.log_pi
        return Selection(stage.keep, stage.log_pi.float(), stage.expected)

    def _chosen(self, z: Tensor, capacity: int, u32: Tensor) -> Selection:
        """Policies that rank: tokens that are gone rank last, by score and by uniform.

        There are always enough others: capacity grows by no more than the tokens that a turn adds.
        """
        policy = policies.get(self.row["policy"], self.row.get("params"))
        z, u32 = torch.where(self.alive, z, -1.0), torch.where(self.alive, u32, NEVER)
        return policy.select(z, capacity, self.constants, u32)
