"""config/baselines.yaml, and what the configuration refuses about rows with baselines."""

from __future__ import annotations

import copy

import pytest
from tests.tiny_grid import ROOT

from kvcert import config
from kvcert.errors import KvcertError
from kvcert.estimate import seconds
from kvcert.grid import expand_rows, label, shards
from kvcert.policies import POLICIES


@pytest.fixture(scope="module")
def overlay():
    return config.load(ROOT / "config/config.yaml", ROOT / "config/baselines.yaml")


def test_the_overlay_holds_every_policy_and_leaves_the_default_folders_alone(overlay):
    rows = expand_rows(overlay["study"])
    assert {row["policy"] for row in rows} == set(POLICIES)
    assert overlay["run"]["results"] == "results-baselines"
    assert overlay["run"]["figures"] == "figures-baselines"
    default = config.load(ROOT / "config/config.yaml")
    for key in ("seed", "models", "constants", "scorer", "settings"):
        assert overlay["study"][key] == default["study"][key]
    assert {label(row) for row in rows} >= {"mixture[lam=0.1]", "mixture[lam=0.5]", "adakv[safeguard=0.2]"}
    assert next(row for row in rows if row["policy"] == "lru")["scorer"] == "last_used"
    assert sum(seconds(spec, overlay["run"]) for spec in shards(overlay)) / 2 <= 600, (
        "over ten minutes on two cores"
    )


@pytest.mark.parametrize(
    ("row", "match"),
    [
        (
            {"policy": "lru", "scorer": "snapkv"},
            r"rows\[0\].scorer: lru has a score of its own \(last_used\)",
        ),
        ({"policy": "lru", "draws": 2}, r"rows\[0\].draws: lru has no randomness"),
        ({"policy": "adakv", "params": {"safeguard": 0.2}, "draws": 2}, "adakv has no randomness"),
        ({"policy": "adakv"}, r"safeguard: must be a number from 0 to 1, not None"),
        ({"policy": "mixture", "params": {"lam": 0}}, r"lam: must be a number from 1e-06 to 1, not 0"),
        ({"policy": "mixture", "params": {"lam": 1.5}}, "lam: must be a number"),
        ({"policy": "mixture", "params": {"lam": 0.5, "rho": 1}}, "params.rho: unknown; mixture takes lam"),
        ({"policy": "uniform", "params": {"lam": 0.5}}, "uniform takes no parameters"),
    ],
)
def test_rows_that_do_not_fit_are_refused(row, match, overlay):
    changed = copy.deepcopy(overlay)
    changed["study"]["rows"] = [{"budgets": [0.25], **row}, {"policy": "full"}]
    with pytest.raises(KvcertError, match=match) as caught:
        config.check_known(config.resolve(changed))
    assert "\n" not in str(caught.value)
