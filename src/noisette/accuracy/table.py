"""Small tables as text and as HTML."""

from collections.abc import Sequence
from html import escape

__all__ = ["as_html", "as_text"]


def as_text(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """Lay out a table: columns of numbers to the right, others to the left.

    >>> print(as_text("Errors", ["kind", "sd"], [["a", "1.5"], ["longer", "20"]], ["b: not here"]))
    Errors
    kind     sd
    a       1.5
    longer   20
    b: not here
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    numeric = [all(cell[:1].isdigit() for cell in column) for column in zip(*rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        placed = zip(cells, widths, numeric, strict=True)
        return "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in placed).rstrip()

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
