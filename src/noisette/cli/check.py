"""`noisette check`: hold the records of answers against the ledger that they were charged to."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Folder, Json, as_json, ledger_of, patience
from noisette.cli.questions import text_of

if TYPE_CHECKING:
    from noisette.ledger import Book

__all__ = ["check"]

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
        typer.echo(as_json({"records": found}))
    else:
        typer.echo("\n".join([*map(_sentence, found), *([_ALONE] if without_ledger else [])]))


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
