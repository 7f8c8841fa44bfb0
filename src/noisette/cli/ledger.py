"""`noisette budget`, `check` and `ledger`: what was charged, whether it is whole, and what only the owner does."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Analyst, Folder, Json, amount, as_json, ledger_of, patience, project_of, text_of
from noisette.cli.entries import as_table
from noisette.errors import InputError
from noisette.terminal import console, echo

if TYPE_CHECKING:
    from noisette.curator.project import Project
    from noisette.ledger import Book
    from noisette.privacy import Promise

__all__ = ["budget", "check", "ledger"]

# noisette budget


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
        echo(record)
        return
    from rich.text import Text

    share = found.spent.size / found.total.size
    full = min(_WIDTH, -(-share * _WIDTH // 1))  # rounded up
    bar = Text("█" * full, "red" if share > Fraction(9, 10) else "green") + Text("░" * (_WIDTH - full), "dim")
    shown = console()
    shown.print(bar, f"{float(share):.1%} spent")
    shown.print(repr(found), soft_wrap=True)


# noisette check


_ALONE = (
    "Not verified without the ledger: that these numbers were ever released, and that the sensitivities are those of "
    "the question."
)


def check(
    record: Annotated[Path, typer.Argument(help="What `ask --json` printed; - is the input.", metavar="FILE")],
    without_ledger: Annotated[
        bool, typer.Option("--without-ledger", help="Check the claim alone; changed numbers are not found.")
    ] = False,
    json: Json = False,
    project: Folder = None,
) -> None:
    """Check records of answers against the project's ledger; one that was changed in any way ends with 4.

    The mechanisms are built again and must promise what is claimed. Question, guarantee, mechanisms, numbers, error
    bars and what was spent must be those that the ledger recorded, and the whole chain is verified.
    """
    texts = _records(record)
    with patience("Checking"):
        if without_ledger:
            found = [_checked(text, None) for text in texts]
        else:
            with ledger_of(project) as book:
                found = [_checked(text, book) for text in texts]
    if json:
        echo(as_json({"records": found}))
    else:
        echo("\n".join([*map(_sentence, found), *([_ALONE] if without_ledger else [])]))


def _checked(text: str, book: "Book | None") -> dict[str, Any]:
    from noisette.answers import check
    from noisette.answers.record import read

    check(text, ledger=book)
    said = read(text)
    return {
        "verified": book is not None,
        "entry": None if book is None else said["ledger"]["entry"],
        "guarantee": said["guarantee"],
        "neighbours": said["neighbours"],
        "unit": said.get("unit"),
    }


def _sentence(found: dict[str, Any]) -> str:
    cost = ", ".join(f"{name} {size}" for name, size in found["guarantee"].items() if name not in ("kind", "at"))
    promised = f"{cost or 'a privacy profile'} for each {found['unit']} ({found['neighbours']})"
    if found["entry"] is None:
        return f"The stated mechanisms promise what is claimed: {promised}."
    return f"The record is as it was released. It is charged in entry {found['entry']} of the ledger: {promised}."


def _records(file: Path) -> list[str]:
    """The records of a file: one for each line, or a single one on several lines."""
    text = text_of(file)
    lines = [line for line in text.split("\n") if line.strip()]  # texts in a record may hold any other line break
    alone = all(line.startswith("{") and line.rstrip().endswith("}") for line in lines)
    return lines if lines and alone else [text]


# noisette ledger


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
    """Show the last entries: when (UTC), who asked, the question as SQL, what was released and the cost.

    With --json, all of what the entries say.
    """
    with patience("Reading the ledger"), ledger_of(project) as book:
        history = book.history
    if json:
        echo(as_json({"entries": history[-last:]}))
        return
    console().print(as_table(history, last))


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
        echo(as_json({"whole": True, "entries": found.number, "charges": charges, "head": str(found)}))
        return
    against = "" if head is None else ", and the head that you kept is on its chain"
    echo(f"The ledger is whole: {found.number:,} entries, {charges:,} of them charges{against}.\nhead {found}")


@ledger.command()
def head(json: Json = False, project: Folder = None) -> None:
    """Print the head: keep it where those who can write the ledger cannot reach it."""
    with patience("Reading the ledger"), ledger_of(project) as book:
        found = book.head()
    echo(as_json({"head": str(found)}) if json else str(found))


@ledger.command("budget")
def change_budget(why: Why, json: Json = False, project: Folder = None) -> None:
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
    with patience("Writing to the ledger"):
        act(project_of(folder))
        with ledger_of(folder) as book:
            now = str(book.head())
    echo(as_json({"recorded": True, "head": now}) if json else f"Recorded.\nhead {now}")
