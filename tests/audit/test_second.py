"""The second computation equals the first to 1e-9: all seven claims, on plain logs and on hostile ones."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_project import small_study

from kvcert import registry
from kvcert.audit.derive import difference
from kvcert.audit.gather import gather
from kvcert.audit.second import compute
from kvcert.audit.second.attribution import apart
from kvcert.audit.second.numbers import auc, gate, jackknife, spearman
from kvcert.audit.statements import disagreements
from kvcert.claims import frames
from kvcert.claims.bootstrap import Plan
from kvcert.claims.outcome import as_json
from kvcert.claims.score import MODULES
from kvcert.claims.text import token_f1
from synthetic import write_logs

ROOT = Path(__file__).resolve().parents[2]


def ties(table: str, shard: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Signals, confidences and answers take few values."""
    if table == "runs":
        frame["signal"] = [None if v is None else float(np.round(2 * v) / 2) for v in frame["signal"]]
        frame["logp_mean"] = frame["logp_mean"].round()
        frame["answer"] = frame["answer"].str.split().str[0]
    if table == "steps":
        for name in ("certificate", "error"):
            frame[name] = [None if v is None else float(np.round(v, 1)) for v in frame[name]]
    return frame


def numbers_missing(table: str, shard: str, frame: pd.DataFrame) -> pd.DataFrame:
    """NaN, null and infinity wherever the schema lets them in."""
    rng = np.random.default_rng(len(frame))

    def some(name: str, value: Any, share: float) -> None:
        hit = rng.random(len(frame)) < share
        frame[name] = pd.Series(
            [value if h else v for h, v in zip(hit, frame[name], strict=True)], dtype=object
        )

    if table == "runs":
        free = (frame["regime"] == "free").to_numpy()
        for name, value in (
            ("signal", np.nan),
            ("signal", None),
            ("signal_guarded", None),
            ("signal", np.inf),
        ):
            some(name, value, 0.05)
        some("evicted_mass", None, 0.1)
        for name, share in (("score", 0.04), ("logp_mean", 0.03)):
            hit = free & (rng.random(len(frame)) < share)
            frame[name] = [np.nan if h else v for h, v in zip(hit, frame[name], strict=True)]
        frame["valid"] = rng.random(len(frame)) > 0.05
        frame["identity"] = frame["identity"] | (rng.random(len(frame)) < 0.05)
    if table == "steps":
        some("certificate", np.nan, 0.05)
        some("certificate", np.inf, 0.05)
        some("error", np.nan, 0.05)
        frame["units"] = np.where(rng.random(len(frame)) < 0.05, 0, frame["units"])
    if table == "heads":
        for name, value in (
            ("radius", np.nan), ("radius", np.inf), ("error", np.nan), ("guarded", np.nan), ("ess_full", np.nan),
            ("m", np.nan),
        ):  # fmt: skip
            frame.loc[rng.random(len(frame)) < 0.04, name] = value
        frame.loc[rng.random(len(frame)) < 0.05, "m"] = 400.0  # everything kept: no coverage
    return frame


WORLDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ties": {"hook": ties},
    "numbers missing": {"hook": numbers_missing},
    "every full run passes": {"full_rate": 1.0, "line": -9.0},
    "every full run fails": {"full_rate": 0.0},
    "nothing fails": {"full_rate": 1.0, "line": 99.0},
    "a constant certificate": {"signal": 0.5},
    "one example": {"examples": 1},
    "poor coverage": {"coverage": 0.5, "confidence": -1.0, "two_run": 0.9},
}


@pytest.fixture(scope="module", params=WORLDS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Logs of one world, its claims scored, and the folder with the second computation's tables."""
    options = {"layers": 2, "kv_heads": 1} | WORLDS[request.param]
    root = tmp_path_factory.mktemp("world")
    config = small_study(root, examples=options.pop("examples", 8), tasks=slice(1, 4))
    results, folder = root / "results", root / "tables"
    folder.mkdir()
    write_logs(results, config, 11, **options)
    claims = registry.load_claims(root)
    gather(results, config, folder, {"policy": "poisson", "regime": "forced"})
    study, first = frames.load(results, config, claims["common"]), {}
    for name, module in MODULES.items():
        outcome = import_module(f"kvcert.claims.{module}").score(
            study, claims["claims"][name], Plan(0.95, 20, 1)
        )
        first[name] = as_json(claims["claims"][name], outcome, {"status": "exploratory"})
    return request.param, first, folder, claims, config


@pytest.mark.parametrize("name", MODULES)
def test_it_equals_the_first(world: Any, name: str) -> None:
    kind, first, folder, claims, config = world
    found = compute(folder, name, claims, config["study"]["scorer"])
    claim = first[name]
    assert disagreements(claim, claims["claims"][name], found) == []
    for part in claim["parts"]:
        if part["value"] is not None:
            assert found.parts[part["name"]] == pytest.approx(part["value"], abs=1e-9)
    if kind == "plain":  # the comparison is of something
        assert claim["verdict"] != "not-run"
        values = [line["value"] for line in claim["strata"] if line["value"] is not None]
        assert len(values) >= 3
        assert found.n_runs == claim["n_runs"] > 10


@pytest.mark.parametrize("name", MODULES)
def test_a_difference_is_seen(world: Any, name: str) -> None:
    kind, first, folder, claims, config = world
    if kind != "plain":
        return
    found = compute(folder, name, claims, config["study"]["scorer"])
    for place, delta in (("parts", 2e-9), ("strata", 2e-9)):
        claim = first[name] | {place: [dict(line) for line in first[name][place]]}
        line = next(line for line in claim[place] if line["value"] is not None)
        line["value"] += delta * max(1.0, abs(line["value"]))
        assert disagreements(claim, claims["claims"][name], found)
    assert disagreements(first[name] | {"verdict": "not-run"}, claims["claims"][name], found)
    assert disagreements(first[name] | {"n_runs": 1}, claims["claims"][name], found)


def test_numbers_by_hand() -> None:
    score, yes = np.array([3.0, 1.0, 2.0, 2.0]), np.array([True, False, True, False])
    assert auc(score, yes, np.ones(4)) == pytest.approx((1 + 1 + 1 + 0.5) / 4)
    assert auc(score, yes, np.array([1.0, 1.0, 2.0, 3.0])) == pytest.approx((1 + 3 + 2 + 3) / 12)
    assert auc(score, yes, np.ones(4), np.array([0, 0, 1, 1])) == pytest.approx(0.75)
    assert np.isnan(auc(score, np.ones(4, bool), np.ones(4)))
    # A quarter of four runs is one run; the two that tie for it give half each.
    assert gate(
        np.array([5.0, 5.0, 1.0, 0.0]), np.array([1.0, 3.0, 7.0, 9.0]), np.ones(4), 0.25
    ) == pytest.approx(2.0)
    assert spearman(np.array([1.0, 2.0, 9.0]), np.array([3.0, 2.0, 1.0])) == pytest.approx(-1)
    assert np.isnan(spearman(np.ones(3), np.arange(3.0)))


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    rng = np.random.default_rng(0)

    def rows(count: int) -> pd.DataFrame:
        clusters = [f"t/{number:03}" for number in range(count)]
        return pd.DataFrame({"x": rng.normal(size=count), "task": "t", "cluster": clusters})

    def mean(some: pd.DataFrame) -> dict[str, float]:
        return {"mean": float(some["x"].mean())}

    few, many = rows(12), rows(1200)
    assert jackknife(few, mean)["mean"] == pytest.approx(few["x"].std(ddof=1) / np.sqrt(12))
    assert jackknife(many, mean)["mean"] == pytest.approx(many["x"].std(ddof=1) / np.sqrt(1200), rel=0.6)
    assert np.isnan(jackknife(rows(1), mean)["mean"])


@pytest.mark.parametrize(
    ("one", "two"),
    [("", ""), ("", "x"), ("The cat, the hat.", "a cat hat hat"), ("an apple a day", "Apple day"), ("the", "x"),
     ("x-ray's", "xrays"), ("Ärger — the Öl", "öl"), ("a.b c", "ab c d")],
)  # fmt: skip
def test_answers_are_compared_alike(one: str, two: str) -> None:
    assert apart(one, two) == pytest.approx(1 - token_f1(one, two))


def test_difference_names_the_place() -> None:
    assert difference({"a": [1.0, {"b": None}]}, {"a": [1.0 + 1e-12, {"b": None}]}) is None
    assert difference({"a": [1.0, {"b": None}]}, {"a": [1.0, {"b": 2}]}) == "a[1].b"
    assert difference({"a": True}, {"a": 1}) == "a"
    assert difference([1], [1, 2]) == "(length)"
