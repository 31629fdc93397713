"""The page as a file: what is in it without a browser, its size, its policy, and what it refuses."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from pathlib import Path

import pytest
from worst import HOSTILE, Made

from kvcert import cli
from kvcert.errors import KvcertError
from kvcert.paper.catalogue import FIGURE_CAPTIONS, FIGURES, TABLES
from kvcert.paper.logs import Logs
from kvcert.paper.tables import build
from kvcert.report import write
from kvcert.report.cards import cards, tally
from kvcert.report.embed import embedded_json
from kvcert.report.explorer import explorer_data, outcomes
from kvcert.report.page import code, render
from kvcert.report.sheets import key
from kvcert.report.vector import inline


@pytest.fixture(scope="module")
def html(made: Made) -> str:
    return made.page.read_text()


def claims(made: Made) -> dict[str, dict]:
    return {f"C{n}": json.loads((made.results / f"claims/C{n}.json").read_text()) for n in range(1, 8)}


def test_every_card_says_what_its_claim_says(made: Made, html: str) -> None:
    plain = html.replace("&lt;", "<").replace("&#39;", "'").replace("&gt;", ">")
    for card, claim in zip(cards(claims(made), "exploratory"), claims(made).values(), strict=True):
        article = re.search(rf'aria-labelledby="card-{card.key}".*?</article>', plain, re.DOTALL)
        assert article is not None
        for text in (claim["statement"], claim["kill_condition"], claim["verdict"], claim["paper_value"]):
            assert text in article[0]
        for text in (card.value, card.interval, card.sha256[:12], "exploratory: not the registered grid"):
            assert text in article[0]
    assert "<strong>Exploratory: not the registered grid.</strong>" in html


def test_an_exploratory_run_is_never_shown_as_a_registered_one(made: Made) -> None:
    listed = claims(made)
    assert {card.status for card in cards(listed, "exploratory")} == {"exploratory"}
    for claim in listed.values():
        claim["registration"]["status"] = "registered"
    assert {card.status for card in cards(listed, "exploratory")} == {"exploratory"}, "whatever the JSON says"
    assert {card.status for card in cards(listed, "registered")} == {"registered"}
    listed["C3"]["registration"]["status"] = "exploratory"
    assert [card.key for card in cards(listed, "registered") if card.status == "exploratory"] == ["C3"]


def test_a_verdict_that_the_interval_does_not_settle_says_so(made: Made) -> None:
    listed = claims(made)
    listed["C1"] |= {"verdict": "survived", "decisive": False}
    listed["C2"] |= {"verdict": "killed", "decisive": True}
    listed["C3"] |= {"verdict": "underpowered", "decisive": False}
    shown = cards({name: listed[name] for name in ("C1", "C2", "C3")}, "exploratory")
    assert [card.verdict for card in shown] == ["survived, not decisive", "killed", "underpowered"]
    assert tally(shown).startswith("1 survived, 1 killed, 1 underpowered; ")


def test_a_forged_status_is_refused_and_gains_nothing(made: Made, root: Path, tmp_path: Path) -> None:
    copied = tmp_path / "results"
    copied.mkdir()
    for name in ("runs", "steps", "heads"):
        (copied / name).symlink_to(made.results / name)
    (copied / "claims").mkdir()
    for name, claim in claims(made).items():
        claim["registration"]["status"] = "registered"
        (copied / "claims" / f"{name}.json").write_text(json.dumps(claim))
    (copied / "config.json").write_text(json.dumps(made.config))
    with pytest.raises(KvcertError, match=r"C1\.json: calls itself registered"):
        write(copied, copied, made.config, root)
    assert not (copied / "report").exists()
    page = render(copied, copied, made.config, root)  # and were it written, it would say what it is
    assert "<strong>Exploratory: not the registered grid.</strong>" in page
    assert page.count('class="tag"') == 7


def test_without_scripts_tables_and_figures_are_whole(made: Made, html: str) -> None:
    logs = Logs(made.results, made.config)
    for stem in TABLES:
        table = re.search(rf'id="table-{stem}".*?</section>', html, re.DOTALL)
        assert table is not None
        shown = build(logs, stem)
        rows = shown.frame if shown.people is None else shown.people
        assert table[0].count("<tr>") == len(rows) + 1
    for stem in FIGURES:
        figure = re.search(rf'<figure id="figure-{stem}">.*?</figure>', html, re.DOTALL)
        assert figure is not None
        assert figure[0].count("<svg") == 1
        assert figure[0].count("<path") > 10
        assert FIGURE_CAPTIONS[stem].split(":")[0][:30] in figure[0]


def test_it_is_one_file_with_a_policy_that_names_its_own_code(html: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    words = policy[1].replace("&#39;", "'")
    assert words.startswith("default-src 'none'")
    assert "unsafe" not in words
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        assert len(bodies) == 1
        digest = base64.b64encode(hashlib.sha256(bodies[0].encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in words
    body = html[html.index("</style>") : html.index('<script type="application/json"')]
    assert not re.search(r'\sstyle="|\son\w+="|<(?:iframe|object|embed|link|base)\b', body)
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", html)
    assert "@import" not in html
    assert "innerHTML" not in code()
    assert "url(" not in html.replace("url(#", "")


def test_size(made: Made, html: str) -> None:
    assert len(html.encode()) < 2_500_000
    runs = len(made.runs)
    data = len(embedded_json(explorer_data(made.results)))
    assert data / runs < 700, "8,640 runs stay below 6 MB"


def test_equal_logs_give_equal_pages(made: Made, html: str, root: Path) -> None:
    assert render(made.results, made.results / "figures", made.config, root) == html


def test_embedded_json_cannot_leave_its_element(html: str) -> None:
    texts = [*HOSTILE, "\u2028\u2029", "<!--<script>"]
    text = str(embedded_json(texts))
    assert text.isascii()
    assert not set("<>&\0\x07") & set(text)
    assert json.loads(text) == texts
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    kept = json.loads(found[1])["texts"]
    assert set(HOSTILE) - {t for t in HOSTILE if len(t) > 2000} <= set(kept)
    with pytest.raises(ValueError, match="JSON"):
        embedded_json([float("nan")])


def test_examples_are_thinned_evenly_when_the_page_would_be_too_large(made: Made) -> None:
    whole = explorer_data(made.results)
    assert whole["every"] == 1
    assert len(whole["example"]) == len(made.runs)
    size = len(embedded_json(whole))
    thin = explorer_data(made.results, most=size * 6 // 10)
    assert thin["every"] == 2
    assert sorted(set(thin["example"])) == [0, 2, 4, 6]
    assert len(embedded_json(thin)) <= size * 6 // 10
    assert sum(thin["n"]) == len(thin["steps"]["c"])


def test_outcomes_are_those_of_the_method(made: Made) -> None:
    runs = made.runs.reset_index()
    found = dict(zip(runs["run_id"], outcomes(runs), strict=True))
    assert set(found.values()) == {"pass", "induced", "inherent", "fail", "invalid", "forced"}
    for run, outcome in found.items():
        row = made.runs.loc[run]
        base = made.runs.loc["/".join([*run.split("/")[:5], "none/full/1/0/free"])]
        if not row["valid"]:
            assert outcome == "invalid"
        elif row["regime"] == "forced":
            assert outcome == "forced"
        elif not row["fail"]:
            assert outcome == "pass"
        elif row["policy"] == "full":
            assert outcome == "fail"
        else:
            assert outcome == ("inherent" if base["fail"] else "induced")


def test_drawings_share_a_page() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="504pt" height="9pt" '
        'viewBox="0 0 504 9"><metadata/><defs><style type="text/css">*{}</style><path id="m" d="M 1.23456 2"/>'
        '<clipPath id="c"/></defs><g id="unused" style="fill: #ff0000; stroke: none" clip-path="url(#c)">'
        '<use xlink:href="#m" x="1.00049"/></g></svg>'
    )
    one, two = (inline(svg, prefix, "A <caption>") for prefix in ("a-", "b-"))
    assert re.findall(r'id="([^"]+)"', one) == ["a-m", "a-c"]
    assert 'href="#a-m"' in one
    assert 'clip-path="url(#a-c)"' in one
    assert 'fill="#ff0000" ' in one or 'fill="#ff0000"' in one
    assert 'd="M 1.23 2"' in one
    assert 'x="1"' in one
    assert not re.search(r"style|metadata|xmlns|xlink|unused", one)
    assert 'aria-label="A &lt;caption&gt;"' in one
    assert not set(re.findall(r'id="([^"]+)"', one)) & set(re.findall(r'id="([^"]+)"', two))


def test_numbers_to_sort_by() -> None:
    assert [key(value) for value in (1, 0.125, float("inf"), None, float("nan"))] == [
        "1.0",
        "0.125",
        "Infinity",
        None,
        None,
    ]


def test_it_refuses_unscored_logs(made: Made, root: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").symlink_to(made.results / "runs")
    with pytest.raises(KvcertError, match="no scored claims"):
        write(tmp_path, tmp_path, made.config, root)
    assert not (tmp_path / "report").exists()


def test_a_missing_claim_and_a_missing_citation_are_said(made: Made, tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    for name in ("runs", "steps", "heads"):
        (tmp_path / name).symlink_to(made.results / name)
    content = claims(made)["C2"]
    (tmp_path / "claims/C2.json").write_text(json.dumps(content | {"statement": "<b>bold & 'quoted'</b>"}))
    page = render(tmp_path, tmp_path, copy.deepcopy(made.config), tmp_path)
    assert "Not scored: C1, C3, C4, C5, C6, C7." in page
    assert "&lt;b&gt;bold &amp; &#39;quoted&#39;&lt;/b&gt;" in page
    assert "CITATION.cff" not in page


def test_texts_of_others_carry_their_licence(html: str) -> None:
    licences = html[html.index("<h3>Licences</h3>") :]
    assert "SQuAD 2.0</strong>, CC BY-SA 4.0" in licences
    assert "HotpotQA" not in licences[: licences.index("</main>")], "its text is not shown here"


def test_the_command(
    made: Made, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    made.page.unlink()
    assert cli.main(["--results", str(made.results), "report"]) == 0
    assert str(made.page) in capsys.readouterr().out
    assert made.page.stat().st_size > 100_000
