"""`noisette buy`: bounds, keys and limits that the owner does not declare but lets be bought."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Analyst, Folder, Json, amount, as_json, patience, project_of

if TYPE_CHECKING:
    from noisette.curator.bought import Bought, What
    from noisette.curator.project import Project
    from noisette.privacy import Promise

__all__ = ["buy"]

buy = typer.Typer(help="Buy bounds, keys or a limit on rows, once, for all who ask.", no_args_is_help=True)
Column: Any = Annotated[str, typer.Argument(help="age, or visits.age where there are several tables.")]
Spend: Any = Annotated[str, typer.Option(help="What to spend: 0.1, or 0.1,1e-8 with a delta, or rho=0.01.")]
Again: Any = Annotated[bool, typer.Option("--again", help="Buy anew what was bought before, and use that.")]

_FOR_SALE: "dict[What, str]" = {
    "bounds": "Buy two numbers, or dates, between which almost all values lie; "
    'for a column whose policy says bounds = "private".',
    "keys": "Buy the values that enough units share, which needs a delta; "
    'for a column whose policy says keys = "private".',
}


def _purchase(what: "What") -> Callable[..., None]:
    """The command that buys one or the other."""

    def purchase(
        column: Column,
        spend: Spend,
        again: Again = False,
        json: Json = False,
        analyst: Analyst = None,
        project: Folder = None,
    ) -> None:
        _bought(what, column, spend, again, json, analyst, project)

    return purchase


def _bought(
    what: "What", name: str | None, spend: str, again: bool, json: bool, analyst: str | None, folder: Any, **terms: Any
) -> None:
    """Buy and show it."""
    price, found = amount(spend, "--spend"), project_of(folder)
    with patience("Buying"):
        bought, left = found.buy(what, name, spend=price, analyst=analyst, again=again, **terms)
    typer.echo(as_json(_told(bought, left)) if json else _shown(found, bought, left))


for _what, _help in _FOR_SALE.items():
    buy.command(_what, help=_help)(_purchase(_what))


@buy.command()
def rows(
    spend: Spend,
    table: Annotated[str | None, typer.Argument(help="visits, where there are several tables.")] = None,
    most: Annotated[int | None, typer.Option(help="The largest limit that may be chosen: 8192, unless told.")] = None,
    for_spend: Annotated[
        str | None, typer.Option("--for", help="What later questions spend: nine times --spend, unless told.")
    ] = None,
    again: Again = False,
    json: Json = False,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Buy how many rows of one unit may count; for a table whose policy says rows = "private"."""
    later = None if for_spend is None else amount(for_spend, "--for")
    _bought("rows", table, spend, again, json, analyst, project, most=most, for_spend=later)


def _told(bought: "Bought", left: "Promise") -> dict[str, Any]:
    from noisette.answers.record import stated

    values = [str(value) if bought.what == "bounds" else value for value in bought.values]
    return {
        "table": bought.table,
        "column": bought.column,
        bought.what: values if bought.column else values[0],
        "spend": stated(bought.spend),
        "left": stated(left),
        "policy": bought.lines,
    }


def _shown(project: "Project", bought: "Bought", left: "Promise") -> str:
    from noisette.answers.figures import left as what_is_left
    from noisette.answers.figures import promise

    return (
        f"{bought.lines}\n\nBought for {promise(bought.spend)}; left: {what_is_left(left)}. Questions use this from "
        "now on, and to buy the same again is free.\nTo declare it for good, the owner can write these lines into "
        f"{project.policy_file.name}."
    )
