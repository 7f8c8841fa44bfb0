"""`noisette left-out`: a private estimate of how much candidate limits would leave out."""

import datetime
import re
from typing import Annotated, Any

import typer

from noisette.cli.common import Analyst, Folder, Json, Level, amount, curator_of, patience
from noisette.errors import InputError

__all__ = ["left_out"]

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def left_out(
    spend: Annotated[str, typer.Option(help="What to spend: 0.1, or 0.1,1e-8 with a delta, or rho=0.01.")],
    table: Annotated[str | None, typer.Argument(help="visits, where there are several tables.")] = None,
    rows: Annotated[str | None, typer.Option(help="Limits on the rows of one unit: 1,2,4,8.")] = None,
    groups: Annotated[str | None, typer.Option(help="Limits on the groups of one unit: 1,2,4; with --by.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="A key of the groups; may be repeated.")] = None,
    column: Annotated[str | None, typer.Option(help="The column whose bounds are meant.")] = None,
    bounds: Annotated[list[str] | None, typer.Option(help="Bounds of a column: 0,100; may be repeated.")] = None,
    level: Level = 0.95,
    json: Json = False,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Ask how much candidate limits or bounds would leave out: all candidates for one price.

    What units have beyond the largest limit is not seen, so what is left out is a lower bound.
    """
    from noisette.questions import LeftOut

    of_rows, of_groups = _limits(rows, "--rows"), _limits(groups, "--groups")
    pairs = [_pair(text) for text in bounds] if bounds else None
    promise = amount(spend, "--spend")
    with patience("Asking"), curator_of(project, asking=True) as curator:
        of = None if table is None else curator.table(table)
        question = LeftOut(column, of_rows, of_groups, by or (), pairs, of)
        answer = curator.ask(question, spend=promise, level=level, analyst=analyst)
    typer.echo(answer.to_json() if json else str(answer))


def _limits(text: str | None, option: str) -> list[int] | None:
    """Whole numbers from a text.

    >>> _limits("1, 2,4", "--rows")
    [1, 2, 4]
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,9}", part) for part in parts):
        raise InputError(f"{option} must be whole numbers with commas between them: {option} 1,2,4,8.")
    return [int(part) for part in parts]


def _pair(text: str) -> tuple[Any, Any]:
    """Two numbers or dates; numbers stay texts, which are read exactly.

    >>> _pair("0, 1e3"), _pair("2020-01-01,2020-12-31")
    (('0', '1e3'), (datetime.date(2020, 1, 1), datetime.date(2020, 12, 31)))
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2:
        raise InputError("--bounds must be two values with a comma between them: --bounds 0,100.")
    try:
        low, high = (datetime.date.fromisoformat(part) if _DAY.fullmatch(part) else part for part in parts)
        return low, high
    except ValueError:
        raise InputError("--bounds must be days that there are: --bounds 2020-01-01,2020-12-31.") from None
