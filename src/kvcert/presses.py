"""Importance scores taken from kvpress: which press answers to which scorer name. No torch, no kvpress here.

kvpress counts what it *removes* (`compression_ratio`), this project what it keeps: `compression_ratio` below is the one
place where one becomes the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: Releases of kvpress whose presses these are: from the first (included) to the second (excluded).
SUPPORTED = ((0, 5, 5), (0, 6, 0))


@dataclass(frozen=True)
class Press:
    """A `ScorerPress` of kvpress as an importance score.

    kind : as `Scorer.kind`: `mass` where the press gives a score >= 0 that is proportional to something, else `ordinal`.
    constants : argument of the press -> name in `study.constants`; everything else is kvpress's own default.
    """

    class_name: str
    kind: Literal["mass", "ordinal"]
    constants: dict[str, str] = field(default_factory=dict)


#: Presses whose score is a deterministic function of one prefill under any attention implementation. Left out:
#: RandomPress, LeverageScorePress, CompactorPress (a global random generator), ObservedAttentionPress (the attention matrix
#: of the whole prefill; `h2o` accumulates it in blocks), StreamingLLMPress (its score depends on the ratio; `streaming` is a
#: policy here), and presses that need trained files (QFilterPress, KVzap, ...).
PRESSES: dict[str, Press] = {
    "kvpress_snapkv": Press("SnapKVPress", "mass", {"window_size": "window", "kernel_size": "pooling"}),
    "kvpress_tova": Press("TOVAPress", "mass"),
    "kvpress_expected_attention": Press("ExpectedAttentionPress", "mass", {"n_sink": "n_sink"}),
    "kvpress_keydiff": Press("KeyDiffPress", "ordinal"),
    "kvpress_knorm": Press("KnormPress", "ordinal"),
    "kvpress_lagkv": Press("LagKVPress", "ordinal", {"n_sink": "n_sink"}),
    "kvpress_cur": Press("CURPress", "mass", {"num_sinks": "n_sink"}),
    "kvpress_noncausal": Press("NonCausalAttnPress", "ordinal"),
}


def compression_ratio(kept: int, n: int) -> float:
    """kvpress's `compression_ratio` under which a press keeps exactly `kept` of n tokens per KV head.

    kvpress keeps int(n (1 - ratio)). The half token keeps the truncation away from the integer, where rounding decides.

    Raises
    ------
    ValueError when `kept` is not in 1..n.
    """
    if not 0 < kept <= n:
        raise ValueError(f"kept {kept} is not between 1 and {n}")
    return 0.0 if kept == n else 1.0 - (kept + 0.5) / n
