"""`noisette explain`: the cost and the error of an answer, before it is paid."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noisette.cli.common import Analyst, Folder, Json, Level, amount, curator_of, patience
from noisette.cli.questions import File, Question, questions_of
from noisette.errors import InputError

if TYPE_CHECKING:
    from noisette.curator.explanation import Explanation

__all__ = ["explain"]


def explain(
    question: Question = None,
    spend: Annotated[str | None, typer.Option(help="What would be spent: 0.1, or 0.1,1e-8, or rho=0.01.")] = None,
    error: Annotated[float | None, typer.Option(help="The error bar (±) you can live with: finds the epsilon.")] = None,
    rows: Annotated[int | None, typer.Option(help="Rows of a group, for errors that depend on them.")] = None,
    delta: Annotated[str | None, typer.Option(help="With --error, a delta to use beside the epsilon.")] = None,
    file: File = None,
    level: Level = 0.95,
    plot: Annotated[Path | None, typer.Option(help="Draw the error against epsilon.", metavar="FILE")] = None,
    json: Json = False,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Tell the error to expect, or the epsilon for an error; nothing is read or spent."""
    if (spend is None) == (error is None):
        raise InputError("Say either what to spend or which error you can live with: --spend 0.1 or --error 50.")
    if delta is not None and error is None:
        raise InputError("--delta goes with --error; with --spend write 0.1,1e-8.")
    if rows is not None and rows < 1:
        raise InputError("--rows must be a whole number from 1 on.")
    promise = None if spend is None else amount(spend, "--spend")
    asked = questions_of(question, file)
    with patience("Explaining"), curator_of(project, asking=False) as curator:
        found = curator.explain(asked, spend=promise, error=error, rows=rows, delta=delta, level=level, analyst=analyst)
        if plot is not None:
            _draw(found, plot)
    typer.echo(found.to_json() if json else str(found))


def _draw(found: "Explanation", path: Path) -> None:
    try:
        found.plot(str(path))
    except (OSError, ValueError):
        raise InputError(
            f"{path.name} cannot be drawn: name a .svg, .png, .html or .json file in a folder that is there."
        ) from None
