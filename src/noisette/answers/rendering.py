"""Columns of an answer for people to read: numbers with their ± beside them, one below the other."""

import io
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from noisette.answers.column import Column
from noisette.text import cell, html_table, in_notebook, visible

if TYPE_CHECKING:
    import pyarrow

__all__ = ["UNKNOWN", "Cell", "as_csv", "as_html", "as_text", "below", "heading", "shown"]

_MOST_ROWS, _LONGEST, _LONGEST_NAME = 40, 40, 100
_PICTURE, _LINES = 115, 5
_LIGHT = ' class="light"'


UNKNOWN, SUPPRESSED = "no answer", "suppressed"


class Cell(NamedTuple):
    """A value, and for a number what comes after the ±."""

    value: str
    half: str = ""


def as_text(columns: Sequence[Column]) -> list[str]:
    """The head and the first rows, each number above the other."""
    laid = [_laid(column) for column in columns]
    more = _more(columns)
    return ["  ".join(row).rstrip() for row in zip(*laid, strict=True)] + ([more] if more else [])


def as_html(columns: Sequence[Column], below: Sequence[str]) -> str:
    """The same for a notebook: numbers to the right, what follows the ± in a lighter colour, and lines below."""
    head = [cell(heading(column), "th", _place(column)) for column in columns]
    rows = zip(*([_td(column, part) for part in shown(column)] for column in columns), strict=True)
    notes = [note for note in (_more(columns), *below) if note]
    return in_notebook(html_table(head, rows), *(cell(note, "p") for note in notes))


def below(notes: Sequence[str]) -> list[str]:
    """Notes as a few lines below the title of a picture; what does not fit in is counted."""
    lines = [line for note in notes for line in textwrap.wrap(note, _PICTURE)]
    more = f"… and more below the printed answer ({len(notes)} notes)"
    return lines if len(lines) <= _LINES else [*lines[: _LINES - 1], more]


def as_csv(table: "pyarrow.Table") -> str:
    """An Arrow table as CSV: texts in quotes, and with an apostrophe before those that a spreadsheet would run.

    >>> import pyarrow
    >>> print(as_csv(pyarrow.table({"ward": ["=1+1", "east"], "n": [-3, 5]})))
    "ward","n"
    "'=1+1",-3
    "east",5
    <BLANKLINE>
    """
    import pyarrow
    from pyarrow import compute
    from pyarrow.csv import write_csv

    def harmless(values: Any) -> Any:
        return compute.replace_substring_regex(values, r"^([=+\-@\t\r\n])", r"'\1")

    texts = [pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) for kind in table.schema.types]
    columns = [harmless(c) if text else c for c, text in zip(table.columns, texts, strict=True)]
    buffer = io.BytesIO()
    write_csv(pyarrow.table(columns, harmless(pyarrow.array(table.column_names)).to_pylist()), buffer)
    return buffer.getvalue().decode()


def _td(column: Column, part: Cell) -> str:
    half = " " + cell(f"± {part.half}", "span", _LIGHT) if part.half else ""
    return cell(part.value, "td", _place(column), half)


def _place(column: Column) -> str:
    return ' class="number"' if _number(column) else ""


def _more(columns: Sequence[Column]) -> str:
    size = len(columns[0].values) if columns else 0
    return f"... and {size - _MOST_ROWS:,} more rows" if size > _MOST_ROWS else ""


def _number(column: Column) -> bool:
    import pyarrow.types

    kind = column.values.type
    return column.measured or bool(pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind))


def _laid(column: Column) -> list[str]:
    """A column as texts of one width: values end at one place, and so do what follows the ±."""
    cells = shown(column)
    values = max((len(cell.value) for cell in cells), default=0)
    halves = max((len(cell.half) for cell in cells), default=0)
    texts = [
        (cell.value.rjust(values) if _number(column) else cell.value)
        + (f" ± {cell.half.rjust(halves)}" if cell.half else "")
        for cell in cells
    ]
    name = heading(column)
    width = max(map(len, [name, *texts]))
    place = (
        str.rjust if _number(column) and all(cell.half for cell in cells) == any(c.half for c in cells) else str.ljust
    )
    return [place(text, width) for text in [name, *texts]]


def heading(column: Column) -> str:
    """The name of a column on one line, as people read it."""
    return _one_line(column.name, _LONGEST_NAME)


def shown(column: Column) -> list[Cell]:
    """The first rows of a column as people read them; a number that is not there was suppressed, or has no answer."""
    values = column.values[:_MOST_ROWS].to_pylist()
    if not column.measured:
        return [Cell(_plain(value)) for value in values]
    halves, suppressed = column.half[:_MOST_ROWS].tolist(), column.suppressed[:_MOST_ROWS].tolist()
    words = [SUPPRESSED if one else UNKNOWN for one in suppressed]
    return [
        Cell(word) if value is None else _measured(value, half)
        for value, half, word in zip(values, halves, words, strict=True)
    ]


def _plain(value: Any) -> str:
    """A key on one line."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return _one_line(str(value), _LONGEST)


def _one_line(text: str, most: int) -> str:
    """A text without what moves a terminal's cursor or colours, and not too long.

    >>> print(_one_line("a\\x1b[31mb", 9), _one_line("a" * 99, 4))
    a\\u001b[… aaa…
    """
    seen = visible(text[: most + 1])
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


def _measured(value: Any, half: float) -> Cell:
    """A number rounded to what its error bar leaves of it.

    >>> [f"{value} ± {half}" for value, half in (_measured(1234.5678, 12.3), _measured(0.123456, 0.0236))]
    ['1,235 ± 12', '0.123 ± 0.024']
    """
    if math.isnan(value):
        return Cell(UNKNOWN)
    if not math.isfinite(half):
        return Cell(f"{value:,.6g}", "?")
    if half == 0:
        return Cell(_plain(value), "0")
    if isinstance(value, int):
        return Cell(f"{value:,}", f"{math.ceil(half):,}")
    digits = max(0, 1 - math.floor(math.log10(half)))
    return Cell(f"{value:,.{digits}f}", f"{half:,.{digits}f}")
