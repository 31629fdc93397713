"""Every claim's statistic on a handful of runs whose value is worked out in the comment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kvcert.claims import (
    c1_coverage,
    c2_parity,
    c3_damage,
    c4_prediction,
    c5_escalation,
    c6_attribution,
    c7_scheduling,
)
from kvcert.claims.bootstrap import Plan
from kvcert.claims.frames import Study
from kvcert.claims.outcome import Outcome

Make = Callable[[list[dict[str, Any]]], Study]


def part(outcome: Outcome, name: str) -> float:
    return next(item.value for item in outcome.parts if item.name == name)


def measure(outcome: Outcome, name: str, by: str, measure: str) -> float:
    lines = [s for s in outcome.strata if s["name"] == name and s["by"] == by and s["measure"] == measure]
    assert len(lines) == 1
    return float(lines[0]["value"])


def test_c1(study_of: Make, registered: dict[str, Any], plan: Plan) -> None:
    study = study_of([
        {"regime": "forced", "example": 0, "draw": 0}, {"regime": "forced", "example": 0, "draw": 1},
        {"regime": "forced", "example": 1}, {"regime": "free", "example": 2},
        {"regime": "forced", "example": 3, "identity": True},
    ])  # fmt: skip
    inf = float("inf")
    steps = pd.DataFrame(
        [("run0", 2.0, 1.0, 3), ("run0", 1.0, 2.0, 3), ("run1", 1.0, 1.0, 3), ("run1", inf, 9.0, 3), ("run1", None, 1.0, 3),
         ("run2", 1.0, 2.0, 3), ("run2", 0.0, 0.0, 0), ("run3", 1.0, 9.0, 3), ("run4", 1.0, 9.0, 3)],
        columns=["run_id", "certificate", "error", "units"],
    )  # fmt: skip
    heads = pd.DataFrame(
        [("run0", True, 1.0, 3.0, 2.0, 1.0, 5.0, 9), ("run0", True, 1.0, 1.0, 1.0, 40.0, 5.0, 9),
         ("run0", False, 0.0, 0.0, 9.0, 1.0, 5.0, 9),
         ("run0", True, 0.0, 0.0, 0.0, 1.0, 5.0, 0), ("run0", True, 0.0, 0.0, 0.0, 1.0, 9.0, 9),
         ("run1", True, inf, inf, 1.0, 1.0, 5.0, 9),
         ("run2", True, 1.0, 1.0, 2.0, 1.0, 5.0, 9), ("run2", True, 1.0, 1.0, float("nan"), 1.0, 5.0, 9)],
        columns=["run_id", "panel", "radius", "guarded", "error", "ess_full", "m", "tail"],
    )  # fmt: skip
    for name, frame in (("steps", steps), ("heads", heads)):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        if name == "heads":
            table = table.set_column(0, "run_id", table["run_id"].dictionary_encode())
        (study.results / name).mkdir()
        pq.write_table(table, study.results / name / "s.parquet")
    outcome = c1_coverage.score(study, registered["claims"]["C1"], plan)
    # run0 covers 1 of 2 steps, run1 2 of 2 (one infinite, one without number left out): example 0 has 3/4; example 1 has 0.
    assert part(outcome, "C1a at 0.25") == pytest.approx(3 / 8)
    # Panel pairs with something evicted: run0 1 of 2 (guarded 2 of 2), run1 1 of 1 (infinite), run2 0 of 1 (NaN left out).
    assert part(outcome, "C1b at 0.25") == pytest.approx((3 / 4 + 0) / 2)
    assert measure(outcome, "0.25", "budget", "C1b guarded") == pytest.approx((1 + 0) / 2)
    # ESS <= 2: run0 0 of 1, run1 1 of 1, run2 0 of 1.
    assert measure(outcome, "ESS <=2/0.25", "budget x ess", "C1b") == pytest.approx((1 / 2 + 0) / 2)
    counts = outcome.counts
    assert (counts["steps"], counts["steps_unusable"], counts["steps_with_infinite_certificate"]) == (5, 1, 1)
    assert (counts["heads"], counts["heads_unusable"], counts["heads_with_infinite_radius"]) == (4, 1, 1)
    # error / certificate with their weights: 0 (1/4), 0.5 (1/4), 1 (1/4), 2 (1/4 + 1): the median and 95 % are 2.
    assert outcome.curves["0.25"]["panel"] == {"sharpness": 0.5, "kappa95": 2.0, "n": 5}


def test_c2(study_of: Make, registered: dict[str, Any], plan: Plan) -> None:
    study = study_of([
        {"budget": 0.25, "draw": 0, "score": 1.0}, {"budget": 0.25, "draw": 1, "score": 0.0}, {"budget": 0.5, "score": 1.0},
        {"policy": "topk", "budget": 0.25, "score": 1.0}, {"policy": "topk", "budget": 0.5, "score": 1.0},
        {"example": 1, "budget": 0.25, "score": 0.5}, {"example": 1, "policy": "topk", "budget": 0.25, "score": 0.0},
        {"example": 1, "budget": 0.5, "score": 0.0},
    ])  # fmt: skip
    outcome = c2_parity.score(study, registered["claims"]["C2"], plan)
    # Example 0: (0.5 - 1) and (1 - 1), mean -0.25. Example 1 has top-k at 0.25 only: +0.5.
    assert part(outcome, "parity") == pytest.approx(0.125)
    assert measure(outcome, "0.25", "budget", "difference") == pytest.approx(0.0)
    assert any("standard error" in reason for reason in outcome.underpowered)


def test_c3(study_of: Make, registered: dict[str, Any], plan: Plan) -> None:
    rows = []
    for example, full, evicted in ((0, 1.0, (1.0, 0.0, 0.5)), (1, 0.0, (0.5, 0.5, 0.5))):
        rows += [{"setting": "aware", "policy": "full", "example": example, "score": full}]
        rows += [{"setting": "aware", "example": example, "budget": b, "draw": d, "score": s}
                 for b, d, s in ((0.25, 0, evicted[0]), (0.25, 1, evicted[1]), (0.5, 0, evicted[2]))]  # fmt: skip
        rows += [{"setting": "aware", "example": example, "budget": 0.125, "score": 0.0}]
        rows += [{"setting": "aware", "task": "easy", "example": example, "score": 0.0}]
        rows += [{"setting": "aware", "task": "easy", "policy": "full", "example": example, "score": 1.0}]
    outcome = c3_damage.score(study_of(rows), registered["claims"]["C3"], plan)
    # Example 0: budgets 1 - 0.5 and 1 - 0.5, mean 0.5; example 1: -0.5. "easy" has full mean 1 and leaves.
    assert part(outcome, "drop") == pytest.approx(0.0)
    assert part(outcome, "drop_among_full_successes") == pytest.approx(0.5)
    assert outcome.counts["tasks_left_out"] == {"easy": 1.0}


def full_runs(scores: list[float], **more: Any) -> list[dict[str, Any]]:
    return [
        {"policy": "full", "example": number, "score": score} | more for number, score in enumerate(scores)
    ]


def test_c4(study_of: Make, registered: dict[str, Any], plan: Plan) -> None:
    rows = full_runs([1.0, 1.0, 0.0]) + [
        {"example": 0, "draw": 0, "score": 0.0, "signal": 3.0, "logp_mean": -1.0},
        {"example": 0, "draw": 1, "score": 1.0, "signal": 1.0, "logp_mean": -2.0},
        {"example": 1, "score": 1.0, "signal": 2.0, "logp_mean": -3.0},
        {"example": 2, "score": 0.0, "signal": 2.0, "logp_mean": -4.0},
    ]
    outcome = c4_prediction.score(study_of(rows), registered["claims"]["C4"], plan)
    # Weights 1/2, 1/2, 1, 1. Certificate: fails 3 (1/2) and 2 (1) against passes 1 (1/2) and 2 (1): all right but a tie
    # of weight 1 -> (0.75 + 0.5 + 0.5) / 2.25. Doubt: fails 1 (1/2), 4 (1) against 2 (1/2), 3 (1) -> 1.5 / 2.25.
    assert part(outcome, "pooled") == pytest.approx(1.75 / 2.25 - 1.5 / 2.25)
    assert part(outcome, "conditional") == pytest.approx(0.25 / 2.25)


def test_c5(study_of: Make, registered: dict[str, Any], plan: Plan) -> None:
    rows = full_runs([1.0, 1.0, 0.0, 0.0])
    for example, (low, high, signal, logp) in enumerate(
        [(0, 1, 4, -1), (0, 0.5, 3, -4), (1, 0, 2, -2), (0, 0, 1, -3)]
    ):
        rows += [
            {"example": example, "budget": 0.125, "score": float(low), "signal": signal, "logp_mean": logp}
        ]
        rows += [{"example": example, "budget": 0.5, "score": float(high), "seconds_decode": 2.0}]
    outcome = c5_escalation.score(study_of(rows), registered["claims"]["C5"], plan)
    # The top quarter is one run of four: certificate gains 1, confidence 0.5, random 1/4 of (1 + 0.5 - 1 + 0); all per run.
    assert part(outcome, "over_random") == pytest.approx(1 / 4 - 0.5 / 16)
    assert part(outcome, "over_confidence") == pytest.approx(0.5 / 4)
    assert outcome.counts["mean_budget"] == pytest.approx(0.21875)
    assert outcome.counts["seconds_per_run_with"] == pytest.approx(4 + 0.25 * 5)


def test_c6(study_of: Make, registered: dict[str, Any], plan: Plan) -> None:
    rows = full_runs([1.0, 0.0, 1.0, 0.0])
    # example: (signals of two draws, log-probabilities, answers); examples 0 and 2 are cache-induced.
    world = {0: ((5, 1), (-2, -2), ("red", "blue")), 1: ((2, 2), (-3, -1), ("red", "red")),
             2: ((4, 4), (-5, -4), ("red", "red")), 3: ((3, 0), (-1, -1), ("red", "red"))}  # fmt: skip
    for example, (signals, logps, answers) in world.items():
        for draw in (0, 1):
            rows += [
                {
                    "example": example,
                    "draw": draw,
                    "signal": signals[draw],
                    "logp_mean": logps[draw],
                    "answer": answers[draw],
                }
            ]
    rows += [
        {"example": 2, "policy": "topk", "logp_mean": -7.0},
        {"example": 1, "policy": "topk", "logp_mean": -6.0},
    ]
    rows += [{"example": 3, "budget": 0.5, "signal": 9.0}]  # one draw only: no two-run signal
    outcome = c6_attribution.score(study_of(rows), registered["claims"]["C6"], plan)
    # All weights 1/2; 16 pairs. Induced 5, 1, 4, 4 against inherent 2, 2, 3, 0: 4 + 1 + 4 + 4 are right.
    assert part(outcome, "pooled") == pytest.approx(13 / 16)
    # Doubt: induced 2, 2, 5, 4 against 3, 1, 1, 1: 3 + 3 + 4 + 4.
    assert part(outcome, "pooled_over_confidence") == pytest.approx((13 - 14) / 16)
    # Two-run by example: 0 -> (1, 0), 1 -> (0, 2), 2 -> (0, 1), 3 -> (0, 0). Induced 0 beats both, 2 beats 3 only.
    assert part(outcome, "pooled_over_two_run") == pytest.approx(13 / 16 - 3 / 4)
    assert measure(outcome, "streaming", "setting", "pooled/topk_confidence") == 1.0
    assert measure(outcome, "streaming", "setting", "pooled/budget") == 0.5
    assert outcome.counts["failures_without_two_run"] == 1
    assert outcome.counts["pairs"] == 4
    assert outcome.underpowered


def test_c7(study_of: Make, registered: dict[str, Any], plan: Plan) -> None:
    rows = full_runs([1.0, 1.0, 1.0, 0.0])
    for example, (score, signal, logp) in enumerate([(0.0, 4, -1), (0.0, 3, -2), (1.0, 2, -3), (0.5, 1, -4)]):
        rows += [{"example": example, "score": score, "signal": signal, "logp_mean": logp}]
        rows += [
            {
                "example": example,
                "budget": 0.5,
                "score": 1.0 if example else 0.5,
                "signal": -signal,
                "logp_mean": logp,
            }
        ]
    outcome = c7_scheduling.score(study_of(rows), registered["claims"]["C7"], plan)
    # 25 %: gains 1, 1, 0, -0.5; certificate takes 1 of 2, confidence -0.5 of 2, random (1.5 / 4) / 2.
    # 50 %: gains 0.5, 0, 0, -1; the largest -signal is example 3: -1 of 0.5; confidence the same; random (-0.5 / 4) / 0.5.
    mine, chance, sure = (0.5 - 2) / 2, (0.1875 - 0.25) / 2, (-0.25 - 2) / 2
    assert part(outcome, "over_random") == pytest.approx(mine - chance)
    assert part(outcome, "over_confidence") == pytest.approx(mine - sure)
    assert measure(outcome, "all", "pooled", "oracle") == pytest.approx((0.5 + 1) / 2)
    assert measure(outcome, "all", "pooled", "points_over_confidence") == pytest.approx(
        ((1 + 0.5) / 4 + 0) / 2
    )
    assert outcome.curves["fraction"][3] == 0.25
    assert outcome.curves["certificate"][3] == pytest.approx(mine)
