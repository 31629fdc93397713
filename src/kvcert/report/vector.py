"""Matplotlib's SVG made fit for a page: ids of its own, no style elements, no style attributes, fewer digits.

A page holds several drawings, and ids are the page's, not the drawing's: each gets a prefix. Styles become
presentation attributes, so the page's content security policy can forbid every style but its own sheet.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

XLINK = "{http://www.w3.org/1999/xlink}href"
PIXELS, NARROW = 1.75, 300.0  # pixels per point on the page; widest drawing of one column, in points
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_LINK = re.compile(r"url\(#([^)]+)\)")
#: Ids that matplotlib makes from a hash: of a marker, a clip path, an image.
_HASHED = re.compile(r"[a-zA-Z]+[0-9a-f]{10}")
#: Matplotlib sets these two in a style element, for everything in the drawing.
_INHERITED = {"stroke-linejoin": "round", "stroke-linecap": "butt"}


def inline(svg: str, prefix: str, label: str) -> str:
    """Turn a whole SVG document into an `<svg>` element for an HTML page.

    Parameters
    ----------
    svg : the document as matplotlib wrote it.
    prefix : put before every id and every reference to one; unique on the page.
    label : text alternative; the element gets the role `img`.
    """
    root = ET.fromstring(svg)
    width = root.get("width", "").removesuffix("pt")
    for parent in root.iter():
        for child in [c for c in parent if _local(c.tag) in ("style", "metadata")]:
            parent.remove(child)
    # Hashed ids are numbered as they are met: matplotlib hashes memory addresses too, and equal logs give equal pages.
    used: dict[str, str] = {}
    for element in root.iter():
        for name in _references(element):
            used.setdefault(name, f"{prefix}{len(used) + 1 if _HASHED.fullmatch(name) else name}")
    for element in root.iter():
        element.tag = _local(element.tag)
        _rewrite(element, used)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= _INHERITED | {"role": "img", "aria-label": label, "focusable": "false"}
    root.attrib |= {
        "width": str(round(float(width) * PIXELS)),
        "class": "wide" if float(width) > NARROW else "narrow",
    }
    return ET.tostring(root, encoding="unicode")


def _local(tag: str) -> str:
    return tag.rsplit("}", 1)[-1]


def _references(element: ET.Element) -> list[str]:
    names = [value[1:] for key in (XLINK, "href") if (value := element.get(key, "")).startswith("#")]
    return names + [name for value in element.attrib.values() for name in _LINK.findall(value)]


def _rewrite(element: ET.Element, used: dict[str, str]) -> None:
    for rule in element.attrib.pop("style", "").split(";"):
        name, colon, value = rule.partition(":")
        if colon:
            element.set(name.strip(), value.strip())
    if XLINK in element.attrib:
        element.set("href", element.attrib.pop(XLINK))
    own = element.attrib.pop("id", None)
    if own in used:
        element.set("id", used[own])
    for key, value in element.attrib.items():
        if key == "href" and value.startswith("#"):
            element.set(key, f"#{used[value[1:]]}")
        elif "url(#" in value:
            element.set(key, _LINK.sub(lambda found: f"url(#{used[found[1]]})", value))
        elif key in ("d", "x", "y"):
            element.set(
                key, _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
            )
    if element.text is not None and not element.text.strip():
        element.text = None
    element.tail = None
