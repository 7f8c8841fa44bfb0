"""What the commands share: options, amounts as texts, JSON, and a sign of life."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from noisette.errors import InputError
from noisette.privacy import Promise, as_promise

if TYPE_CHECKING:
    from noisette.curator import Curator
    from noisette.curator.project import Project
    from noisette.ledger import Book

__all__ = [
    "Analyst",
    "Folder",
    "Json",
    "Level",
    "Spend",
    "amount",
    "as_json",
    "curator_of",
    "examples",
    "ledger_of",
    "patience",
    "project_of",
    "text_of",
]

Folder: TypeAlias = Annotated[
    Path | None,
    typer.Option("--project", help="The folder of the project; else the nearest one from here up.", metavar="DIR"),
]
Analyst: TypeAlias = Annotated[
    str | None, typer.Option("--analyst", help="Who asks, where the budget is shared out.", metavar="NAME")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, with exact numbers as texts.")]
Spend: TypeAlias = Annotated[str, typer.Option(help="What to spend: 0.1, or 0.1,1e-8 with a delta, or rho=0.01.")]
Level: TypeAlias = Annotated[float, typer.Option(help="How likely a true number lies within its error bar.")]


def project_of(folder: Path | None) -> "Project":
    """The project that was named, or the nearest one from here up."""
    from noisette.curator.project import Project

    return Project.find() if folder is None else Project.read(folder)


def amount(text: str, option: str) -> Promise:
    """A promise from a text.

    >>> amount("0.1", "--spend"), amount("2,1e-6", "--budget"), amount("rho=0.01", "--spend")
    (Pure('1/10'), Approx('2', '1/1000000'), ZCDP('1/100'))
    """
    found = as_promise(text, option)
    if not found.size:
        raise InputError(f"{option} must be above 0: without noise budget nothing can be released.")
    return found


@contextmanager
def curator_of(folder: Path | None, *, asking: bool) -> "Iterator[Curator]":
    """The curator of a project, whose ledger is let go of afterwards."""
    from noisette.ledger import Book

    curator = project_of(folder).curator(asking=asking)
    try:
        yield curator
    finally:
        assert isinstance(curator.ledger, Book)
        curator.ledger.close()


@contextmanager
def ledger_of(folder: Path | None) -> "Iterator[Book]":
    """The ledger of a project, let go of afterwards."""
    book = project_of(folder).ledger()
    try:
        yield book
    finally:
        book.close()


def text_of(file: Path) -> str:
    """What a file says; - is the input."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except OSError:
        raise InputError(f"The file {file.name} cannot be read: check its path and its permissions.") from None
    except UnicodeDecodeError:
        raise InputError(f"The file {file.name} is not a text: save it as UTF-8.") from None


def as_json(found: Mapping[str, Any]) -> str:
    """JSON for machines: no NaN, no infinity."""
    from noisette.answers.record import laid_out

    return laid_out(found)


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\n\n".join(["Examples:", *lines])


@contextmanager
def patience(what: str) -> Iterator[None]:
    """A sign of life on the error stream of a terminal, the same whatever the data are."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} …"):
        yield
