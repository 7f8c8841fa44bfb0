"""Questions from the command line or from a file, in SQL or JSON; and `noisette questions`, which lists them."""

import sys
from json import dumps
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from noisette.cli.common import Json, as_json
from noisette.errors import InputError

__all__ = ["File", "Question", "questions", "questions_of", "text_of"]

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


def text_of(file: Path) -> str:
    """What a file says; - is the input."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except OSError:
        raise InputError(f"The file {file.name} cannot be read: check its path and its permissions.") from None
    except UnicodeDecodeError:
        raise InputError(f"The file {file.name} is not a text: save it as UTF-8.") from None


def questions(json: Json = False) -> None:
    """List the questions that `ask` and `explain` take as JSON, with their fields and an example each."""
    from noisette.questions.data import listed

    found = listed()
    typer.echo(as_json({"questions": found}) if json else "\n\n".join(_shown(one) for one in found))


def _shown(one: dict[str, Any]) -> str:
    fields = ", ".join(_field(field) for field in one["fields"])
    return "\n".join([f"{one['name']}: {one['about']}", f"  fields   {fields}", f"  example  {one['example']}"])


def _field(field: dict[str, Any]) -> str:
    return str(field["name"]) if field["required"] else f"{field['name']} = {dumps(field['default'])}"
