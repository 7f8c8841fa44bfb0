"""Tables in HTML: answers with ± beside each number, and others; every cell is escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from noisette.answers import Column, Release
from noisette.answers.rendering import shown

__all__ = ["answer", "table", "true_texts"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    """A table of texts; the columns in `numbers` stand to the right.

    >>> table(["a"], [["<b>"]])
    '<div class="scroll"><table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table></div>'
    """
    kinds = [' class="number"' if i in numbers else "" for i in range(len(head))]
    return _laid([f"<th{k}>{escape(c)}</th>" for c, k in zip(head, kinds, strict=True)], [
        [f"<td{k}>{escape(c)}</td>" for c, k in zip(row, kinds, strict=True)] for row in rows
    ])  # fmt: skip


def answer(release: Release, truth: Mapping[str, NDArray[np.float64]] | None = None) -> str:
    """An answer, each number with its ±; for invented data the truth can stand beside it."""
    head, laid = [], []
    for column in release.columns:
        kind = ' class="number"' if column.measured else ""
        head.append(f"<th{kind}>{escape(column.name)}</th>")
        laid.append([f"<td{kind}>{_number(cell.value, cell.half)}</td>" for cell in shown(column)])
        if truth is not None and column.name in truth:
            head.append('<th class="number truth">truth</th>')
            laid.append(
                [f'<td class="number truth">{escape(text)}</td>' for text in true_texts(column, truth[column.name])]
            )
    return _laid(head, list(zip(*laid, strict=True)))


def _number(value: str, half: str) -> str:
    return escape(value) + (f' <span class="half">± {escape(half)}</span>' if half else "")


def true_texts(column: Column, truth: NDArray[np.float64]) -> list[str]:
    """The truth with as many digits as the answer."""
    import pyarrow

    half = column.half
    whole = pyarrow.types.is_integer(column.values.type)
    same = pyarrow.array(truth.round().astype(np.int64) if whole else truth)
    return [cell.value for cell in shown(replace(column, values=same, shown=half))]


def _laid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in [head, *rows])
    return f'<div class="scroll"><table>{body}</table></div>'
