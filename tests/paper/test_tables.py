"""Tables: exact columns, numbers that agree with the claims, and words where there is nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from kinds import KINDS

from kvcert.errors import KvcertError
from kvcert.paper.catalogue import TABLE_SUFFIXES, TABLES
from kvcert.paper.logs import Logs
from kvcert.paper.tables import BUILDERS, build, write_all

pytestmark = pytest.mark.xdist_group("paper")
Scored = Callable[[str], Path]
COLUMNS = {
    "verdicts": "claim title statistic part value ci_low ci_high n_runs n_clusters threshold verdict decisive paper_value "
    "paper_number paper_verdict agrees",
    "coverage": "task budget c1a c1a_low c1a_high c1b c1b_low c1b_high guarded kappa95 sharpness steps runs examples",
    "accuracy": "model task length setting policy scorer budget mean low high examples runs",
    "attribution": "by group form signal auc low high runs examples",
    "failures": "model task length setting budget runs failed cache_induced inherent full_failed",
    "cost": "model task length policy scorer budget context_tokens kept_tokens kept_bytes full_bytes seconds_prefill "
    "seconds_decode runs",
    "summary": "item value",
}


def test_every_table_of_the_catalogue_has_a_builder() -> None:
    assert set(BUILDERS) == set(TABLES)


@pytest.mark.parametrize("kind", [*KINDS, "none"])
def test_every_table_from_every_kind_of_logs(kind: str, scored: Scored, tmp_path: Path) -> None:
    results = tmp_path if kind == "none" else scored(kind)
    paths = write_all(results)
    assert {path.name for path in paths} == {
        f"{stem}{suffix}" for stem in TABLES for suffix in TABLE_SUFFIXES
    }
    for stem in TABLES:
        assert list(pd.read_csv(results / "tables" / f"{stem}.csv")) == COLUMNS[stem].split()
        assert (results / "tables" / f"{stem}.md").read_text().count("|") > 4
        tex = (results / "tables" / f"{stem}.tex").read_text()
        assert tex.count("{") == tex.count("}")


def test_tightness_of_all_tasks_is_the_claims_own(scored: Scored) -> None:
    table = build(Logs(scored("normal")), "coverage").frame
    curves = json.loads((scored("normal") / "claims" / "C1.json").read_text())["curves"]
    for budget, values in curves.items():
        row = table[(table["task"] == "all") & (table["budget"] == float(budget))].iloc[0]
        assert row["kappa95"] == pytest.approx(values["panel"]["kappa95"], rel=1e-6)
        assert row["sharpness"] == pytest.approx(values["panel"]["sharpness"], rel=1e-6)
        assert row["steps"] == values["panel"]["n"]


def test_failures_add_up_and_agree_with_the_logs(scored: Scored) -> None:
    logs = Logs(scored("normal"))
    table = build(logs, "failures").frame
    assert (table["failed"] == table["cache_induced"] + table["inherent"]).all()
    poisson = logs.free[logs.free["policy"] == "poisson"]
    assert table["failed"].sum() == poisson["fail"].astype(bool).sum()
    assert table["runs"].sum() == len(poisson)
    assert table["cache_induced"].sum() > 0


def test_accuracy_is_the_mean_over_examples(scored: Scored) -> None:
    logs = Logs(scored("normal"))
    these = "policy == 'poisson' and setting == 'aware' and budget == 0.25 and task == 'niah'"
    row, runs = build(logs, "accuracy").frame.query(these), logs.free.query(these)
    assert row["mean"].item() == pytest.approx(runs.groupby("example")["score"].mean().mean())
    assert row["low"].item() < row["mean"].item() < row["high"].item()
    assert row["examples"].item() == 12
    assert row["runs"].item() == 24


def test_verdicts_keep_the_claims_numbers(scored: Scored) -> None:
    table = build(Logs(scored("normal")), "verdicts").frame.set_index("claim")
    official = pd.read_csv(scored("normal") / "verdicts.csv").set_index("claim")
    assert list(table.index) == [f"C{i}" for i in range(1, 8)]
    for name in ("value", "ci_low", "threshold"):
        assert table[name].to_numpy() == pytest.approx(official[name].to_numpy(), nan_ok=True)


def test_attribution_for_people_leaves_out_the_strata(scored: Scored) -> None:
    write_all(scored("normal"), stems=["attribution"])
    table = pd.read_csv(scored("normal") / "tables" / "attribution.csv")
    assert set(table["by"]) >= {"setting", "cell", "budget"}
    shown = (scored("normal") / "tables" / "attribution.md").read_text()
    assert shown.count("| streaming |") == (table["group"] == "streaming").sum()
    assert "| niah |" not in shown


def test_unknown_table(tmp_path: Path) -> None:
    with pytest.raises(KvcertError, match="no table 'pie'; there are verdicts"):
        write_all(tmp_path, stems=["pie"])
