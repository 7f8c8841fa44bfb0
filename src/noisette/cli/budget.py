"""`noisette budget`: what is spent and what is left."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import typer

from noisette.cli.common import Folder, Json, as_json, ledger_of, patience
from noisette.privacy import ZCDP, Promise

if TYPE_CHECKING:
    from noisette.curator.budget import Budget

__all__ = ["budget"]

_WIDTH = 50


def budget(json: Json = False, project: Folder = None) -> None:
    """Show what is spent, what is left, and how many more questions like the last one fit."""
    from noisette.curator.budget import Budget

    with patience("Reading the ledger"), ledger_of(project) as book:
        found = Budget(book.budget, book.spent, book.left, book.entries, book.allows)
        told = _told(found)
    if json:
        typer.echo(as_json(told))
        return
    from rich.console import Console
    from rich.text import Text

    share = _size(found.spent) / _size(found.total)
    full = min(_WIDTH, -(-share * _WIDTH // 1))  # rounded up
    bar = Text("█" * full, "red" if share > Fraction(9, 10) else "green") + Text("░" * (_WIDTH - full), "dim")
    console = Console(highlight=False)
    console.print(bar, f"{float(share):.1%} spent")
    console.print(repr(found))


def _size(promise: Promise) -> Fraction:
    return promise.rho if isinstance(promise, ZCDP) else promise.eps


def _told(found: "Budget") -> dict[str, Any]:
    from noisette.releases.record import stated

    return {
        "budget": stated(found.total),
        "spent": stated(found.spent),
        "left": stated(found.left),
        "charges": len(found.entries),
        "more_like_last": found.more,
    }
