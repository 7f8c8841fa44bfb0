"""`noisette ask`: questions in SQL or JSON, answers with noise and error bars."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noisette.cli.common import Analyst, Folder, Json, Level, amount, curator_of, patience
from noisette.cli.questions import File, Question, questions_of
from noisette.errors import InputError

if TYPE_CHECKING:
    from noisette.answers import Release

__all__ = ["ask"]


def ask(
    question: Question = None,
    spend: Annotated[str, typer.Option(help="What to spend: 0.1, or 0.1,1e-8 with a delta, or rho=0.01.")] = "",
    file: File = None,
    level: Level = 0.95,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with the ends of the error bars.")] = False,
    parquet: Annotated[Path | None, typer.Option(help="Write a Parquet file as well.", metavar="FILE")] = None,
    json: Json = False,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Ask in SQL or JSON and pay for the answer; the same question for the same spend is free the next time.

    Several statements, separated by semicolons, are planned together and share what is spent. JSON is one line for each
    answer: its record, with which the promise can be checked.
    """
    if not spend:
        raise InputError("Say what to spend, such as --spend 0.1; `noisette explain` tells the error to expect.")
    if csv and json:
        raise InputError("Choose one of --csv and --json.")
    if parquet is not None and not parquet.absolute().parent.is_dir():
        raise InputError("The folder of the Parquet file is missing: create it first.")
    promise, asked = amount(spend, "--spend"), questions_of(question, file)
    with patience("Asking"), curator_of(project, asking=True) as curator:
        found = curator.ask(asked, spend=promise, level=level, analyst=analyst)
    answers: list[Release] = found if isinstance(found, list) else [found]
    if parquet is not None:
        _write_parquet(answers, parquet)
    if csv:  # numbers alone go on; what to know about them goes to the terminal
        for note in dict.fromkeys(note for answer in answers for note in answer.notes):
            typer.echo(note, err=True)
    texts = [answer.to_csv() if csv else answer.to_json() if json else str(answer) for answer in answers]
    typer.echo(("\n" if json else "\n\n").join(text.rstrip("\n") for text in texts))


def _write_parquet(answers: "list[Release]", path: Path) -> None:
    """One file, or for several answers visits-1.parquet, visits-2.parquet."""
    for i, answer in enumerate(answers, start=1):
        answer.to_parquet(path.with_stem(f"{path.stem}-{i}") if len(answers) > 1 else path)
