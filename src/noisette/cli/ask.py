"""`noisette ask`, `explain`, `left-out` and `questions`: answers, and what they would cost before they are paid."""

import datetime
import re
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from noisette.cli.common import Analyst, Folder, Json, Level, Spend, amount, as_json, curator_of, patience, text_of
from noisette.errors import InputError
from noisette.terminal import echo

if TYPE_CHECKING:
    from noisette.answers import Release
    from noisette.curator.explanation import Explanation

__all__ = ["ask", "explain", "left_out", "questions"]

# Questions in SQL or JSON


Question: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="QUESTION",
        help="SELECT … FROM …; several are separated by semicolons. Or JSON, see `noisette questions`.",
    ),
]
File: TypeAlias = Annotated[
    Path | None, typer.Option("--file", help="A file with the questions; - is the input.", metavar="FILE")
]
Rows: TypeAlias = Annotated[int | None, typer.Option(help="Rows of a group, for errors that depend on them.")]
Delta: TypeAlias = Annotated[str | None, typer.Option(help="With --error, a delta to use beside the epsilon.")]


def questions_of(question: str | None, file: Path | None) -> Any:
    """What a curator is asked: a list of at least one SQL statement, or the question that JSON describes."""
    from noisette.query.sql.text import statements
    from noisette.questions.data import from_json

    if (question is None) == (file is None):
        raise InputError("Say what to ask, in quotation marks or with --file.")
    text = text_of(file) if file is not None else question or ""
    if text.lstrip().startswith("{"):
        return from_json(text)
    found = statements(text)
    if not found:
        raise InputError("There is nothing to ask: write SELECT … FROM ….")
    return found


def questions(json: Json = False) -> None:
    """List the questions that `ask` and `explain` take as JSON, with their fields and an example each."""
    from noisette.questions.data import listed

    found = listed()
    echo(as_json({"questions": found}) if json else "\n\n".join(_shown(one) for one in found))


def _shown(one: dict[str, Any]) -> str:
    fields = ", ".join(_field(field) for field in one["fields"])
    return "\n".join([f"{one['name']}: {one['about']}", f"  fields   {fields}", f"  example  {one['example']}"])


def _field(field: dict[str, Any]) -> str:
    return str(field["name"]) if field["required"] else f"{field['name']} = {dumps(field['default'])}"


# noisette ask


def ask(
    question: Question = None,
    spend: Annotated[str | None, typer.Option(help="What to spend: 0.1, or 0.1,1e-8, or rho=0.01.")] = None,
    error: Annotated[
        float | None, typer.Option(help="Instead, the error bar (±) to keep: with the noise that takes least.")
    ] = None,
    rows: Rows = None,
    delta: Delta = None,
    file: File = None,
    level: Level = 0.95,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with the ends of the error bars.")] = False,
    parquet: Annotated[Path | None, typer.Option(help="Write a Parquet file as well.", metavar="FILE")] = None,
    json: Json = False,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Ask in SQL or JSON and pay for the answer; the same question for the same spend is free the next time.

    With --error, the noise is chosen that keeps this error and takes least of what is left; for a median the error is
    counted in ranks.
    Several statements, separated by semicolons, are planned together and share what is spent. JSON is one line for each
    answer: its record, with which the promise can be checked.
    """
    if not spend and error is None:
        raise InputError("Say what to spend, such as --spend 0.1; `noisette explain` tells the error to expect.")
    _check_price(spend, error, rows, delta)
    if csv and json:
        raise InputError("Choose one of --csv and --json.")
    if parquet is not None and not parquet.absolute().parent.is_dir():
        raise InputError("The folder of the Parquet file is missing: create it first.")
    promise, asked = amount(spend, "--spend") if spend else None, questions_of(question, file)
    how = {} if error is None else {"error": error, "rows": rows, "delta": delta}
    with patience("Asking"), curator_of(project, asking=True) as curator:
        found = curator.ask(asked, spend=promise, level=level, analyst=analyst, **how)
    answers: list[Release] = found if isinstance(found, list) else [found]
    if parquet is not None:
        _write_parquet(answers, parquet)
    if csv:  # numbers alone go on; what to know about them goes to the terminal
        for note in dict.fromkeys(note for answer in answers for note in answer.notes):
            echo(note, err=True)
    texts = [answer.to_csv() if csv else answer.to_json() if json else str(answer) for answer in answers]
    echo(("\n" if json else "\n\n").join(text.rstrip("\n") for text in texts), data=csv)


def _check_price(spend: str | None, error: float | None, rows: int | None, delta: str | None) -> None:
    if (spend is None) == (error is None):
        raise InputError("Say either what to spend or which error you can live with: --spend 0.1 or --error 50.")
    if delta is not None and error is None:
        raise InputError("--delta goes with --error; with --spend write 0.1,1e-8.")
    if rows is not None and rows < 1:
        raise InputError("--rows must be a whole number from 1 on.")


def _write_parquet(answers: "list[Release]", path: Path) -> None:
    """One file, or for several answers visits-1.parquet, visits-2.parquet."""
    for i, answer in enumerate(answers, start=1):
        answer.to_parquet(path.with_stem(f"{path.stem}-{i}") if len(answers) > 1 else path)


# noisette explain


def explain(
    question: Question = None,
    spend: Annotated[str | None, typer.Option(help="What would be spent: 0.1, or 0.1,1e-8, or rho=0.01.")] = None,
    error: Annotated[float | None, typer.Option(help="The error bar (±) you can live with: finds the price.")] = None,
    rows: Rows = None,
    delta: Delta = None,
    file: File = None,
    level: Level = 0.95,
    plot: Annotated[Path | None, typer.Option(help="Draw the error against epsilon.", metavar="FILE")] = None,
    json: Json = False,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Tell the error to expect, or the least price for an error, and how many like it fit; nothing is read or spent."""
    _check_price(spend, error, rows, delta)
    promise = None if spend is None else amount(spend, "--spend")
    asked = questions_of(question, file)
    with patience("Explaining"), curator_of(project, asking=False) as curator:
        found = curator.explain(asked, spend=promise, error=error, rows=rows, delta=delta, level=level, analyst=analyst)
        if plot is not None:
            _draw(found, plot)
    echo(found.to_json() if json else str(found))


def _draw(found: "Explanation", path: Path) -> None:
    try:
        found.plot(str(path))
    except (OSError, ValueError):
        raise InputError(
            f"{path.name} cannot be drawn: name a .svg, .png, .html or .json file in a folder that is there."
        ) from None


# noisette left-out


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def left_out(
    spend: Spend,
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
    echo(answer.to_json() if json else str(answer))


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
