"""X2: the fast simulation against the reference certificate, exact expectations by enumeration, and the whole exhibit."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
import torch
from tests.exhibits.recorded import attention, grid, shrunk

from kvcert.errors import KvcertError
from kvcert.exhibits import clustered, traces, x2_draws, x2_estimator, x2_exact
from kvcert.paper import exhibits as paper
from kvcert.paper.exhibits import x2_estimator as shown
from kvcert.survey import philox
from kvcert.survey.hajek import hajek_certificate
from kvcert.survey.inclusion import TWO32, Design

D64 = torch.float64
INTERVAL = {"level": 0.95, "resamples": 200, "seed": 1}
SMALL = {
    "examples": 4,
    "draws": 400,
    "block": 150,
    "budgets": [0.25, 0.5],
    "pairs": 2,
    "grades": [10, 100, 400],
}


def population(n=60, d=5, seed=3):
    g = torch.Generator().manual_seed(seed)
    pi = (0.02 + 0.5 * torch.rand(n, generator=g, dtype=D64)).clamp(max=1)
    threshold = (pi * TWO32).floor().long()
    threshold[:4] = 2**32
    return (
        2 * torch.randn(2, n, generator=g, dtype=D64),
        threshold,
        torch.randn(n, d, generator=g, dtype=D64) + 3,
    )


def test_uniforms_are_those_of_the_survey():
    found = x2_draws.uniforms(2607214752, 77, 2, 1, 30, range(3, 6))
    for row, draw in enumerate(range(3, 6)):
        expected = philox.uniforms(2607214752, 77, torch.arange(30), 3, 2, draw)
        assert torch.equal(found[row], expected[2, 1])


def test_fast_simulation_is_the_certificate():
    logits, threshold, values = population()
    u32 = x2_draws.uniforms(1, 2, 0, 0, 60, range(8))
    u32[7] = 2**32 - 1  # nothing of the tail is kept
    found = x2_draws.sample(logits, threshold, values, u32, 0.05)
    pi, tail = threshold.double() / TWO32, threshold < 2**32
    for draw, step in itertools.product(range(7), range(2)):
        kept = u32[draw] < threshold
        centre = values[kept & tail].mean(0)
        known = hajek_certificate(logits[step][kept], pi[kept].log(), values[kept], centre, delta=0.05)
        truth = logits[step].softmax(-1) @ values
        assert torch.allclose(found.error[draw, step], known.out - truth, rtol=1e-9, atol=1e-12)
        for name in ("variance", "radius", "guarded", "ess"):
            assert float(getattr(found, name)[draw, step]) == pytest.approx(
                float(getattr(known, name)), rel=1e-9
            )
    assert torch.isinf(found.radius[7]).all()
    assert torch.isinf(found.guarded[7]).all()


def test_where_the_variance_sits_by_hand():
    # Two equal weights, values 0 and 2, o = 1: contributions (1 - pi)/pi / 4.
    design = Design(
        torch.tensor([[2**31, 2**25]]),
        torch.ones(1, 2, dtype=torch.bool),
        torch.tensor([0.5078125], dtype=D64),
    )
    values = torch.tensor([[[0.0], [2.0]]], dtype=D64)
    found = x2_exact.analytic(torch.ones(1, 1, 2, dtype=D64), design, values, [100, 1000])
    assert float(found["linear"]) == pytest.approx((1 + 127) / 4)
    assert float(found["expected"]) == pytest.approx((1 + 127) / 4)
    assert float(found["unseen_100"]) == pytest.approx(127 / 128)
    assert float(found["unseen_1000"]) == 0
    assert float(found["units_100"]) == 1
    assert float(found["r"]) == 0.5 * 128
    assert float(found["ess"]) == 2


def test_enumeration_by_hand_and_against_simulation():
    # One certain unit at 0 and one at 4 with pi = 1/2 and equal weights: o_hat is 0 or 8/3, o = 2.
    logits, values = torch.zeros(2, dtype=D64), torch.tensor([[0.0], [4.0]], dtype=D64)
    found = x2_exact.enumerate_samples(logits, torch.tensor([1.0, 0.5], dtype=D64), values, 0.05)
    assert found["samples"] == 2
    assert found["mse"] == pytest.approx((4 + (2 / 3) ** 2) / 2)
    assert found["bias"] == pytest.approx(2 - 4 / 3)
    assert found["v_hat"] == pytest.approx(0.5 * 0.5 * (2 / 3) ** 2 * (4 / 3) ** 2)
    assert found["linear"] == found["expected"] == found["linear_mse"] == pytest.approx(1.0)
    assert found["empty"] == 0.5
    logits, threshold, values = population(8)
    known = x2_exact.enumerate_samples(logits[0], threshold.double() / TWO32, values, 0.05)
    assert known["samples"] == 16
    assert known["expected"] == pytest.approx(known["linear"], rel=1e-12)
    assert known["total"] == pytest.approx(1, rel=1e-12)
    u32 = x2_draws.uniforms(5, 6, 0, 0, 8, range(20000))
    [drawn, _] = x2_draws.summary([x2_draws.sample(logits, threshold, values, u32, 0.05)], [100])
    assert drawn["mse"] == pytest.approx(known["mse"], rel=0.05)
    assert drawn["v_hat"] == pytest.approx(known["v_hat"], rel=0.05)
    assert drawn["coverage"] == pytest.approx(known["coverage"], abs=0.015)
    assert drawn["guarded"] == pytest.approx(known["guarded"], abs=0.015)
    assert drawn["infinite"] == pytest.approx(known["empty"], abs=0.015)


def test_small_design_keeps_the_highest_score_and_its_expected_size():
    pi = x2_exact.small_design(torch.tensor([0.1, 5.0, 0.2, 0.0, 0.4, 0.3], dtype=D64), 2.0, 1e-6)
    assert float(pi[1]) == 1
    assert float(pi.sum()) == pytest.approx(3, abs=1e-8)
    assert float(pi[3]) == pytest.approx(1e-6, rel=1e-3)


def test_statistics_and_their_clusters():
    rows = pd.DataFrame(
        {"model": "m", "task": ["a"] * 4 + ["b"] * 4, "length": 1, "example": [0, 0, 1, 1] * 2}
    )
    x, y = np.arange(8.0), np.array([3.0, 1, 4, 1, 5, 9, 2, 6])
    assert clustered.measured(rows, clustered.mean(y), INTERVAL).value == y.mean()
    middle = clustered.measured(rows, clustered.median(y), INTERVAL)
    assert middle.value == 3
    assert middle.low <= middle.value <= middle.high
    both = np.column_stack([np.ones(8), x])
    assert clustered.measured(rows, clustered.regression(both, y, 1), INTERVAL).value == pytest.approx(
        np.polyfit(x, y, 1)[0]
    )
    # Values that do not vary between clusters have an interval of no width.
    flat = clustered.measured(rows, clustered.mean(np.array([0.0, 1] * 4)), INTERVAL)
    assert flat.low == flat.high == 0.5


def test_the_exhibit_from_traces_to_figure(tmp_path):
    config = grid(tmp_path)
    root = shrunk(tmp_path, "X2", **SMALL)
    lines = []
    x2_estimator.measure(config, root, lines.append)
    assert len(lines) == 4
    results = tmp_path / "results"
    outcome = json.loads((results / "exhibits" / "X2.json").read_text())
    found = paper.load(results, "X2")
    assert outcome["registration"]["status"] == "not registered"
    assert {entry["outcome"] for entry in outcome["expectations"]} <= {
        "as expected",
        "not as expected",
        "not measured",
    }
    assert found.value("X2.analytic")["value"] < 1e-9
    assert found.value("X2.enumerated")["value"] < 1e-9
    drawn, exact = found.rows(), found.rows("analytic")
    assert len(drawn) == 4 * 2 * 2 * 2 * 2  # examples, pairs, steps, settings, budgets
    assert len(exact) == 4 * 4 * 2 * 2 * 2
    assert set(drawn["draws"]) == {400}
    # A unit of the simulation carries the same exact figures as in the analytic part.
    both = drawn.merge(exact, on=[*traces.KEY, "layer", "head", "step", "setting", "budget"])
    assert len(both) == len(drawn)
    assert np.allclose(both["linear_x"], both["linear_y"], rtol=1e-12)
    table = shown.table(found)
    assert table.frame["units"].iloc[0] == len(drawn) / 2
    assert math.isclose(
        table.frame["coverage"].iloc[0], drawn.loc[drawn["budget"] == 0.25, "coverage"].mean()
    )
    assert len(shown.draw(found).axes) == 4
    before = drawn.copy()
    x2_estimator.measure(config, root, lines.append)
    pd.testing.assert_frame_equal(before, paper.load(results, "X2").rows())


def test_what_is_read_is_what_was_traced(tmp_path):
    config = grid(tmp_path)
    found = list(traces.read(config, 20))
    assert [(trace.key["task"], trace.key["example"]) for trace in found] == [
        ("niah", 0), ("niah", 1), ("facts", 0), ("facts", 1),
    ]  # fmt: skip
    raw = attention(0, 150)
    assert torch.equal(found[0].values, raw["values"].double())
    assert torch.equal(found[0].scores["streaming"], raw["score.streaming.snapkv"])
    q, k = raw["queries"].double()[1, 2, 2], raw["keys"].double()[1, 1, 17]
    assert float(found[0].logits([2])[1, 1, 0, 17]) == pytest.approx(float(q @ k) / 8**0.5)
    assert [trace.key["example"] for trace in traces.read(config, 2)] == [0, 1]


def test_missing_traces_are_named(tmp_path):
    config = grid(tmp_path, write=False)
    with pytest.raises(KvcertError, match=r"niah.*safetensors: no readable trace.*run\.trace_examples"):
        x2_estimator.measure(config, shrunk(tmp_path, "X2", **SMALL), print)
    assert not (tmp_path / "results" / "exhibits").exists()
