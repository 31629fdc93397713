"""One table in three forms: CSV in full precision for machines, Markdown and LaTeX rounded and escaped for people."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from kvcert.files import write_atomic

#: Columns that people need only where they differ between rows.
CONTEXT = ("model", "length")
_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "−": "$-$", "∞": r"$\infty$", "κ": r"$\kappa$",
    "≤": r"$\leq$", "≥": r"$\geq$", "✓": r"$\checkmark$", "✗": r"$\times$", "×": r"$\times$", "<": r"\textless{}",
    ">": r"\textgreater{}", "π": r"$\pi$", "Δ": r"$\Delta$", "→": r"$\to$",
}  # fmt: skip
_MARKDOWN = {"\\": "\\\\", "|": "\\|", "\n": " ", "<": "&lt;", "*": "\\*", "`": "\\`"}


@dataclass
class Table:
    """A table and how people should read it.

    Attributes
    ----------
    frame : DataFrame
        What the CSV holds, column names included.
    titles : dict
        Column → heading for people; a column without a title is in the CSV only.
    digits : dict
        Column → decimals (default 3); −1 for as many as the number has (`0.125`).
    people : DataFrame, optional
        What Markdown and LaTeX show instead of `frame`: same columns, friendlier values.
    """

    frame: pd.DataFrame
    titles: dict[str, str]
    digits: dict[str, int] = field(default_factory=dict)
    people: pd.DataFrame | None = None

    def shown(self) -> list[str]:
        """Columns for people: those with a title, without `model` and `length` where they say the same in every row."""
        names = [name for name in self.frame.columns if name in self.titles]
        return [name for name in names if name not in CONTEXT or self.frame[name].nunique(dropna=False) > 1]


def text(value: Any, digits: int = 3) -> str:
    """A value for people: rounded, thousands grouped, `–` for nothing."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (bool,)) or type(value).__name__ == "bool":
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, float) or (hasattr(value, "dtype") and value.dtype.kind == "f"):
        return (f"{value:g}" if digits < 0 else f"{value:,.{digits}f}").replace("-", "−")
    return f"{value:,}".replace("-", "−")


def escape_markdown(value: str) -> str:
    """Keep a value inside its Markdown cell."""
    return "".join(_MARKDOWN.get(letter, letter) for letter in value)


def escape_latex(value: str) -> str:
    """Escape LaTeX's special characters, and the symbols that a default font lacks."""
    return "".join(_TEX.get(letter, letter) for letter in value).replace("\n", " ")


def markdown(table: Table, caption: str) -> str:
    """A Markdown table under its caption."""
    names = table.shown()
    right = [_right(table.frame[name]) for name in names]
    lines = [
        "| " + " | ".join(escape_markdown(table.titles[name]) for name in names) + " |",
        "|" + "|".join("---:" if r else "---" for r in right) + "|",
    ]
    lines += ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in _rows(table, names)]
    if table.frame.empty:
        lines.append("\nNothing to show: no rows.")
    return f"{escape_markdown(caption)}\n\n" + "\n".join(lines) + "\n"


def latex(table: Table, caption: str, stem: str) -> str:
    """A LaTeX table (booktabs, amssymb) with caption and label."""
    names = table.shown()
    align = "".join("r" if _right(table.frame[name]) else "l" for name in names)
    head = " & ".join(escape_latex(table.titles[name]) for name in names)
    body = "".join(" & ".join(map(escape_latex, row)) + " \\\\\n" for row in _rows(table, names))
    body = body or f"\\multicolumn{{{len(names)}}}{{l}}{{nothing to show: no rows}} \\\\\n"
    return (
        "% needs \\usepackage{booktabs,amssymb}\n\\begin{table}\n\\centering\n"
        f"\\caption{{{escape_latex(caption)}}}\n\\label{{tab:{stem}}}\n\\begin{{tabular}}{{{align}}}\n\\toprule\n"
        f"{head} \\\\\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n\\end{{table}}\n"
    )


def write(table: Table, folder: Path, stem: str, caption: str) -> list[Path]:
    """Write {folder}/{stem}.csv, .md and .tex."""
    contents = {
        ".csv": table.frame.to_csv(index=False, lineterminator="\n"),
        ".md": markdown(table, caption),
        ".tex": latex(table, caption, stem),
    }
    paths = []
    for suffix, content in contents.items():
        paths.append(Path(folder) / f"{stem}{suffix}")
        write_atomic(paths[-1], content)
    return paths


def _right(column: pd.Series) -> bool:
    """Numbers are set flush right, truth values and text flush left."""
    return (
        len(column) > 0 and pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    )


def _rows(table: Table, names: list[str]) -> list[list[str]]:
    frame = table.frame if table.people is None else table.people
    columns = [[text(value, table.digits.get(name, 3)) for value in frame[name]] for name in names]
    return [list(row) for row in zip(*columns, strict=True)]
