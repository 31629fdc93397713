"""X3: the regression, the redrawing and the replay against what is known exactly, and the whole on a tiny model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from own_root import expectation, make
from tests.tiny_grid import save_tiny_model, tiny_config

from kvcert.claims.bootstrap import Plan
from kvcert.exhibits import grids, redraw, referee, repair, units, x3_assumption, x3_outcome
from kvcert.grid import shards
from kvcert.paper import exhibits as paper
from kvcert.paper.exhibits import x3_assumption as paper_x3
from kvcert.policies import get
from kvcert.runner.shard import run_shard
from kvcert.survey.hajek import hajek_certificate

CONSTANTS = {
    "n_sink": 2, "n_recent": 4, "rho": 0.5, "epsilon": 1e-6, "delta": 0.05, "m_min": 2, "window": 4, "pooling": 7,
}  # fmt: skip
PLAN = Plan(0.95, 50, 1)


@pytest.fixture(scope="module")
def about():
    """Recorded attention of 2 layers, 2 heads, 3 steps, 40 tokens."""
    generator = torch.Generator().manual_seed(0)
    trace = {
        "0/keys": torch.randn(2, 2, 40, 8, generator=generator),
        "0/values": torch.randn(2, 2, 40, 8, generator=generator),
        "0/queries": 2 * torch.randn(2, 4, 3, 8, generator=generator),
        "0/score.aware.snapkv": torch.rand(2, 2, 40, generator=generator, dtype=torch.float64),
    }
    return redraw.recorded(trace, "score.aware.snapkv", 0)


@pytest.mark.parametrize("make_design", [redraw.deployed, redraw.oracle])
def test_a_redraw_is_the_reference_certificate(about, make_design):
    design = make_design(about, 16, CONSTANTS)
    u32 = torch.randint(0, 2**32, (3, 2, 2, 3, 40), generator=torch.Generator().manual_seed(1))
    found = redraw.redraw(about, design, u32, CONSTANTS)
    truth = about.share @ about.values
    for draw, layer, head, step in [(0, 0, 0, 0), (1, 1, 0, 2), (2, 0, 1, 1)]:
        threshold = design.threshold.expand(2, 2, 3, 40)[layer, head, step]
        keep = u32[draw, layer, head, step] < threshold
        log_pi = design.log_pi.expand(2, 2, 3, 40)[layer, head, step][keep].double()
        values = about.values[layer, head][keep]
        centre = values[log_pi < 0].mean(0)
        one = hajek_certificate(about.logits[layer, head, step][keep], log_pi, values, centre)
        at = (layer, head, step, draw)
        error = (one.out - truth[layer, head, step]).norm()
        for name, value in {
            "error": error,
            "radius": one.radius,
            "guarded": one.guarded,
            "variance": one.variance,
        }.items():
            assert getattr(found, name)[at].item() == pytest.approx(value.item(), rel=1e-6)


def test_the_deployed_design_is_the_policys(about):
    u32 = torch.randint(0, 2**32, about.z.shape, generator=torch.Generator().manual_seed(2))
    chosen = get("poisson").select(about.z, 16, CONSTANTS, u32)
    design = redraw.deployed(about, 16, CONSTANTS)
    assert torch.equal(design.log_pi[:, :, 0], chosen.log_pi)
    assert torch.equal(u32 < design.threshold[:, :, 0], chosen.keep)


def test_the_oracle_keeps_m_and_bounds_r(about):
    design, plain = redraw.oracle(about, 16, CONSTANTS), redraw.deployed(about, 16, CONSTANTS)
    for each in (design, plain):  # the whole sample size is the capacity, units at probability 1 among it
        total = each.expected + (~each.tail).sum(-1)
        assert torch.allclose(total, torch.full_like(total, 16.0), atol=1e-6)
    u32 = torch.zeros(1, 2, 2, 3, 40, dtype=torch.int64)
    r = redraw.redraw(about, design, u32, CONSTANTS).r * design.expected
    assert (r <= 1.0 + 1e-6).all()  # a_i / (pi_i sum a) is the tail's mass over m where no unit is capped
    with_score = redraw.redraw(about, plain, u32, CONSTANTS)
    assert (with_score.r * plain.expected).max() > 1.5
    assert (redraw.redraw(about, design, u32, CONSTANTS).exact < with_score.exact).all()


def planted(slope_m: float = -1.5, slope_n: float = 0.5, lengths=(400, 800)) -> units.Units:
    """Units whose log R follows given slopes exactly."""
    runs = pd.DataFrame(
        [
            {"task": "t", "length": n, "example": e, "setting": s, "policy": "poisson", "budget": b, "draw": 0,
             "regime": "forced", "score": np.nan, "stratum": f"t/{n}", "cluster": f"t/{n}/{e}"}
            for n in lengths for e in range(4) for s in ("aware", "streaming") for b in (0.25, 0.5)
        ]
    )  # fmt: skip
    heads = pd.DataFrame({"run": np.repeat(np.arange(len(runs)), 4), "step": 1, "layer": 0, "head": 0})
    budget, length = runs["budget"].to_numpy()[heads["run"]], runs["length"].to_numpy()[heads["run"]]
    heads["step"] = np.tile([1, 1, 2, 2], len(runs))
    heads["head"] = np.tile([0, 1, 0, 1], len(runs))
    heads["m"], heads["tail"] = 0.5 * budget * length, (1 - 0.5 * budget) * length
    heads["r_max"] = np.exp(1.0 + slope_m * np.log(heads["m"]) + slope_n * np.log(heads["tail"]))
    return units.Units(runs, heads.assign(r_kept=0.0, radius=1.0, guarded=2.0, error=0.5, norm=1.0))


def test_slopes_are_recovered_and_need_more_than_one_length():
    table = referee.slopes(planted(), PLAN).set_index(["level", "model", "slope"])["value"]
    for level in ("unit", "largest of a step"):
        assert table[level, "joint", "log m"] == pytest.approx(-1.5)
        assert table[level, "joint", "log n_tail"] == pytest.approx(0.5)
        # At a fixed budget m and n_tail grow together: 1 + slope_m + slope_n.
        assert table[level, "fixed budget", "log n_tail"] == pytest.approx(0.0, abs=1e-9)
    alone = referee.slopes(planted(lengths=(400,)), PLAN).set_index(["level", "model", "slope"])["value"]
    assert np.isnan(alone["unit", "fixed budget", "log n_tail"])


def test_sizes_count_units_and_steps_above_the_limit():
    found = planted()
    found.heads.loc[
        (found.heads["run"] == 0) & (found.heads["step"] == 2) & (found.heads["head"] == 1), "r_max"
    ] = 1e6
    table = referee.sizes(found, 1000.0).set_index(["length", "budget"])
    assert table.loc[(400, 0.25), "share_above"] == 1 / 32
    assert table.loc[(400, 0.25), "steps_above"] == 1 / 16
    assert table.loc[(800, 0.5), "share_above"] == 0


def test_replay_separates_retained_missed_and_none():
    found = planted()
    heads = found.heads
    heads["r_max"], heads["r_kept"], heads["m"] = 0.5, 0.1, 100.0
    heads.loc[0:9, ["r_max", "r_kept"]] = [2.0, 2.0]  # retained
    heads.loc[0:4, ["error"]] = 1.5  # plain radius 1 fails, guarded 2 covers
    heads.loc[10:29, ["r_max", "error"]] = [2.0, 3.0]  # missed: neither covers
    heads.loc[0:1, ["r_max", "r_kept"]] = 20.0
    table = repair.replay(found, 1000.0, PLAN).set_index(["group", "radius"])
    value, count = table["value"], table["units"]
    assert count["R > 1, retained", "radius"] == 10
    assert value["R > 1, retained", "radius"] == 0.5
    assert value["R > 1, retained", "guarded"] == 1.0
    assert value["R > 1, missed", "radius"] == value["R > 1, missed", "guarded"] == 0.0
    assert value["no token with R > 1", "radius"] == 1.0
    assert count["R m > 1000, retained", "radius"] == 2


def test_the_verdict_follows_the_referees_rule():
    def frames(low: float) -> dict[str, pd.DataFrame]:
        rows = [
            {"level": "unit", "model": m, "slope": "log n_tail", "value": 0.1, "low": low, "high": 1.0}
            for m in ("joint", "fixed budget")
        ]
        return {"slopes": pd.DataFrame(rows)}

    small, large = {"value": 0.0}, {"value": 0.25}
    assert "not contradicted" in x3_outcome.judge(frames(-0.1), small, 900.0, 1000)
    assert "grows with n_tail at fixed m and at a fixed budget" in x3_outcome.judge(
        frames(0.01), small, 900.0, 1000
    )
    assert "fails" in x3_outcome.judge(frames(-0.1), large, 2000.0, 1000)
    assert "25 % of the units" in x3_outcome.judge(frames(-0.1), large, 2000.0, 1000)


def test_shards_are_ordinary_and_named_for_their_exhibit(tmp_path, base_config):
    from kvcert import config as configuration

    config = configuration.resolve(base_config)
    reruns = {"tasks": ["facts", "niah"], "examples": 3, "reruns": {"rho": [0.0], "epsilon": [1e-4]}}
    root = make(tmp_path, {"ablations": {"parameters": reruns}})
    found = grids.specs("ablations", config, root)
    assert [spec["shard"] for spec in found] == [
        f"ablations.{value}.smollm2-135m.{task}.768.0"
        for value in ("rho0", "epsilon0.0001")
        for task in ("niah", "facts")
    ]
    default = {spec["shard"]: spec for spec in shards(config)}["smollm2-135m.niah.768.0"]
    changed = {key for key in default if found[0][key] != default[key]}
    assert changed == {"shard", "constants", "rows", "examples", "task"}
    assert found[0]["constants"] == default["constants"] | {"rho": 0.0}
    assert found[0]["rows"] == [row for row in default["rows"] if row["policy"] in ("full", "poisson")]
    assert grids.specs("X1", config, root) == []
    assert grids.operational(config | {"run": config["run"] | {"trace_examples": 0}})["trace_examples"] == 1


IDS = [
    "limit", "growth", "growth-budget", "slope-m", "oracle-coverage", "oracle-variance", "replay-plain", "replay-guarded",
    "replay-missed", "mixture-coverage", "mixture-width", "mixture-score",
]  # fmt: skip


def test_measured_on_a_tiny_model(tmp_path, tokenizer, cache):
    model = save_tiny_model(tmp_path / "model", tokenizer)
    tasks = [{"name": "facts", "length": 320, "examples": 2, "fail_below": 0.5, "params": {}}]
    config = tiny_config(model, tmp_path / "results", cache, tasks=tasks)
    for spec in shards(config):
        run_shard(spec, config["run"], progress=False)
    parameters = {
        "tasks": [{"name": "facts", "fail_below": 0.5, "params": {}}],
        "lengths": [288, 448], "examples": 2, "settings": ["aware", "streaming"], "max_new_tokens": 4,
        "rows": [{"policy": "full"}, {"policy": "poisson", "budgets": [0.25, 0.5]},
                 {"policy": "mixture", "budgets": [0.25, 0.5], "params": {"lam": 0.3}}],
        "limit": 1000, "draws": 2, "lam": 0.3, "worth": {"coverage_gain": 0.01, "score_loss": 0.02},
    }  # fmt: skip
    expectations = [expectation(f"X3-{name}") for name in IDS]
    root = make(tmp_path / "root", {"X3": {"parameters": parameters, "expectations": expectations}})
    lines: list[str] = []
    x3_assumption.measure(config, root, lines.append)
    found = paper.load(tmp_path / "results", "X3")
    about, sizes = found.outcome["about"], found.rows()
    specs = grids.specs("X3", config, root)
    assert [spec["shard"] for spec in specs] == ["X3.tiny.facts.288.0", "X3.tiny.facts.448.0"]
    assert about["lengths"] == [288, 448]
    assert about["steps"] == sizes["steps"].sum()
    assert sizes["units"].sum() == about["units"] == 2 * 2 * about["steps"]  # two layers, two KV heads
    oracle = found.rows("oracle").set_index(["budget", "design"])
    assert (oracle.xs("oracle", level="design")["rm_max"] <= 1 + 1e-6).all()
    designs = found.rows("designs").set_index(["policy", "budget"])
    assert (designs.loc["poisson", "coverage_change"] == 0).all()
    assert (designs.loc["mixture[lam=0.3]", "rm_max"] <= 448 / 0.3).all()
    assert found.value("X3-limit")["value"] == sizes["rm_max"].max()
    assert {row["source"] for row in found.rows("replay").to_dict("records")} == {
        "default run",
        "own lengths",
    }
    assert len(paper_x3.table(found).frame) > 40
    paper_x3.draw(found)
    # The shards are there: measuring again runs none of them and finds the same.
    x3_assumption.measure(config, root, lines.append)
    assert sum("already there" in line for line in lines) == 2
    pd.testing.assert_frame_equal(sizes, paper.load(tmp_path / "results", "X3").rows())
