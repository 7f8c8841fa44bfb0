"""Small tables as text and as HTML, and texts of others with nothing in them that is not seen."""

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["aligned", "as_html", "as_text", "cell", "html_table", "in_notebook", "visible"]

_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_STYLE = """
.noisette table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.4em 0; }
.noisette caption { text-align: left; font-weight: 600; padding: 0.2em 0; }
.noisette th, .noisette td { text-align: left; padding: 0.25em 1.2em 0.25em 0; white-space: nowrap;
  background: none; border-bottom: 1px solid rgba(128, 128, 128, 0.3); }
.noisette th { font-weight: 600; opacity: 0.7; }
.noisette .number { text-align: right; }
.noisette .light, .noisette p { opacity: 0.65; }
.noisette p { margin: 0.2em 0; max-width: 46em; }
.noisette .bar { width: 20em; max-width: 100%; height: 0.7em; margin: 0.4em 0; border-radius: 0.35em; overflow: hidden;
  background: rgba(128, 128, 128, 0.25); }
.noisette .bar div { height: 100%; background: #8a5a2b; }
"""


def visible(text: str, keep: str = "") -> str:
    r"""A text with escapes, as JSON has them, in place of controls, line breaks and invisible or turning characters.

    A terminal obeys some of them (ESC, the C1 controls), and others hide a part of a text or turn its order around.
    Those to `keep` stay.

    >>> print(visible("ward[1] café"), visible("a\x1b[2J\n"), visible("\u202eb", keep="\n"))
    ward[1] café a\u001b[2J\n \u202eb
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or unicodedata.category(c) not in _UNSEEN else _escape(c) for c in text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return _SHORT.get(character) or "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out columns, of texts as they can be seen (`visible`): those of numbers to the right, others to the left.

    `none` stands for a number that is missing.

    >>> print(aligned(["kind", "n", "square"], [["two", "2", "4"], ["ten", "10", "none"]]))
    kind   n  square
    two    2       4
    ten   10    none
    """
    columns = [list(map(visible, column)) for column in zip(head, *rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    right = [all(cell.lstrip("-")[:1].isdigit() or cell == "none" for cell in column[1:]) for column in columns]

    def line(cells: Sequence[str]) -> str:
        placed = zip(cells, widths, right, strict=True)
        return "  ".join(cell.rjust(width) if last else cell.ljust(width) for cell, width, last in placed).rstrip()

    return "\n".join(map(line, zip(*columns, strict=True)))


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

    >>> as_html("<b>", ["n"], [["1"]]).partition("</style>")[2]
    '<table><caption>&lt;b&gt;</caption><tr><th>n</th></tr><tr><td>1</td></tr></table></div>'
    """
    cells = [[cell(text) for text in row] for row in rows]
    caption = cell(title, "caption") if title else ""
    table = html_table([cell(text, "th") for text in head], cells, caption=caption)
    return in_notebook(table, *(cell(note, "p") for note in notes))


def in_notebook(*parts: str) -> str:
    """HTML in the look of the report, on the paper and in the ink of the notebook that shows it, light or dark."""
    return f'<div class="noisette"><style>{_STYLE}</style>{"".join(parts)}</div>'


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
