"""`noisette budget`: what is spent and what is left."""

from fractions import Fraction

import typer

from noisette.cli.common import Analyst, Folder, Json, ledger_of, patience

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
        record = found.to_json()
    if json:
        typer.echo(record)
        return
    from rich.console import Console
    from rich.text import Text

    share = found.spent.size / found.total.size
    full = min(_WIDTH, -(-share * _WIDTH // 1))  # rounded up
    bar = Text("█" * full, "red" if share > Fraction(9, 10) else "green") + Text("░" * (_WIDTH - full), "dim")
    console = Console(highlight=False)
    console.print(bar, f"{float(share):.1%} spent")
    console.print(repr(found), soft_wrap=True)
