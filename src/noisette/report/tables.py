"""Tables in HTML: answers with ± beside each number, and others; every cell is escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from noisette.answers import Column, Release
from noisette.answers.rendering import shown
from noisette.text import cell, html_table

__all__ = ["answer", "table", "true_texts"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    """A table of texts; the columns in `numbers` stand to the right.

    >>> table(["a"], [["<b>"]])
    '<div class="scroll"><table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table></div>'
    """
    kinds = [' class="number"' if i in numbers else "" for i in range(len(head))]
    cells = [[cell(text, "td", kind) for text, kind in zip(row, kinds, strict=True)] for row in rows]
    return _scrolled([cell(text, "th", kind) for text, kind in zip(head, kinds, strict=True)], cells)


def answer(release: Release, truth: Mapping[str, NDArray[np.float64]] | None = None) -> str:
    """An answer, each number with its ±; for invented data the truth can stand beside it."""
    head, laid = [], []
    for column in release.columns:
        kind = ' class="number"' if column.measured else ""
        head.append(cell(column.name, "th", kind))
        laid.append([cell(part.value, "td", kind, _half(part.half)) for part in shown(column)])
        if truth is not None and column.name in truth:
            head.append('<th class="number truth">truth</th>')
            known = true_texts(column, truth[column.name])
            laid.append([cell(text, "td", ' class="number truth"') for text in known])
    return _scrolled(head, list(zip(*laid, strict=True)))


def _half(half: str) -> str:
    return " " + cell(f"± {half}", "span", ' class="half"') if half else ""


def true_texts(column: Column, truth: NDArray[np.float64]) -> list[str]:
    """The truth with as many digits as the answer."""
    import pyarrow

    half = column.half
    whole = pyarrow.types.is_integer(column.values.type)
    same = pyarrow.array(truth.round().astype(np.int64) if whole else truth)
    return [part.value for part in shown(replace(column, values=same, shown=half))]


def _scrolled(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f'<div class="scroll">{html_table(head, rows)}</div>'
