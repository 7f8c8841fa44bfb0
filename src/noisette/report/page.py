"""The page and its parts: one file, nothing from outside. What is called markup must be escaped already."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from noisette.answers import Column, Release
from noisette.answers.rendering import heading, shown
from noisette.charts import Chart
from noisette.charts.theme import DARK
from noisette.errors import InputError
from noisette.text import cell, html_table

__all__ = [
    "STYLE",
    "answer",
    "beside",
    "card",
    "code",
    "figure",
    "more",
    "page",
    "said",
    "table",
    "tiles",
    "true_texts",
]

_META = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'


def page(title: str, lead: str, parts: Sequence[str]) -> str:
    """A whole HTML file; `parts` are markup.

    >>> page("A & B", "Hello.", []).startswith("<!doctype html>")
    True
    """
    name = escape(title)
    body = f"<header><h1>{name}</h1><p>{escape(lead)}</p></header>{''.join(parts)}"
    head = f"{_META}<title>{name}</title><style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body><main>{body}</main></body></html>\n'


def card(title: str, text: str, *parts: str, note: str = "") -> str:
    """A section with a title, a sentence or two, markup, and a note."""
    foot = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2><p>{escape(text)}</p>{''.join(parts)}{foot}</section>"


def tiles(numbers: Sequence[tuple[str, str]]) -> str:
    """The few numbers that matter, each with what it is."""
    each = "".join(
        f"<div><strong>{escape(number)}</strong><span>{escape(what)}</span></div>" for number, what in numbers
    )
    return f'<div class="tiles">{each}</div>'


def beside(*parts: str) -> str:
    """Charts and tables side by side where there is room, else one below the other."""
    return f'<div class="sides">{"".join(f"<div>{part}</div>" for part in parts)}</div>'


def said(text: str) -> str:
    """What the curator said."""
    return f'<p class="said">{escape(text)}</p>'


def code(text: str) -> str:
    """A question as it was asked."""
    return f"<pre><code>{escape(text)}</code></pre>"


def more(title: str, text: str) -> str:
    """A paragraph that opens on demand."""
    return f"<details><summary>{escape(title)}</summary><p>{escape(text)}</p></details>"


# Tables: answers with ± beside each number, and others; every cell is escaped


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
        head.append(cell(heading(column), "th", kind))
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


# Charts inside a page: the picture itself, in the page's colours, with nothing that leads elsewhere


_SPACES = re.compile(r' (?:xmlns(?::\w+)?|version)="[^"]*"')


def figure(chart: Chart, caption: str = "") -> str:
    """A chart as markup; without the extra `plot` a sentence that says what is missing.

    >>> from noisette.charts import bars
    >>> figure(bars(["a"], {"n": ([3], [2], [4])}, title="a < b")).partition(">")[0]
    '<figure role="img" aria-label="a &lt; b"'
    """
    label = escape(chart.title.replace("\n", ", "))
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    try:
        drawn = chart.svg()
    except InputError as missing:
        return f'<p class="note">{label}: {escape(str(missing))}</p>'
    head, _, body = drawn.partition(">")
    return f'<figure role="img" aria-label="{label}">{_SPACES.sub("", head)}>{body}{below}</figure>'


# The look: system fonts, a few colours that differ with every kind of colour vision


_PAGE = """
:root { color-scheme: light dark; --paper: #faf8f5; --card: #ffffff; --ink: #24211d; --soft: #6b655d; --rule: #e5e0d8;
  --blue: #0068a8; --orange: #b84a00; --code: #f4f1ec; --nut: #8a5a2b; }
@media (prefers-color-scheme: dark) { :root { --paper: #191714; --card: #23201c; --ink: #ece7df; --soft: #a9a196;
  --rule: #3a352e; --blue: #66b8ec; --orange: #f59a4c; --code: #1c1916; --nut: #d9a871; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI",
  "DejaVu Sans", sans-serif; -webkit-text-size-adjust: 100%; }
main { max-width: 64rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
header { border-top: 6px solid var(--nut); padding-top: 1rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0.2rem 0 0.6rem; }
h2 { font-size: 1.2rem; margin: 0 0 0.3rem; }
p { margin: 0.4rem 0; max-width: 46rem; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  padding: 1.1rem 1.25rem; margin: 1.1rem 0; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 0.5rem 1.75rem; align-items: start; }
.sides > * { min-width: 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 13rem), 1fr));
  gap: 0.75rem; margin: 1.25rem 0; }
.tiles div { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 0.8rem 1rem; }
.tiles strong { display: block; font-size: 1.45rem; line-height: 1.25; color: var(--nut); }
.tiles span { color: var(--soft); font-size: 0.88rem; line-height: 1.35; display: block; }
.scroll { overflow-x: auto; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.22rem 1.1rem 0.22rem 0; white-space: nowrap;
  border-bottom: 1px solid var(--rule); }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; }
.half, .truth, .note { color: var(--soft); }
.note { font-size: 0.88rem; overflow-wrap: anywhere; }
pre { background: var(--code); border-radius: 6px; padding: 0.6rem 0.8rem; white-space: pre-wrap;
  font-size: 0.85rem; line-height: 1.45; margin: 0.6rem 0; }
code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
details { margin-top: 0.5rem; font-size: 0.9rem; }
summary { cursor: pointer; color: var(--blue); }
.said { border-left: 4px solid var(--orange); padding: 0.1rem 0 0.1rem 0.8rem; }
figure { margin: 0.5rem 0; }
figcaption { color: var(--soft); font-size: 0.82rem; }
svg { display: block; max-width: 100%; height: auto; }
"""

# Charts bring the colours of their theme; on a dark screen the page replaces each by its counterpart.
_REPLACED = "\n".join(
    f'  svg [{ink}="{light}"] {{ {ink}: {dark}; }}' for light, dark in DARK.items() for ink in ("fill", "stroke")
)
STYLE = f"{_PAGE}@media (prefers-color-scheme: dark) {{\n{_REPLACED}\n}}\n"
