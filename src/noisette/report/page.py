"""The page around it: one file, nothing from outside. What is called markup must be escaped already."""

from collections.abc import Sequence
from html import escape

from noisette.report.style import STYLE

__all__ = ["beside", "card", "code", "more", "page", "said", "tiles"]

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
