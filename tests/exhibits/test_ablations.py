"""The ablations: recomputation against the logs' own figures, the panel and the radius against their sources."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from own_root import ROOT, expectation, make
from tests.synthetic import write_logs
from tests.tiny_grid import save_tiny_model, tiny_config

from kvcert.claims import frames
from kvcert.claims.bootstrap import Plan
from kvcert.claims.score import score_one
from kvcert.exhibits import ablations, variants
from kvcert.exhibits.ablation_rows import study_rows
from kvcert.files import write_atomic
from kvcert.grid import shards
from kvcert.paper import exhibits as paper
from kvcert.paper.exhibits import ablations as paper_ablations
from kvcert.registry import load_claims
from kvcert.runner.panel import panel_layers
from kvcert.runner.shard import run_shard
from kvcert.survey.hajek import bernstein_radius, guard

PARAMETERS = {
    "tasks": ["facts"],
    "examples": 1,
    "layers": [1, 2],
    "steps": [1, 3, 12],
    "floors": [0.0, 0.05, 1.0],
    "deltas": [0.01, 0.05],
    "forms": ["registered", "guarded", "no range term", "standard error"],
    "reruns": {"rho": [0.0], "epsilon": [1e-2]},
}
IDS = [
    "C1", "C6", "heads", "layers", "layers-attribution", "window", "floor", "delta", "guarded", "range", "standard-error",
    "rho", "epsilon",
]  # fmt: skip


def test_radius_forms_are_those_of_the_survey():
    variance, bound, p = np.array([0.3, 0.0, 2.0]), np.array([0.1, 0.4, 0.0]), np.array([0.2, 0.9, 1.0])
    plain = bernstein_radius(torch.tensor(variance), torch.tensor(bound), 0.05).numpy()
    np.testing.assert_allclose(variants.radius("registered", variance, bound, p, 0.05), plain, rtol=1e-15)
    guarded = guard(torch.tensor(plain), torch.tensor(p)).numpy()
    np.testing.assert_allclose(variants.radius("guarded", variance, bound, p, 0.05), guarded, rtol=1e-15)
    assert np.isinf(guarded[2])
    np.testing.assert_allclose(variants.radius("standard error", variance, bound, p, 0.05) ** 2, variance)
    np.testing.assert_allclose(
        variants.radius("no range term", variance, 0 * bound, p, 0.05),
        variants.radius("registered", variance, 0 * bound, p, 0.05),
    )
    with pytest.raises(ValueError, match="no radius"):
        variants.radius("other", variance, bound, p, 0.05)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 9])
def test_layers_are_spaced_as_the_panel_is(count):
    assert variants.evenly(list(range(6)), count) == panel_layers(6, count)
    assert variants.evenly([0, 6, 12, 17, 23, 29], 2) == [0, 29]


def consistent(table: str, shard: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Planted radii that follow from variance alone, as the recomputation needs them."""
    if table == "heads":
        frame["bound"] = 0.0
        frame["variance"] = frame["radius"] ** 2 / (2 * np.log(2 / 0.05))
    return frame


@pytest.fixture(scope="module")
def planted(base_config, tmp_path_factory):
    """(results, config) of scored synthetic logs with two query heads a KV head, in which the claims have values."""
    from kvcert import config as configuration

    results = tmp_path_factory.mktemp("planted")
    config = configuration.resolve(base_config)
    config["study"]["tasks"] = [task | {"examples": 8} for task in config["study"]["tasks"][:3]]
    config["study"]["max_new_tokens"] = 6
    write_logs(results, config, seed=3, hook=consistent, coverage=0.8, layers=3, wide=1)
    for claim in ("C1", "C6"):
        score_one(claim, results, ROOT, config)
    return results, config


def test_the_registered_choice_reproduces_the_scored_claims(planted):
    results, config = planted
    claims = load_claims(ROOT)
    study = frames.load(results, config, claims["common"])
    choices = variants.listed(config["study"]["constants"], PARAMETERS)
    frame = pd.DataFrame(study_rows(study, claims["claims"], choices, Plan(0.95, 20, 1)))
    base = frame[frame["factor"] == "registered"]
    assert ablations.reproduced(results, base, "C1") < 1e-9
    assert ablations.reproduced(results, base, "C6") < 1e-5
    # A choice that changes nothing gives the same numbers, one that changes the radius gives others.
    same = frame[(frame["factor"] == "radius") & (frame["value"] == "registered")]
    assert same["estimate"].tolist() == base["estimate"].tolist()
    assert ablations.change(frame, "radius", "standard error", "C1b") < -0.1
    assert ablations.change(frame, "radius", "guarded", "C1b") > 0
    # A certificate that is off by a constant is not the claim's: the comparison can fail.
    shifted = base.assign(estimate=base["estimate"] + 0.01)
    assert ablations.reproduced(results, shifted, "C1") == pytest.approx(0.01)


def test_windows_and_panels_by_hand(planted):
    results, config = planted
    shard = shards(config)[0]["shard"]
    heads = pd.read_parquet(results / "heads" / f"{shard}.parquet")
    run = heads["run_id"].iloc[0]
    some = heads[(heads["run_id"] == run) & heads["panel"] & (heads["step"] <= 3) & (heads["layer"] == 5)]
    choices = variants.listed(config["study"]["constants"], PARAMETERS)
    base = choices[0]
    one = [variants.replace(base, layers=1, signal_steps=3, coverage_steps=3, floor=0.5)]
    (found,) = variants.recompute([results / "heads" / f"{shard}.parquet"], pd.Series([run]), one)
    relative = some.assign(
        c=some["radius"] / some["norm"].clip(lower=0.5), e=some["error"] / some["norm"].clip(lower=0.5)
    )
    steps = relative.groupby("step")[["c", "e"]].mean()
    assert found.loc[0, "signal"] == pytest.approx(steps["c"].mean(), rel=1e-5)
    assert found.loc[0, "C1a"] == pytest.approx((steps["e"] <= steps["c"]).mean())
    assert found.loc[0, "C1b"] == pytest.approx((some["error"] <= some["radius"]).mean())


def test_measured_on_a_tiny_model(tmp_path, tokenizer, cache):
    model = save_tiny_model(tmp_path / "model", tokenizer)
    tasks = [{"name": "facts", "length": 320, "examples": 2, "fail_below": 0.5, "params": {}}]
    config = tiny_config(model, tmp_path / "results", cache, tasks=tasks, max_new_tokens=4)
    for spec in shards(config):
        run_shard(spec, config["run"], progress=False)
    counts = sum(len(pd.read_parquet(p)) for p in (tmp_path / "results" / "runs").glob("*.parquet"))
    write_atomic(tmp_path / "results" / "integrity.json", json.dumps({"ok": True, "runs": counts}))
    root = make(
        tmp_path / "root",
        {
            "ablations": {
                "parameters": PARAMETERS,
                "expectations": [expectation(f"ablations-{i}") for i in IDS],
            }
        },
    )
    for claim in ("C1", "C6"):
        score_one(claim, tmp_path / "results", ROOT, config)
    ablations.measure(config, root, lambda line: None)
    found = paper.load(tmp_path / "results", "ablations")
    rows = found.rows()
    # Everything is inherent in a model that knows nothing: coverage is reproduced, attribution has no value.
    assert found.value("ablations-C1")["value"] < 1e-9
    assert found.value("ablations-C6")["outcome"] == "not measured"
    assert set(rows["of"]) == {"default run", "rerun examples"}
    rho = rows[(rows["factor"] == "rho") & (rows["measure"] == "C1b")]
    assert set(rho["value"]) == {"0", "0.5"}
    assert (rho["runs"] == 4).all()  # one example, two settings, two draws, each budget on its own
    table = paper_ablations.table(found)
    assert len(table.frame) == rows[["factor", "value"]].drop_duplicates().shape[0]
    paper_ablations.draw(found)
