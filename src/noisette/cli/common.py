"""What the commands share: options, amounts as texts, JSON, a sign of life, and how they end.

0   well
1   the question failed after its charge, or something else went wrong
2   the input cannot be used; nothing was spent
3   the budget or a rule on spends refuses, or the question waits for approval; nothing was spent
4   going on would break a promise, or the ledger or a record is not as it was written
130 cancelled by Ctrl-C

A fault is one sentence on the error stream. None of them quotes data.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from typer.core import TyperGroup

from noisette.errors import BudgetError, FailedError, InputError, NoisetteError, PrivacyError
from noisette.names import closest
from noisette.privacy import Promise, as_promise
from noisette.progress import showing
from noisette.terminal import console, echo

if TYPE_CHECKING:
    from noisette.curator import Curator
    from noisette.curator.project import Project
    from noisette.ledger import Book
    from noisette.policy.rules import TableRules
    from noisette.policy.toml import Gap

__all__ = [
    "Analyst",
    "Folder",
    "Json",
    "Level",
    "Shell",
    "Spend",
    "about",
    "amount",
    "as_json",
    "code_of",
    "curator_of",
    "examples",
    "in_options",
    "ledger_of",
    "patience",
    "project_of",
    "sentence_of",
    "table_of",
    "text_of",
    "undeclared",
]

Folder: TypeAlias = Annotated[
    Path | None,
    typer.Option("--project", help="The folder of the project; else the nearest one from here up.", metavar="DIR"),
]
Analyst: TypeAlias = Annotated[
    str | None, typer.Option("--analyst", help="Who asks, where the budget is shared out.", metavar="NAME")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, with exact numbers as texts.")]
Spend: TypeAlias = Annotated[str, typer.Option(help="What to spend: 0.1, or 0.1,1e-8 with a delta, or rho=0.01.")]
Level: TypeAlias = Annotated[float, typer.Option(help="How likely a true number lies within its error bar.")]


def project_of(folder: Path | None) -> "Project":
    """The project that was named, or the nearest one from here up."""
    from noisette.curator.project import Project

    return Project.find() if folder is None else Project.read(folder)


def amount(text: str, option: str) -> Promise:
    """A promise from a text.

    >>> amount("0.1", "--spend"), amount("2,1e-6", "--budget"), amount("rho=0.01", "--spend")
    (Pure('1/10'), Approx('2', '1/1000000'), ZCDP('1/100'))
    """
    found = as_promise(text, option)
    if not found.size:
        raise InputError(f"{option} must be above 0: without noise budget nothing can be released.")
    return found


@contextmanager
def curator_of(folder: Path | None, *, asking: bool) -> "Iterator[Curator]":
    """The curator of a project, whose ledger is let go of afterwards."""
    from noisette.ledger import Book

    curator = project_of(folder).curator(asking=asking)
    try:
        yield curator
    finally:
        assert isinstance(curator.ledger, Book)
        curator.ledger.close()


@contextmanager
def ledger_of(folder: Path | None) -> "Iterator[Book]":
    """The ledger of a project, let go of afterwards."""
    book = project_of(folder).ledger()
    try:
        yield book
    finally:
        book.close()


_LONGEST = 200_000_000  # characters: a text of a stranger is read as a whole


def text_of(file: Path) -> str:
    """What a file says; - is the input."""
    try:
        with nullcontext(sys.stdin) if str(file) == "-" else file.open(encoding="utf-8-sig") as opened:
            text = opened.read(_LONGEST + 1)
    except OSError:
        raise InputError(f"The file {file.name} cannot be read: check its path and its permissions.") from None
    except UnicodeDecodeError:
        raise InputError(f"The file {file.name} is not a text: save it as UTF-8.") from None
    if len(text) > _LONGEST:
        raise InputError(f"The file {file.name} is too large: a text may have {_LONGEST:,} characters.")
    return text


def as_json(found: Mapping[str, Any]) -> str:
    """JSON for machines: no NaN, no infinity."""
    from noisette.answers.record import laid_out

    return laid_out(found)


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\n\n".join(["Examples:", *lines])


@contextmanager
def patience(what: str) -> Iterator[None]:
    """A sign of life on the error stream of a terminal, with the step that is done; the same whatever the data are.

    Each step is drawn as it begins: what a terminal shows does not depend on when the spinner turns.
    """
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    shown = console(err=True)
    if not shown.is_terminal:
        yield
        return
    spinner = Spinner("dots", Text(f"{what} …"), style="status.spinner")

    def show(step: str) -> None:
        spinner.update(text=Text(f"{what} … {step}"))
        live.refresh()

    with Live(spinner, console=shown, refresh_per_second=12.5, transient=True) as live, showing(show):
        yield


def table_of(*columns: str) -> Any:
    """A plain table; a column whose name starts with > holds numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, title_justify="left", title_style="")
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold")
    return table


def undeclared(file: str, missing: "Sequence[Gap]", tables: "Mapping[str, TableRules]") -> str:
    """What a policy does not say yet, as sections to be pasted into its file."""
    from noisette.policy.rules import PLACEHOLDER
    from noisette.policy.toml import sections

    return (
        f'Not declared yet. Write into {file} what you know from elsewhere in place of each "{PLACEHOLDER}"; a section '
        f"takes the place of what the file says of that table or column:\n\n{sections(missing, tables)}"
    )


# How commands end


_IN_PYTHON = re.compile(r"(`noisette [^`]*`|--[a-z-]+), or [^`();]* in Python")
_CALL = re.compile(r"\w+\([^()]*\) or (`noisette [^`]*`)")
_ARGUMENT = re.compile(
    r"\b(again|analyst|budget|delta|error|groups|keys_delta|level|policy|rows|spend|start_over|unit)="
    r"(Approx\([^)]*\)|'[^']*'|\"[^\"]*\"|\w+(?:[./]\w+)*)"
)

_CANCELLED = "Cancelled: what was charged is free when asked again, and nothing else was spent."
_INTERRUPTED = 130  # by Ctrl-C, as shells have it
_CODES: list[tuple[type[Exception], int]] = [(BudgetError, 3), (PrivacyError, 4), (InputError, 2), (FailedError, 1)]


def code_of(fault: Exception) -> int:
    """The exit code of a fault.

    >>> code_of(InputError("?")), code_of(BudgetError("?")), code_of(PrivacyError("?")), code_of(KeyError("?"))
    (2, 3, 4, 1)
    >>> code_of(FailedError())
    1
    """
    if _usage(fault):
        return 2
    return next((code for kind, code in _CODES if isinstance(fault, kind)), 1)


def sentence_of(fault: Exception) -> str:
    """What is said about a fault; the words of one that was not foreseen stay inside."""
    if _usage(fault):
        said = str(fault.format_message())  # type: ignore[attr-defined]
        said = _mistyped(said, getattr(fault, "ctx", None)) or said
        return f"{said}." if said and said[-1] not in ".?" else said
    if isinstance(fault, NoisetteError):
        return in_options(str(fault))
    return f"Something went wrong that should not have ({type(fault).__name__}); its own words stay inside."


def _mistyped(said: str, context: Any) -> str | None:
    """The sentence about a command or an option that there is not; None for other faults."""
    found = re.match(r"No such (command|option):? '?([^\s']+)", said)
    if found is None or context is None:
        return None
    options = [name for each in context.command.params for name in each.opts if name.startswith("--")]
    known = context.command.list_commands(context) if found[1] == "command" else sorted({*options, "--help"})
    return f"There is no {found[1]} {found[2]}: {closest(found[2], known)}"


def in_options(sentence: str) -> str:
    """A sentence for the command line: where the library names an argument, the option of that name.

    >>> in_options("Say what to spend: spend='0.1,1e-8', or budget=Approx(2, '1e-6'), or again=True.")
    'Say what to spend: --spend 0.1,1e-8, or --budget 2,1e-6, or --again.'
    >>> in_options("Accept it (`noisette ledger accept`, or noisette.ledger.accept in Python).")
    'Accept it (`noisette ledger accept`).'
    >>> in_options("Buy them once, with bounds(column, spend=...) or `noisette buy bounds`.")
    'Buy them once, with `noisette buy bounds`.'
    """
    alone = _CALL.sub(r"\1", _IN_PYTHON.sub(r"\1", sentence))
    return _ARGUMENT.sub(_option, alone)


def _option(argument: re.Match[str]) -> str:
    flag, value = f"--{argument[1].replace('_', '-')}", re.sub(r"Approx\(|[)'\" ]", "", argument[2])
    return flag if value == "True" else f"{flag} {value}"


def _usage(fault: Exception) -> bool:
    """Whether the command line itself could not be understood."""
    return hasattr(fault, "format_message")


def _print_version(wanted: bool) -> None:
    if wanted:
        from noisette.version import __version__

        echo(f"noisette {__version__}")
        raise typer.Exit


def about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Differential privacy that is exact where others approximate."""


class Shell(TyperGroup):
    """Commands whose faults end in a sentence and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit."""
        run = partial(super().main, args, prog_name, complete_var, False, windows_expand_args, **extra)
        if not standalone_mode:
            return run()
        try:
            code = run()
        except typer.Abort:
            code = 1
        except Exception as fault:
            sentence = sentence_of(fault)  # none where the help was shown instead
            echo(sentence, err=True, nl=bool(sentence))
            code = code_of(fault)
        if code == _INTERRUPTED:
            echo(_CANCELLED, err=True)
        sys.exit(code or 0)
