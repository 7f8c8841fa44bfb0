"""`noisette budget`: what is spent and what is left."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import typer

from noisette.cli.common import Analyst, Folder, Json, as_json, ledger_of, patience
from noisette.privacy import Promise

if TYPE_CHECKING:
    from noisette.curator.budget import Budget

__all__ = ["budget"]

_WIDTH = 50


def budget(json: Json = False, analyst: Analyst = None, project: Folder = None) -> None:
    """Show what is spent, what is left, and how many more questions like the last one fit.

    The tight figure beside what is spent composes all charges tightly: what they promise had all of them been settled
    in advance. What the filter says holds for costs that were chosen along the way.
    """
    from noisette.curator.budget import Budget

    with patience("Reading the ledger"), ledger_of(project) as book:
        found = Budget.of(book, analyst)
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
    console.print(repr(found), soft_wrap=True)


def _size(promise: Promise) -> Fraction:
    return promise.size


def _told(found: "Budget") -> dict[str, Any]:
    from noisette.answers.record import stated

    shares = found.shares.items()
    return {
        "budget": stated(found.total),
        "spent": stated(found.spent),
        "left": stated(found.left),
        "tight": None if found.tight is None else {"epsilon": found.tight, "delta": str(found.delta)},
        "charges": len(found.entries),
        "more_like_last": found.more,
        "shares": {who: {name: stated(part) for name, part in share._asdict().items()} for who, share in shares},
    }
