"""The score of a kvpress press as an importance score for every policy."""

from __future__ import annotations

from torch import Tensor

from kvcert.errors import KvcertError
from kvcert.presses import PRESSES
from kvcert.scorers.base import Scorer
from kvcert.scorers.press.library import library
from kvcert.scorers.press.prefix import Prefix


class PressScorer(Scorer):
    """`ScorerPress.score` over the whole prefix: the context (streaming), or context and question (aware).

    Only the score is taken: which tokens stay is the policy's affair, and the press's own ratio is never set.
    """

    name = "kvpress"
    reads_prefix = True

    def __init__(self, name: str, constants: dict[str, float]) -> None:
        super().__init__(constants)
        press = PRESSES[name]
        options = {key: int(constants[constant]) for key, constant in press.constants.items()}
        self.name, self.kind = name, press.kind  # type: ignore[misc]
        self.press = getattr(library(), press.class_name)(**options)
        self.prefix: Prefix | None = None

    def raw(
        self, layer: int, queries: Tensor, keys: Tensor, n: int, scale: float, values: Tensor | None = None
    ) -> Tensor:
        if self.prefix is None or values is None:
            raise RuntimeError(f"scorer {self.name}: the prefill was not read inside `recording`")
        hidden = self.prefix.hidden(layer)
        if hidden.shape[1] != keys.shape[1]:
            raise RuntimeError(f"scorer {self.name}: {hidden.shape[1]} hidden states, {keys.shape[1]} keys")
        seen = {"position_embeddings": self.prefix.embeddings()}
        try:
            score = self.press.score(self.prefix.modules[layer], hidden, keys[None], values[None], None, seen)
        except AssertionError as error:
            raise KvcertError(
                f"scorer {self.name}: kvpress refuses {keys.shape[1]} tokens ({error}); use a longer context"
            ) from None
        except NotImplementedError as error:
            raise KvcertError(
                f"scorer {self.name}: kvpress does not know this model ({error}); use another score"
            ) from None
        return score[0, :, :n]
