"""The page in real headless Chromium: what a reader sees, chooses and types."""

from __future__ import annotations

import math
from typing import Any

import pytest
from worst import Made

from page_driver import Reader

CELLS = (
    "[...document.querySelectorAll('#table-{stem} tbody tr')].filter(r => !r.hidden)"
    ".map(r => r.cells[{column}].textContent)"
)


def column(reader: Reader, stem: str, at: int) -> list[str]:
    """What a table's visible rows show in one column."""
    return reader.js(CELLS.format(stem=stem, column=at))


def head(reader: Reader, stem: str, text: str) -> int:
    """Place of a column by the words on its button."""
    names = reader.js(f"[...document.querySelectorAll('#table-{stem} thead button')].map(b => b.textContent)")
    return names.index(text)


def numbers(texts: list[str]) -> list[float]:
    return [float(text.replace("−", "-").replace(",", "")) for text in texts if text != "–"]


def click_head(reader: Reader, stem: str, text: str) -> str:
    """Choose a heading; its new `aria-sort`."""
    at = head(reader, stem, text)
    return reader.js(
        f"(() => {{ const h = document.querySelectorAll('#table-{stem} th')[{at}]; h.querySelector('button').click();"
        " return h.getAttribute('aria-sort'); })()"
    )


def test_it_says_nothing_and_asks_for_nothing(reader: Reader, made: Made) -> None:
    for name in ("cell", "setting", "policy", "budget", "regime"):
        for value in reader.js(f"[...document.getElementById({name!r}).options].map(o => o.value)"):
            reader.choose(name, value)
    assert reader.complaints() == []
    assert reader.requests() == []


def test_the_listener_hears_errors_and_requests(reader: Reader) -> None:
    reader.js("void fetch('http://127.0.0.1:9/x').catch(() => 0), console.error('heard')")
    assert any("heard" in text for text in reader.complaints())
    reader.js("void setTimeout(() => { throw new Error('thrown') }, 0)")
    assert any("thrown" in text for text in reader.complaints())
    assert any("Content Security Policy" in text for text in reader.complaints()), (
        "the policy refuses the network"
    )


def test_a_script_that_is_not_the_pages_own_does_not_run(reader: Reader) -> None:
    reader.js(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 9'; document.body.append(s);"
        " document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked = 9\">'); })()"
    )
    assert reader.complaints()
    assert reader.js("window.hacked") is None


def test_sorting(reader: Reader) -> None:
    at = head(reader, "accuracy", "score")
    written = column(reader, "accuracy", at)
    assert click_head(reader, "accuracy", "score") == "ascending"
    rising = numbers(column(reader, "accuracy", at))
    assert rising == sorted(rising)
    assert rising[0] < rising[-1]
    assert click_head(reader, "accuracy", "score") == "descending"
    assert numbers(column(reader, "accuracy", at)) == rising[::-1]
    assert click_head(reader, "accuracy", "policy") == "ascending"
    assert reader.js("document.querySelectorAll('#table-accuracy th[aria-sort=ascending]').length") == 1
    policies = column(reader, "accuracy", head(reader, "accuracy", "policy"))
    assert policies == sorted(policies)
    assert [click_head(reader, "accuracy", "policy") for _ in range(2)] == ["descending", "none"]
    assert column(reader, "accuracy", at) == written


def test_sorting_keeps_what_is_missing_last(reader: Reader) -> None:
    reader.js(
        "document.querySelectorAll('#table-accuracy tbody tr').forEach((r, i) => { if (i % 3 === 0) {"
        " r.cells[4].removeAttribute('data-v'); r.cells[4].textContent = '–'; } })"
    )
    for _ in range(2):
        click_head(reader, "accuracy", "score")
        shown = column(reader, "accuracy", head(reader, "accuracy", "score"))
        missing = shown.count("–")
        assert missing > 2
        assert shown[-missing:] == ["–"] * missing


def test_filtering(reader: Reader) -> None:
    rows = len(column(reader, "accuracy", 0))
    reader.js("document.querySelector('#table-accuracy input[type=search]').focus()")
    for letter in "poisson niah":
        reader.press(letter)
    assert set(column(reader, "accuracy", head(reader, "accuracy", "policy"))) == {"poisson"}
    assert set(column(reader, "accuracy", head(reader, "accuracy", "task"))) == {"niah"}
    left = len(column(reader, "accuracy", 0))
    assert (
        reader.js("document.querySelector('#table-accuracy .count').textContent") == f"{left} of {rows} rows"
    )
    reader.js(
        "(() => { const labels = [...document.querySelectorAll('#table-accuracy label')];"
        " const s = labels.find(l => l.textContent.startsWith('setting')).querySelector('select');"
        " s.value = '=aware'; s.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    assert set(column(reader, "accuracy", head(reader, "accuracy", "setting"))) == {"aware"}
    assert 0 < len(column(reader, "accuracy", 0)) < left
    click_head(reader, "accuracy", "score")
    assert set(column(reader, "accuracy", head(reader, "accuracy", "setting"))) == {"aware"}, (
        "sorting keeps the filter"
    )


def pick(reader: Reader, **choices: Any) -> None:
    for name, value in choices.items():
        reader.choose(name, str(value))


def steps_shown(reader: Reader) -> list[list[str]]:
    return reader.js(
        "[...document.querySelectorAll('#steps tr')].map(r => [...r.cells].map(c => c.textContent))"
    )


@pytest.mark.parametrize(
    ("choices", "run"),
    [
        ({"cell": "squad_long", "setting": "aware", "policy": "poisson", "budget": 0.125, "draw": 1, "example": 5},
         "smollm2-135m/squad_long/768/5/aware/snapkv/poisson/0.125/1/free"),
        ({"cell": "squad_long", "setting": "streaming", "policy": "topk", "budget": 0.5, "example": 2},
         "smollm2-135m/squad_long/768/2/streaming/snapkv/topk/0.5/0/free"),
        ({"cell": "squad_long", "policy": "poisson", "budget": 0.25, "regime": "forced", "draw": 0, "example": 3},
         "smollm2-135m/squad_long/768/3/streaming/snapkv/poisson/0.25/0/forced"),
        ({"cell": "squad_long", "setting": "aware", "policy": "full", "example": 7},
         "smollm2-135m/squad_long/768/7/aware/none/full/1/0/free"),
    ],
)  # fmt: skip
def test_the_explorer_shows_the_run_that_was_chosen(
    reader: Reader, made: Made, choices: dict[str, Any], run: str
) -> None:
    pick(reader, **choices)
    row = made.runs.loc[run]
    full = made.runs.loc["/".join([*run.split("/")[:5], "none/full/1/0/free"])]
    assert reader.js("document.getElementById('answer').textContent") == row["answer"]
    assert reader.js("document.getElementById('answer-full').textContent") == full["answer"]
    assert reader.js("[...document.querySelectorAll('#accepted li')].map(l => l.textContent)") == list(
        row["answers"]
    )
    facts = reader.js("document.getElementById('run-facts').textContent")
    assert f"{row['kept_tokens']:,.1f} of {row['context_tokens']}" in facts
    assert f"Score{'–' if math.isnan(row['score']) else format(row['score'], '.2f')}" in facts
    logged = made.steps[made.steps["run_id"] == run].sort_values("step")
    if row["policy"] == "full":
        assert reader.js("document.getElementById('chart-box').hidden")
        return
    shown = steps_shown(reader)
    assert [int(line[0]) for line in shown] == logged["step"].tolist()
    for line, step in zip(shown, logged.itertuples(), strict=True):
        assert float(line[3]) == pytest.approx(step.error, rel=6e-3, abs=6e-4)
        if row["policy"] == "poisson":
            assert float(line[1]) == pytest.approx(step.certificate, rel=6e-3, abs=6e-4)
            assert line[4] == ("yes" if step.error <= step.certificate else "no")
        else:
            assert line[1] == line[4] == "–"
    marks = reader.js("document.querySelectorAll('#chart .mark.e').length")
    assert marks == len(logged)


def test_an_infinite_certificate_covers_and_a_missed_step_is_ringed(reader: Reader) -> None:
    pick(
        reader,
        cell="niah",
        setting="streaming",
        policy="poisson",
        budget=0.25,
        draw=0,
        regime="free",
        example=0,
    )
    first, second = steps_shown(reader)[:2]
    assert (first[1], first[2], first[4]) == ("∞", "∞", "yes")
    assert second[4] == "no"
    assert reader.js("document.querySelectorAll('#chart .miss').length") >= 1


def test_only_failures_of_a_kind(reader: Reader, made: Made) -> None:
    pick(reader, only="induced")
    assert "induced by the cache" in reader.js("document.getElementById('status').textContent")
    free = made.runs[(made.runs["regime"] == "free") & made.runs["valid"]]
    full = free[free["policy"] == "full"].set_index(["task", "example", "setting"])["fail"]
    at = {
        name: reader.js(f"document.getElementById({name!r}).value")
        for name in ("cell", "setting", "policy", "budget", "draw")
    }
    cell = free[
        (free["task"] == at["cell"]) & (free["setting"] == at["setting"]) & (free["policy"] == at["policy"])
    ]
    cell = cell[
        (cell["budget"] == float(at["budget"]))
        & (cell["draw"] == int(at["draw"]))
        & cell["fail"].astype(bool)
    ]
    wanted = [e for e in cell["example"] if not full[(at["cell"], e, at["setting"])]]
    assert [
        int(v) for v in reader.js("[...document.getElementById('example').options].map(o => o.value)")
    ] == sorted(wanted)
    pick(reader, only="invalid")
    assert "non-finite <script>" in reader.js("document.getElementById('run-facts').textContent")
    assert reader.js("document.getElementById('example').disabled"), "there is one such run"


def test_turning_pages(reader: Reader) -> None:
    assert reader.js("document.getElementById('previous').disabled")
    reader.js("document.getElementById('next').click()")
    assert reader.js("document.getElementById('example').value") == "1"
    assert "Example 1 (2 of 8)" in reader.js("document.getElementById('status').textContent")
    pick(reader, budget=0.5)
    assert reader.js("document.getElementById('example').value") == "1", "another budget keeps the example"
