"""Small tables as text and as HTML."""

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["aligned", "as_html", "as_text", "cell", "html_table"]


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

    cells = [[cell(text) for text in row] for row in rows]
    table = html_table([cell(text, "th") for text in head], cells, caption=f"<caption>{escape(title)}</caption>")
    return table + "".join(cell(note, "p") for note in notes)


def cell(text: str, tag: str = "td", attributes: str = "", after: str = "") -> str:
    """An element that holds a text, escaped, and HTML `after` it.

    >>> cell("a < b", attributes=' class="number"')
    '<td class="number">a &lt; b</td>'
    """
    return f"<{tag}{attributes}>{escape(text)}{after}</{tag}>"


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table of cells that are HTML already."""
    lines = "".join(f"<tr>{''.join(row)}</tr>" for row in [head, *rows])
    return f"<table>{caption}{lines}</table>"
