"""Small tables as text and as HTML."""

from collections.abc import Sequence
from html import escape

__all__ = ["aligned", "as_html", "as_text"]


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out columns: those of numbers to the right, where `none` stands for a missing one, others to the left.

    >>> print(aligned(["kind", "n", "square"], [["two", "2", "4"], ["ten", "10", "none"]]))
    kind   n  square
    two    2       4
    ten   10    none
    """
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(cell[:1].isdigit() or cell == "none" for cell in column[1:]) for column in columns]

    def line(cells: Sequence[str]) -> str:
        placed = zip(cells, widths, right, strict=True)
        return "  ".join(cell.rjust(width) if last else cell.ljust(width) for cell, width, last in placed).rstrip()

    return "\n".join(map(line, [head, *rows]))


def as_text(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """Lay out a table with its title and notes.

    >>> print(as_text("Errors", ["kind", "sd"], [["a", "1.5"], ["longer", "20"]], ["b: not here"]))
    Errors
    kind     sd
    a       1.5
    longer   20
    b: not here
    """
    return "\n".join([title, aligned(head, rows), *notes])


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
