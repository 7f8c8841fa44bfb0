"""Small tables as text and as HTML."""

from collections.abc import Sequence
from html import escape

__all__ = ["as_html", "as_text"]


def as_text(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """Lay out a table: the first column to the left, the others to the right.

    >>> print(as_text("Errors", ["kind", "sd"], [["a", "1.5"], ["longer", "20"]], ["b: not here"]))
    Errors
    kind     sd
    a       1.5
    longer   20
    b: not here
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        return "  ".join([first.strip().ljust(widths[0]), *rest]).rstrip()

    return "\n".join([title, line(head), *map(line, rows), *notes])


def as_html(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """Lay out the same table for a notebook.

    >>> as_html("<b>", ["n"], [["1"]])
    '<table><caption>&lt;b&gt;</caption><tr><th>n</th></tr><tr><td>1</td></tr></table>'
    """

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = line(head, "th") + "".join(line(row, "td") for row in rows)
    table = f"<table><caption>{escape(title)}</caption>{body}</table>"
    return table + "".join(f"<p>{escape(note)}</p>" for note in notes)
