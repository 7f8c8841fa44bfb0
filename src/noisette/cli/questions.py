"""Questions from the command line or from a file."""

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from noisette.errors import InputError

__all__ = ["File", "Question", "questions_of", "text_of"]

Question: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="SQL", help="SELECT … FROM …; several are separated by semicolons.")
]
File: TypeAlias = Annotated[
    Path | None, typer.Option("--file", help="A file with the questions; - is the input.", metavar="FILE")
]


def questions_of(question: str | None, file: Path | None) -> list[str]:
    """The statements, of which there is at least one."""
    from noisette.query.sql.text import statements

    if (question is None) == (file is None):
        raise InputError("Say what to ask, in quotation marks or with --file.")
    text = text_of(file) if file is not None else question or ""
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
