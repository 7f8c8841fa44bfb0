"""noisette approve: as the owner, see which questions wait, and let one be answered or decline it."""

from typing import TYPE_CHECKING, Annotated

import typer

from noisette.cli.common import Folder, Json, as_json, ledger_of, patience, table_of
from noisette.cli.entries import whole_question
from noisette.terminal import console, echo
from noisette.text import visible

if TYPE_CHECKING:
    from noisette.ledger.approvals import Request

__all__ = ["approve"]


def approve(
    name: Annotated[str | None, typer.Argument(help="The name of a question that waits; else all are listed.")] = None,
    decline: Annotated[bool, typer.Option("--decline", help="Decline it.")] = False,
    why: Annotated[str | None, typer.Option(help="The reason, for those who read the ledger later.")] = None,
    json: Json = False,
    project: Folder = None,
) -> None:
    """As the owner: list the questions that wait for approval, or approve one of them by its name."""
    with patience("Reading the ledger"), ledger_of(project) as book:
        if name is None:
            _list([request for request in book.requests if request.state == "pending"], json)
            return
        decided = book.decline if decline else book.approve
        request = decided(name) if why is None else decided(name, why=why)
    echo(as_json(_record(request)) if json else f"{request.id} is {request.state}: {whole_question(request.question)}")


def _list(requests: "list[Request]", json: bool) -> None:
    if json:
        echo(as_json({"pending": [_record(request) for request in requests]}))
        return
    if not requests:
        echo("No question waits for approval.")
        return
    from rich.text import Text

    from noisette.answers.figures import promise

    table = table_of("name", "analyst", "spend", "question")
    for one in requests:
        table.add_row(
            *map(Text, (one.id, visible(one.analyst or ""), promise(one.spend), whole_question(one.question)))
        )
    console().print(table)


def _record(request: "Request") -> dict[str, object]:
    from noisette.answers.record import stated

    return {
        "name": request.key,
        "state": request.state,
        "analyst": request.analyst,
        "spend": stated(request.spend),
        "question": request.question,
    }
