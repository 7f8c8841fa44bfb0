"""`noisette ledger`: what was charged, whether it is whole, and what only the owner does."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Folder, Json, amount, as_json, ledger_of, patience, project_of
from noisette.cli.entries import as_table
from noisette.errors import InputError

if TYPE_CHECKING:
    from noisette.curator.project import Project
    from noisette.privacy import Promise

__all__ = ["ledger"]

ledger = typer.Typer(help="Show and verify what was charged; record what the owner does.")
Why: Any = Annotated[str, typer.Option(help="The reason, for those who read the ledger later.")]


@ledger.callback(invoke_without_command=True)
def _alone(context: typer.Context) -> None:
    """Show and verify what was charged; record what the owner does."""
    if context.invoked_subcommand is None:
        show()


@ledger.command()
def show(
    last: Annotated[int, typer.Option(help="How many entries, counted from the end.", min=1)] = 20,
    json: Json = False,
    project: Folder = None,
) -> None:
    """Show the last entries; with --json all of what they say."""
    with patience("Reading the ledger"), ledger_of(project) as book:
        history = book.history
    if json:
        typer.echo(as_json({"entries": history[-last:]}))
        return
    from rich.console import Console

    Console(highlight=False).print(as_table(history[-last:]))


@ledger.command()
def verify(
    head: Annotated[str | None, typer.Option(help="A head that was written down before.", metavar="TEXT")] = None,
    json: Json = False,
    project: Folder = None,
) -> None:
    """Read all entries again and hold each claim to its mechanisms; a fault ends with 4 and names the entry."""
    with patience("Verifying"), ledger_of(project) as book:
        found, charges = book.verify(head=head), book.check()
    if json:
        typer.echo(as_json({"whole": True, "entries": found.number, "charges": charges, "head": str(found)}))
        return
    against = "" if head is None else ", and the head that you kept is on its chain"
    typer.echo(f"The ledger is whole: {found.number:,} entries, {charges:,} of them charges{against}.\nhead {found}")


@ledger.command()
def head(json: Json = False, project: Folder = None) -> None:
    """Print the head: keep it where those who can write the ledger cannot reach it."""
    with ledger_of(project) as book:
        found = book.head()
    typer.echo(as_json({"head": str(found)}) if json else str(found))


@ledger.command()
def budget(why: Why, json: Json = False, project: Folder = None) -> None:
    """As the owner: make the budget that the policy names now the ledger's."""
    _act(project, lambda found: found.change_budget(why=why), json)


@ledger.command()
def share(
    shares: Annotated[list[str], typer.Argument(help="ana=0.5, or bob=0.5,1e-7, or cleo=rho=0.01.", metavar="NAME=…")],
    why: Why,
    json: Json = False,
    project: Folder = None,
) -> None:
    """As the owner: give analysts shares; from then on only those with a share are answered."""
    given = _shares(shares)
    _act(project, lambda found: found.share(given, why=why), json)


@ledger.command()
def accept(why: Why, json: Json = False, project: Folder = None) -> None:
    """As the owner: go on with a ledger that was copied, moved or restored."""
    _act(project, lambda found: found.accept(why=why), json)


@ledger.command()
def rebind(why: Why, json: Json = False, project: Folder = None) -> None:
    """As the owner: the data moved or have other columns; the next question says what they are."""
    _act(project, lambda found: found.rebind(why=why), json)


def _shares(texts: list[str]) -> "dict[str, Promise]":
    pairs = [text.partition("=") for text in texts]
    if any(not (who and size) for who, _, size in pairs) or len({who for who, *_ in pairs}) < len(pairs):
        raise InputError("Name each analyst once with a share, such as ana=0.5 bob=0.5,1e-7.")
    return {who: amount(size, f"The share of {who}") for who, _, size in pairs}


def _act(folder: Path | None, act: Callable[["Project"], None], json: bool) -> None:
    act(project_of(folder))
    with ledger_of(folder) as book:
        now = str(book.head())
    typer.echo(as_json({"recorded": True, "head": now}) if json else f"Recorded.\nhead {now}")
