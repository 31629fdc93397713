"""Every policy under every scorer in both settings, end to end: sizes, certificates, names, the gate, the claims."""

from __future__ import annotations

import math
import shutil

import pyarrow.parquet as pq
import pytest
from tests.policies.conftest import ALL_SCORERS, BUDGET, OTHER, SCORED

from kvcert import policies
from kvcert.claims import score_all
from kvcert.config_checks import DETERMINISTIC
from kvcert.grid import CERTIFIED, OWN_SCORE, SCORELESS, certified, label, shards
from kvcert.logs import integrity
from kvcert.paper import figures, tables
from kvcert.paper.figures.style import house_style
from kvcert.paper.logs import Logs

CELLS = [(policy, scorer) for policy in SCORED for scorer in ALL_SCORERS]
CELLS += [(policy, OWN_SCORE.get(policy, "none")) for policy in OTHER]


def test_every_policy_is_in_the_matrix():
    assert {"full", *SCORED, *OTHER} == set(policies.POLICIES)
    named = {*DETERMINISTIC, *CERTIFIED, *SCORELESS, *OWN_SCORE}
    assert named <= set(policies.POLICIES)
    assert not CERTIFIED & {*DETERMINISTIC, *SCORELESS}


@pytest.mark.parametrize("setting", ["aware", "streaming"])
@pytest.mark.parametrize(("policy", "scorer"), CELLS)
def test_cell(policy, scorer, setting, matrix):
    _, config, runs = matrix
    constants = config["study"]["constants"]
    name = label({"policy": policy, "params": SCORED.get(policy) or {}})
    stem = f"tiny/niah/400/0/{setting}/{scorer}/{name}/{BUDGET:g}/0"
    run = runs[f"{stem}/free"]
    n = run["context_tokens"]
    capacity = math.floor(BUDGET * n + 0.5)
    assert run["policy"] == name
    assert run["valid"]
    assert run["capacity"] == capacity
    assert not run["identity"]
    free = capacity - constants["n_sink"] - constants["n_recent"]
    if policy in DETERMINISTIC or policy == "random":
        assert run["kept_tokens"] == capacity
    else:
        # The mean of 2 layers x 2 KV heads; the tail's variance is at most its expected size.
        assert abs(run["kept_tokens"] - capacity) <= 5 * math.sqrt((free - int(0.5 * free)) / 4)
        assert run["kept_tokens"] != capacity or run["kept_bytes"]
    assert (f"{stem}/forced" in runs) == (policy in CERTIFIED) == certified(name)
    if policy not in CERTIFIED:
        assert run["signal"] is None
        assert run["tail_expected"] is None
        return
    for found in (run, runs[f"{stem}/forced"]):
        assert found["signal"] is not None
        assert math.isfinite(found["signal"])
        assert found["signal"] > 0
    if scorer in ("snapkv", "h2o"):
        assert run["tail_expected"] == pytest.approx(free - int(0.5 * free), abs=1e-3)


def test_uniform_is_what_its_name_says(matrix):
    """The uncorrected row keeps the very tokens of the Poisson row; the uniform one has the registered tail size."""
    _, _, runs = matrix
    for setting in ("aware", "streaming"):
        pair = [
            runs[f"tiny/niah/400/0/{setting}/snapkv/{policy}/{BUDGET:g}/0/free"]
            for policy in ("poisson", "uncorrected")
        ]
        assert pair[0]["kept_tokens"] == pair[1]["kept_tokens"]
        assert pair[0]["kept_bytes"] > pair[1]["kept_bytes"]  # log pi is counted


def test_the_gate_passes_and_versions_name_kvpress(matrix):
    results, config, runs = matrix
    (spec,) = shards(config)
    found = integrity.check_shard(results, spec)
    assert found["runs"] == len(runs)
    assert found["invalid"] == 0
    assert '"kvpress":"0.5.' in next(iter(runs.values()))["versions"]


def test_claims_tables_and_figures_cope(matrix, tmp_path, root):
    """The claims read their own rows only; tables list every policy by its label and scorer; the figure draws them."""
    results, config, _ = matrix
    copy = tmp_path / "results"
    shutil.copytree(results, copy)
    config = config | {"run": config["run"] | {"results": str(copy)}}
    integrity.check(copy, config)
    claims = score_all(copy, root, config)
    assert all(claim["verdict"] for claim in claims)
    coverage = next(claim for claim in claims if claim["claim"] == "C1")
    assert coverage["n_runs"] <= 2  # poisson under the primary scorer, one forced run a setting
    (path,) = [p for p in tables.write_all(copy, stems=["accuracy"]) if p.suffix == ".csv"]
    text = path.read_text()
    assert all(name in text for name in ("mixture[lam=0.3]", "adakv[safeguard=0.2]", "kvpress_lagkv", "lru"))
    picture = drawn(Logs(copy, config))
    (legend,) = picture.legends
    left_out = len(SCORED) * (len(ALL_SCORERS) - 1)
    assert legend.get_title().get_text().startswith(f"{left_out} further rows")
    # With two scorers each row has a line of its own, named for people.
    logs = Logs(copy, config)
    logs.free = logs.free[logs.free["scorer"].isin(["none", "snapkv", "h2o"])]
    listed = [text.get_text() for text in drawn(logs).axes[0].get_yticklabels()]
    assert len(listed) == 2 * len(SCORED) + len(SCORELESS) - 1
    assert {"top-k, snapkv", "mixture λ=0.3, h2o", "sinks + recent"} <= set(listed)


def drawn(logs):
    """The figure `accuracy`, drawn; its legend and its panels lie inside the page."""
    with house_style():
        figure = figures._drawn(logs, "accuracy")
        figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    boxes = [legend.get_window_extent(renderer) for legend in figure.legends]
    boxes += [panel.get_tightbbox(renderer) for panel in figure.axes]
    assert all(box.x0 >= -1 and box.x1 <= figure.bbox.width + 1 for box in boxes)
    assert all(panel.get_window_extent(renderer).height > 60 for panel in figure.axes)
    return figure


def test_shard_tables_hold_the_labels(matrix):
    results, config, _ = matrix
    (spec,) = shards(config)
    heads = pq.read_table(results / "heads" / f"{spec['shard']}.parquet", columns=["run_id"])
    ids = set(heads["run_id"].to_pylist())
    assert any("/mixture[lam=0.3]/" in name for name in ids)
    assert all(certified(name.split("/")[6]) for name in ids)
