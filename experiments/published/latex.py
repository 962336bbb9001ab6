"""A comparison as a LaTeX table, with its remarks as text below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from experiments.published.comparison import Comparison, Line
from experiments.published.table import UNKNOWN

MARKS = "abcdefghijklmnopqrstuvwxyz"
"""Of printed values that are known to be wrong, by the number of the reason."""
_LETTERS = {
    "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "{": r"\{", "}": r"\}",
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$", "–": "--", "—": "---",
    "α": r"$\alpha$", "×": r"$\times$", "Δ": r"$\Delta$",
}  # fmt: skip
_CODE = re.compile(r"`([^`]*)`")
_QUOTED = re.compile(r'"([^"]*)"')
_MARKED = re.compile(r"\(([a-z])\) ")


def latex(comparison: Comparison, remarks: Sequence[str]) -> str:
    r"""A table of booktabs: a block for each column, a clear best in bold, remarks below it.

    Args:
        comparison: table and results.
        remarks: in Markdown, as below the table in that format; a mark in front, such as `(a)`, is
            that of printed values.
    """
    table, metrics = comparison.table, comparison.table.metrics
    sides = sides_of(comparison.lines)
    width = len(sides) * len(metrics) + 2
    names = " & ".join(
        rf"\multicolumn{{{len(sides)}}}{{c}}{{{escaped(metric.name)}}}" for metric in metrics
    )
    lines = [
        f"% {table.name}: {table.item}. {table.paper}. {table.caption}",
        rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        r"\toprule",
        rf"Method & {names} & seeds \\",
        f"& {' & '.join([*sides] * len(metrics))} & " + r"\\",
    ]
    for title, block in groupby(comparison.lines, key=lambda line: line.column.title):
        heading = rf"\multicolumn{{{width}}}{{l}}{{{escaped(title)}}} \\"
        lines += [r"\midrule", heading, *(_line(line, len(sides)) for line in block)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, *_below(remarks), ""])


def sides_of(lines: Sequence[Line]) -> tuple[str, ...]:
    """Theirs and ours, or ours alone where nothing is printed.

    Args:
        lines: of a table.
    """
    printed = any(cell.printed.text != UNKNOWN for line in lines for cell in line.cells)
    return ("theirs", "ours") if printed else ("ours",)


def escaped(text: str) -> str:
    """Text with the letters that LaTeX takes for commands written otherwise."""
    return "".join(_LETTERS.get(letter, letter) for letter in text)


def _line(line: Line, sides: int) -> str:
    cells = [escaped(line.row.name)]
    for cell in line.cells:
        marks = "".join(f"$^{{{MARKS[i]}}}$" for i in cell.broken)
        ours = escaped(cell.ours)
        best = rf"\textbf{{{ours}}}" if cell.best else ours
        cells += [f"{escaped(cell.printed.text)}{marks}", best][-sides:]
    return f"{' & '.join([*cells, str(len(line.seeds))])} " + r"\\"


def _below(remarks: Sequence[str]) -> list[str]:
    """Remarks as paragraphs of small type, as wide as the text."""
    if not remarks:
        return []
    paragraphs = [rf"{_typeset(remark)}\par" for remark in remarks]
    return [
        "",
        r"\smallskip",
        r"\begin{minipage}{\linewidth}",
        r"\footnotesize\raggedright",
        *paragraphs,
        r"\end{minipage}",
    ]


def _typeset(remark: str) -> str:
    r"""Markdown as LaTeX: a mark in front as a superscript, code by `\texttt`, quotes as pairs."""
    mark = _MARKED.match(remark)
    text = escaped(remark[mark.end() :] if mark else remark)
    text = _QUOTED.sub(r"``\1''", _CODE.sub(r"\\texttt{\1}", text))
    return f"$^{{{mark[1]}}}$ {text[:1].upper()}{text[1:]}" if mark else text
