"""Readers of every kind: keyboard, phone, dark room, paper, screen reader — and answers that mean harm."""

from __future__ import annotations

import itertools
import re

import pytest
from worst import HOSTILE, Made

from page_driver import Reader

FOCUS = "(() => { const e = document.activeElement; return [e.tagName, e.id, e.textContent.trim().slice(0, 40)]; })()"
CONTRAST = r"""(() => {
  const parse = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  const bad = [];
  let seen = 0;
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest("svg[role=img]:not(#chart)") || e.disabled || !e.getClientRects().length) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e);
    const size = parseFloat(style.fontSize);
    const need = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const [a, b] = [light(parse(e.closest("#chart") ? style.fill : style.color)), light(ground(e))].sort((x, y) => y - x);
    seen += 1;
    if ((a + 0.05) / (b + 0.05) < need) bad.push(`${e.tagName} ${e.className} ${e.textContent.trim().slice(0, 30)}`);
  }
  return { seen, bad };
})()"""
#: Elements that stick out of the page, what scrolls inside its own box left out.
WIDER = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, .away, .text') &&
  e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + '.' + e.className).slice(0, 5)"""


def tab_to(reader: Reader, wanted: str, most: int = 400) -> None:
    """Press Tab until the focused element's text, or its `#id`, is the wanted one."""
    for _ in range(most):
        reader.press("Tab")
        _, name, text = reader.js(FOCUS)
        if wanted in (f"#{name}", text):
            return
    raise AssertionError(f"Tab never reaches {wanted}")


def test_the_keyboard_alone(reader: Reader) -> None:
    reader.press("Tab")
    assert reader.js(FOCUS)[2] == "Skip to the verdicts"
    assert reader.js("document.activeElement.getBoundingClientRect().top") >= 0, "the skip link shows itself"
    reader.press("Enter")
    assert reader.js(FOCUS)[:2] == ["MAIN", "main"]
    reader.press("Tab")
    assert reader.js(FOCUS)[0] == "SUMMARY", "the first thing after the skip is inside the verdicts"
    reader.press("Enter")
    assert reader.js("document.activeElement.parentElement.open")
    tab_to(reader, "score")
    outline = reader.js(
        "(s => [s.outlineStyle, parseFloat(s.outlineWidth)])(getComputedStyle(document.activeElement))"
    )
    assert outline == ["solid", 3]
    for key, expected in (("Enter", "ascending"), (" ", "descending")):
        reader.press(key)
        assert reader.js("document.activeElement.parentElement.getAttribute('aria-sort')") == expected
    tab_to(reader, "#setting")
    before = reader.js("document.getElementById('setting').value")
    assert before == "streaming"
    reader.press("ArrowUp")
    assert reader.js("document.getElementById('setting').value") == "aware"
    assert reader.js("document.getElementById('policy').value") == "poisson", "the other choices stay"
    tab_to(reader, "#next")
    reader.press("Enter")
    assert "Example 1" in reader.js("document.getElementById('status').textContent")
    assert reader.js(FOCUS)[1] == "next", "the focus stays where it was"


@pytest.mark.parametrize("width", [320, 360])
def test_a_phone_never_scrolls_sideways(window: Reader, made: Made, width: int) -> None:
    window.open(made.page, width, 740)
    for example in range(len(HOSTILE)):
        window.choose("example", str(example))
        assert window.js("document.documentElement.scrollWidth") <= width
    window.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert window.js("document.documentElement.scrollWidth") <= width
    assert window.js(WIDER) == []
    assert window.js("Math.min(...[...document.querySelectorAll('select, .turn button')].filter(e => e.offsetParent)"
                     ".map(e => e.getBoundingClientRect().height))") >= 36  # fmt: skip
    assert window.js("parseFloat(getComputedStyle(document.querySelector('#chart text')).fontSize)") >= 11


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(window: Reader, made: Made, scheme: str) -> None:
    window.open(made.page, prefers_color_scheme=scheme)
    found = window.js(CONTRAST)
    assert found["seen"] > 400
    assert found["bad"] == []
    dark = window.js("parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])") < 60
    assert dark == (scheme == "dark")


def test_reduced_motion(window: Reader, made: Made) -> None:
    for choice, expected in (("no-preference", "smooth"), ("reduce", "auto")):
        window.open(made.page, prefers_reduced_motion=choice)
        assert window.js("getComputedStyle(document.documentElement).scrollBehavior") == expected


def test_landmarks_headings_names_and_ids(reader: Reader) -> None:
    levels = [
        int(level)
        for level in reader.js("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => h.tagName[1])")
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for landmark in ("header", "nav[aria-label]", "main", "footer"):
        assert reader.js(f"document.querySelectorAll('{landmark}').length") == 1
    ids = reader.js("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids)) > 100
    refers = reader.js("[...document.querySelectorAll('[aria-labelledby],[aria-describedby]')]"
                       ".flatMap(e => [e.getAttribute('aria-labelledby'), e.getAttribute('aria-describedby')])"
                       ".filter(Boolean).flatMap(t => t.split(' '))")  # fmt: skip
    assert set(refers) <= set(ids)
    links = reader.js(
        "[...document.querySelectorAll('a[href^=\"#\"], use')].map(e => e.getAttribute('href').slice(1))"
    )
    assert set(links) <= set(ids)
    nodes = reader.browser.call("Accessibility.getFullAXTree")["nodes"]
    nameless = [
        node["role"]["value"] for node in nodes
        if not node.get("ignored") and not node.get("name", {}).get("value")
        and node["role"]["value"] in {"image", "img", "button", "link", "combobox", "searchbox", "region", "table"}
    ]  # fmt: skip
    assert nameless == []
    images = [n for n in nodes if n.get("role", {}).get("value") in ("image", "img") and not n.get("ignored")]
    assert len(images) >= 9


def test_paper(reader: Reader) -> None:
    for kind, shown in (("", True), ("print", False)):
        reader.media(kind)
        for thing in ("nav", ".filters", "#choices"):
            assert bool(reader.js(f"document.querySelector('{thing}').getClientRects().length")) == shown
    found = reader.js(CONTRAST)
    assert found["bad"] == []
    reader.js("document.querySelectorAll('details').forEach(d => { d.open = false; })")
    reader.media()
    pdf = reader.printed()
    assert pdf.startswith(b"%PDF")
    assert 6 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 40
    assert reader.js("document.querySelectorAll('details[open]').length") == 0, "folded again afterwards"
    reader.js("dispatchEvent(new Event('beforeprint'))")
    assert reader.js("document.querySelectorAll('details:not([open])').length") == 0


@pytest.mark.parametrize("example", range(len(HOSTILE)))
def test_hostile_answers_are_text(reader: Reader, example: int) -> None:
    reader.choose("cell", "niah")
    reader.choose("example", str(example))
    text = HOSTILE[example]
    shown = reader.js("document.getElementById('answer').textContent")
    assert reader.js("[...document.querySelectorAll('.text *')].map(e => e.tagName)") == ["LI", "LI"]
    assert reader.js("window.hacked") is None
    assert reader.complaints() == []
    if len(text) > 2000:
        assert shown == f"{text[:2000]} … [cut: {len(text):,} characters in all]"
    elif "\x00" in text:
        assert shown == "nul␀ bell␇ escape␛[31m line\u2028paragraph\u2029⟦U+FEFF⟧"
    elif "\u202e" in text:
        assert shown == text.replace("\u202e", "⟦U+202E⟧").replace("\u202c", "⟦U+202C⟧")
        assert reader.js("getComputedStyle(document.getElementById('answer')).unicodeBidi") == "isolate"
    else:
        assert shown == text
    box = reader.js("(r => [r.width, r.height])(document.getElementById('answer').getBoundingClientRect())")
    assert box[0] < 1280
    assert 20 < box[1] <= 260
