"""`noisette buy`: bounds, keys and limits that the owner does not declare but lets be bought."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Analyst, Folder, Json, Spend, amount, as_json, curator_of, patience, project_of
from noisette.terminal import echo

if TYPE_CHECKING:
    from noisette.curator.purchases import Purchase, Terms, What
    from noisette.privacy import Promise

__all__ = ["buy"]

buy = typer.Typer(help="Buy bounds, keys or a limit on rows, once, for all who ask.", no_args_is_help=True)
Column: Any = Annotated[str, typer.Argument(help="age, or visits.age where there are several tables.")]
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
        _buy(what, column, spend, again, json, analyst, project)

    return purchase


def _buy(
    what: "What",
    name: str | None,
    spend: str,
    again: bool,
    json: bool,
    analyst: str | None,
    folder: Any,
    terms: "Terms | None" = None,
) -> None:
    """Buy and show it."""
    price = amount(spend, "--spend")
    with patience("Buying"), curator_of(folder, asking=True) as curator:
        bought = curator.buy(what, name, spend=price, analyst=analyst, again=again, terms=terms)
        left = curator.ledger.left
    echo(as_json(_record(bought, left)) if json else _shown(project_of(folder).policy_file.name, bought, left))


for _what, _help in _FOR_SALE.items():
    buy.command(_what, help=_help)(_purchase(_what))


@buy.command()
def rows(
    spend: Spend,
    table: Annotated[str | None, typer.Argument(help="visits, where there are several tables.")] = None,
    most: Annotated[int | None, typer.Option(help="The largest limit that may be chosen: 8192 by default.")] = None,
    for_spend: Annotated[
        str | None, typer.Option("--for", help="What later questions spend: nine times --spend by default.")
    ] = None,
    again: Again = False,
    json: Json = False,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Buy how many rows of one unit may count; for a table whose policy says rows = "private"."""
    from noisette.curator.purchases import Terms

    terms = Terms(most, None if for_spend is None else amount(for_spend, "--for"))
    _buy("rows", table, spend, again, json, analyst, project, terms)


def _record(bought: "Purchase", left: "Promise") -> dict[str, Any]:
    from noisette.answers.record import stated

    table, column, what = bought.place
    values = [str(value) if what == "bounds" else value for value in bought.values]
    return {
        "table": table,
        "column": column,
        what: values if column else values[0],
        "spend": stated(bought.spend),
        "left": stated(left),
        "policy": bought.lines,
    }


def _shown(policy: str, bought: "Purchase", left: "Promise") -> str:
    from noisette.answers.figures import left as what_is_left
    from noisette.answers.figures import promise

    return (
        f"{bought.lines}\n\nBought for {promise(bought.spend)}; left: {what_is_left(left)}. Questions use this from "
        "now on, and to buy the same again is free.\nTo declare it for good, the owner can write these lines into "
        f"{policy}."
    )
