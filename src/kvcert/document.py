"""Markdown for people and one self-contained HTML file of it: registration export and audit pages."""

from __future__ import annotations

import html
from collections.abc import Sequence

from kvcert.errors import KvcertError

STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: 0.86em; margin: 1em 0 }
th, td { border: 1px solid #8888; padding: 0.25em 0.55em; text-align: left; vertical-align: top }
th { background: #8882 }
code { overflow-wrap: anywhere }
pre { background: #8881; padding: 0.7em; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere }
@media print { body { max-width: none; font-size: 11px } }
"""
#: Letters that begin something in Markdown.
SPECIAL = frozenset("\\`*_{}[]<>#|~!&")


def cell(value: object) -> str:
    """Text that stays text inside a heading or a table cell."""
    text = str(value).replace("\r", " ").replace("\n", " ")
    return "".join(f"\\{letter}" if letter in SPECIAL else letter for letter in text)


def grid(heads: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [heads, *rows]
    text = ["| " + " | ".join(cell(value) for value in line) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(heads), *text[1:]])


def block(text: str) -> str:
    """An indented code block: nothing inside it can end it."""
    return "\n".join("    " + line for line in text.replace("\r", "\\r").splitlines()) or "    "


def as_html(title: str, text: str) -> str:
    """One HTML file without scripts, images or addresses; raw HTML in `text` is shown, not obeyed."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise KvcertError("HTML needs the package markdown-it-py; pip install markdown-it-py") from None
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
