"""CSV keeps everything, Markdown and LaTeX are rounded and escaped."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kvcert.paper.catalogue import TABLE_SUFFIXES
from kvcert.paper.render import Table, escape_latex, escape_markdown, latex, markdown, text, write


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.97449, "0.974"), (-0.0131, "−0.013"), (float("nan"), "–"), (None, "–"), (pd.NA, "–"), (float("inf"), "∞"),
     (1234567, "1,234,567"), (np.int64(-3), "−3"), (True, "yes"), (np.bool_(False), "no"), ("a_b", "a_b"),
     (np.float64(0.5), "0.500")],
)  # fmt: skip
def test_values_for_people(value: object, shown: str) -> None:
    assert text(value) == shown


def test_markdown_stays_inside_its_cell() -> None:
    assert escape_markdown("a|b\nc*<i>`") == "a\\|b c\\*&lt;i>\\`"


def test_latex_escapes_every_special_character() -> None:
    assert escape_latex("a_b & 50 % of $x^2 ~ #{1}\\") == (
        r"a\_b \& 50 \% of \$x\textasciicircum{}2 \textasciitilde{} \#\{1\}\textbackslash{}"
    )
    assert escape_latex("κ95 ≤ ∞, −1") == r"$\kappa$95 $\leq$ $\infty$, $-$1"


@pytest.fixture
def table() -> Table:
    frame = pd.DataFrame(
        {"model": ["m", "m"], "task": ["json_lookup", "a|b"], "mean": [1 / 3, np.nan], "hidden": [1, 2]}
    )
    return Table(frame, {"model": "model", "task": "task", "mean": "score %"}, {"mean": 2})


def test_markdown_table(table: Table) -> None:
    assert markdown(table, "Cap").splitlines() == [
        "Cap", "", "| task | score % |", "|---|---:|", "| json_lookup | 0.33 |", "| a\\|b | – |",
    ]  # fmt: skip


def test_latex_table(table: Table) -> None:
    content = latex(table, "50 % cap", "stem")
    assert r"\caption{50 \% cap}" in content
    assert r"\label{tab:stem}" in content
    assert r"\begin{tabular}{lr}" in content
    assert "task & score \\% \\\\\n" in content
    assert "json\\_lookup & 0.33 \\\\\n" in content


def test_model_is_shown_once_models_differ(table: Table) -> None:
    table.frame["model"] = ["m", "other"]
    assert "| model | task |" in markdown(table, "Cap")


def test_csv_keeps_full_precision_and_every_column(table: Table, tmp_path: Path) -> None:
    paths = write(table, tmp_path, "stem", "Cap")
    assert [path.suffix for path in paths] == list(TABLE_SUFFIXES)
    back = pd.read_csv(io.StringIO((tmp_path / "stem.csv").read_text()))
    assert list(back) == ["model", "task", "mean", "hidden"]
    assert back["mean"][0] == 1 / 3


def test_an_empty_table_says_so() -> None:
    empty = Table(pd.DataFrame(columns=["task", "mean"]), {"task": "task", "mean": "score"})
    assert "Nothing to show" in markdown(empty, "Cap")
    assert "nothing to show" in latex(empty, "Cap", "stem")
