"""From Parquet to verdicts: planted effects, adversarial logs, refusals, and the exact form of what is written."""

from __future__ import annotations

import copy
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kvcert.claims import score_all, score_one
from kvcert.errors import KvcertError
from kvcert.logs.integrity import check
from synthetic import write_logs

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., dict[str, dict[str, Any]]]
HEADER = (
    "claim,title,statistic,value,ci_low,ci_high,n_runs,n_clusters,threshold,verdict,decisive,paper_value,"
    "paper_verdict,agrees"
)


def on_runs(change: Callable[[pd.DataFrame], pd.DataFrame]) -> dict[str, Any]:
    """A hook that changes the table of runs before it is written."""
    return {"hook": lambda table, shard, frame: change(frame) if table == "runs" else frame}


def verdicts(claims: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: claim["verdict"] for name, claim in claims.items()}


def test_a_world_where_the_certificate_is_good(scored: Run) -> None:
    found = scored(full_rate=0.55, signal_noise=0.05, confidence=0.0, two_run=0.0, line=1.5)
    assert {found[name]["verdict"] for name in ("C1", "C4", "C5", "C6", "C7")} == {"survived"}
    assert found["C1"]["decisive"]
    assert found["C4"]["decisive"]
    assert found["C7"]["decisive"]
    assert found["C4"]["agrees"] is False
    assert found["C6"]["agrees"] is True


def test_a_world_where_the_certificate_is_noise(scored: Run) -> None:
    found = scored(full_rate=0.5, attribution=0.0, budget_weight=0.0, coverage=0.85, confidence=3.0)
    assert found["C1"]["verdict"] == "killed"
    assert found["C1"]["decisive"]
    assert found["C1"]["agrees"] is False
    assert {found[name]["verdict"] for name in ("C4", "C6", "C7")} == {"killed"}
    assert found["C4"]["decisive"]
    assert found["C6"]["decisive"]


def test_damage_and_its_absence(scored: Run) -> None:
    assert scored("C3", line=0.5)["C3"]["verdict"] == "survived"
    assert scored("C3", line=4.0)["C3"]["verdict"] == "killed"


def test_parity_lost_by_a_wide_margin(scored: Run, small: dict[str, Any]) -> None:
    def lose(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        free = (frame["regime"] == "free").to_numpy()
        frame.loc[free, "score"] = np.where(frame["policy"] == "poisson", 0.6, 0.7)[free]
        frame.loc[free, "fail"] = False
        return frame

    found = scored("C2", **on_runs(lose))["C2"]
    assert found["verdict"] == "killed"
    assert found["value"] == pytest.approx(-0.1)


def test_a_signal_that_carries_only_the_task_is_caught(scored: Run, small: dict[str, Any]) -> None:
    config = copy.deepcopy(small)
    config["study"]["tasks"] = [task | {"examples": 70} for task in config["study"]["tasks"]]
    config["run"]["shard_examples"] = 70
    world = {"line": -0.3, "confidence": 0.0, "two_run": 0.0, "layers": 1, "kv_heads": 1}

    def carry(frame: pd.DataFrame) -> pd.DataFrame:
        level = {"hotpot_long": 3.0, "niah": 2.0, "facts": 1.0}[frame["task"].iloc[0]]
        return frame.assign(signal=[level if policy == "poisson" else None for policy in frame["policy"]])

    rates = {"hotpot_long": 0.8, "niah": 0.5, "facts": 0.2}
    found = scored("C6", config=config, full_rate=rates, **world, **on_runs(carry))["C6"]
    parts = {part["name"]: part for part in found["parts"]}
    assert all(parts[name]["passed"] for name in parts if name.startswith("pooled"))
    assert parts["conditional"]["value"] == 0.5
    assert not parts["conditional"]["passed"]
    assert found["verdict"] == "killed (carried by task or budget)"
    assert found["agrees"] is False


def blind(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(signal=[float("nan") if x is not None else None for x in frame["signal"]])


def broken(frame: pd.DataFrame) -> pd.DataFrame:
    bad = (frame["policy"] == "poisson").to_numpy()
    frame = frame.assign(valid=~bad, invalid_reason=[("non-finite logits" if x else None) for x in bad])
    return frame.assign(score=[None if b else s for b, s in zip(bad, frame["score"], strict=True)],
                        fail=[None if b else s for b, s in zip(bad, frame["fail"], strict=True)])  # fmt: skip


def nothing_evicted(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(identity=True)


def test_constant_signal(scored: Run) -> None:
    found = scored("C4", "C5", "C6", "C7", signal=0.3)
    assert {found[name]["verdict"] for name in ("C4", "C5", "C6", "C7")} == {"not-run"}
    assert found["C6"]["reasons"] == ["the certificate is constant"]


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_tasks_outside_the_filter_leave_c3_to_c7_and_are_named(scored: Run, rate: float) -> None:
    found = scored(full_rate=rate)
    assert {found[name]["verdict"] for name in ("C3", "C4", "C5", "C6", "C7")} == {"not-run"}
    assert found["C4"]["counts"]["tasks_left_out"] == dict.fromkeys(("hotpot_long", "niah", "facts"), rate)
    assert found["C1"]["verdict"] != "not-run"
    assert found["C2"]["verdict"] != "not-run"


def test_no_failures_and_only_inherent_ones(scored: Run) -> None:
    def flawless(frame: pd.DataFrame) -> pd.DataFrame:
        poisson = (frame["policy"] == "poisson").to_numpy() & (frame["regime"] == "free").to_numpy()
        frame = frame.copy()
        frame.loc[poisson, "score"], frame.loc[poisson, "fail"] = 1.0, False
        return frame

    found = scored("C3", "C4", "C6", **on_runs(flawless))
    assert found["C4"]["reasons"] == ["no run failed"]
    assert found["C6"]["verdict"] == "not-run"
    assert found["C3"]["verdict"] == "killed"
    inherent = scored("C6", line=99.0)
    assert inherent["C6"]["reasons"] == ["all failures are inherent"]


@pytest.mark.parametrize("change", [blind, broken, nothing_evicted])
def test_no_usable_run_is_not_run_with_a_reason(
    scored: Run, change: Callable[[pd.DataFrame], pd.DataFrame]
) -> None:
    found = scored(**on_runs(change))
    for name in ("C4", "C5", "C6", "C7"):
        assert found[name]["verdict"] == "not-run"
        assert found[name]["reasons"]
        assert found[name]["value"] is None
    if change is not blind:
        assert set(verdicts(found).values()) == {"not-run"}


def test_ties_everywhere(scored: Run) -> None:
    def coarse(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(
            signal=[None if x is None else round(x) for x in frame["signal"]], logp_mean=-1.0, answer="same"
        )

    found = scored("C4", "C6", full_rate=0.5, **on_runs(coarse))
    two_run = [
        s["value"] for s in found["C6"]["strata"] if s["measure"] == "pooled/two_run" and s["by"] == "setting"
    ]
    assert two_run == [0.5, 0.5]
    assert found["C6"]["verdict"] in ("survived", "killed")
    assert found["C4"]["parts"][0]["value"] > 0  # a coarse signal still beats a constant confidence


def test_a_missing_draw_takes_its_example_out_of_two_run_only(scored: Run) -> None:
    def lose_one(frame: pd.DataFrame) -> pd.DataFrame:
        lost = (frame["example"] == 3) & (frame["draw"] == 1)
        return frame.assign(valid=~lost)

    found = scored("C2", "C6", full_rate=0.5, **on_runs(lose_one))
    assert found["C6"]["counts"]["failures_without_two_run"] > 0
    assert found["C6"]["verdict"] != "not-run"
    assert found["C2"]["counts"]["invalid_runs"] > 0


def test_numbers_that_are_none(scored: Run) -> None:
    def hole(table: str, shard: str, frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        if table == "runs":
            frame.loc[frame.index[frame["policy"] == "poisson"][:5], "logp_mean"] = np.nan
        elif table == "heads":
            frame.loc[frame.index[-50:], "error"] = np.nan
        return frame

    found = scored("C1", "C2", hook=hole)
    assert found["C2"]["counts"]["invalid_runs"] == 15
    assert found["C1"]["counts"]["heads_unusable"] > 0
    assert found["C1"]["verdict"] == "survived"


def test_infinite_certificates_rank_highest_and_are_counted(scored: Run) -> None:
    def endless(table: str, shard: str, frame: pd.DataFrame) -> pd.DataFrame:
        if table == "steps":
            return frame.assign(
                certificate=[None if x is None else float("inf") for x in frame["certificate"]]
            )
        if table == "runs":
            return frame.assign(signal=[x if x is None or x < 0.5 else float("inf") for x in frame["signal"]])
        return frame

    found = scored("C1", "C6", full_rate=0.5, hook=endless)
    assert found["C1"]["parts"][0]["value"] == 1.0
    assert 0.9 < found["C1"]["parts"][0]["ci_low"] < 1.0
    assert found["C1"]["counts"]["steps_with_infinite_certificate"] == found["C1"]["counts"]["steps"]
    assert found["C6"]["verdict"] != "not-run"


def test_a_single_cluster_is_underpowered(scored: Run, small: dict[str, Any]) -> None:
    config = copy.deepcopy(small)
    config["study"]["tasks"] = [config["study"]["tasks"][1] | {"examples": 1}]
    found = scored(config=config)
    assert set(verdicts(found).values()) <= {"underpowered", "not-run"}
    assert found["C1"]["verdict"] == "underpowered"
    assert found["C2"]["ci_low"] is None


def test_a_grid_without_forced_runs_or_without_the_escalation_budgets(
    scored: Run, small: dict[str, Any]
) -> None:
    config = copy.deepcopy(small)
    config["study"]["forced"] = False
    config["study"]["rows"] = [{"policy": "full"}, {"policy": "poisson", "budgets": [0.3]}]
    found = scored(config=config)
    assert {name for name, claim in found.items() if claim["verdict"] == "not-run"} >= {
        "C1",
        "C2",
        "C3",
        "C5",
        "C6",
    }
    assert found["C7"]["verdict"] != "not-run"


def test_form_of_what_is_written(small: dict[str, Any], tmp_path: Path) -> None:
    config = copy.deepcopy(small)
    config["study"]["tasks"] = [task | {"examples": 5} for task in config["study"]["tasks"][:2]]
    write_logs(tmp_path, config, 0, layers=1, kv_heads=1, integrity=False)
    check(tmp_path, config)  # the real gate takes these logs for a shard's
    found = {claim["claim"]: claim for claim in score_all(tmp_path, ROOT, config)}
    text = (tmp_path / "verdicts.csv").read_text()
    assert text.splitlines()[0] == HEADER
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["claim"] for row in rows] == ["C1", "C2", "C3", "C4", "C5", "C6", "C7"]
    assert float(rows[5]["value"]) == found["C6"]["value"]
    for name, claim in found.items():
        written = json.loads(
            (tmp_path / "claims" / f"{name}.json").read_text(), parse_constant=lambda x: pytest.fail(x)
        )
        assert written == claim
        assert claim["registration"]["status"] == "exploratory"  # a smaller grid than the registered one
        near = min((p for p in claim["parts"] if p["role"] == "decides"), key=lambda p: p["margin"])
        assert (claim["value"], claim["threshold"], claim["statistic"]) == (
            near["value"],
            near["threshold"],
            near["label"],
        )
        assert all(
            {"name", "by", "measure", "value", "ci_low", "ci_high", "n_runs", "n_clusters"} <= set(s)
            for s in claim["strata"]
        )
    before = (tmp_path / "claims" / "C6.json").read_bytes()
    assert score_one("C6", tmp_path, ROOT, config) == found["C6"]
    assert (tmp_path / "claims" / "C6.json").read_bytes() == before
    assert (tmp_path / "verdicts.csv").read_text() == text


def test_row_order_does_not_matter(scored: Run) -> None:
    claims = ("C1", "C3", "C6", "C7")
    first = scored(*claims, resamples=50)
    shuffled = scored(
        *claims,
        resamples=50,
        hook=lambda table, shard, frame: frame.sample(frac=1.0, random_state=1) if table == "runs" else frame,
    )
    for name, claim in first.items():
        assert shuffled[name]["verdict"] == claim["verdict"]
        assert shuffled[name]["value"] == pytest.approx(claim["value"], abs=1e-12)
        assert shuffled[name]["ci_low"] == pytest.approx(claim["ci_low"], abs=1e-12)


def test_refusals(small: dict[str, Any], tmp_path: Path) -> None:
    write_logs(tmp_path, small, 0, layers=1, kv_heads=1)
    with pytest.raises(KvcertError, match="unknown claim 'C9'"):
        score_one("C9", tmp_path, ROOT, small)
    gate = (tmp_path / "integrity.json").read_text()
    (tmp_path / "integrity.json").write_text(gate.replace("true", "false"))
    with pytest.raises(KvcertError, match="integrity gate"):
        score_all(tmp_path, ROOT, small)
    (tmp_path / "integrity.json").write_text(json.dumps(json.loads(gate) | {"runs": 7}))
    with pytest.raises(KvcertError, match="the integrity gate saw 7"):
        score_all(tmp_path, ROOT, small)
    (tmp_path / "integrity.json").write_text(gate)
    victim = next((tmp_path / "runs").glob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-40])
    with pytest.raises(KvcertError, match=victim.name):
        score_all(tmp_path, ROOT, small)
    assert not (tmp_path / "verdicts.csv").exists()


def test_a_flipped_label_is_refused(small: dict[str, Any], tmp_path: Path) -> None:
    def flip(frame: pd.DataFrame) -> pd.DataFrame:
        first = frame.index[frame["policy"] == "poisson"][0]
        frame.at[first, "fail"] = not frame.at[first, "fail"]
        return frame

    write_logs(tmp_path, small, 0, layers=1, kv_heads=1, **on_runs(flip))
    with pytest.raises(KvcertError, match="contradicts its score"):
        score_all(tmp_path, ROOT, small)
