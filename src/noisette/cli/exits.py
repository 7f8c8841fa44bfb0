"""How commands end.

0   well
1   the question failed after its charge, or something else went wrong
2   the input cannot be used; nothing was spent
3   the budget refuses; nothing was spent
4   going on would break a promise, or the ledger or a record is not as it was written

A fault is one sentence on the error stream. None of them quotes data.
"""

import re
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

from noisette.errors import BudgetError, FailedError, InputError, NoisetteError, PrivacyError

__all__ = ["Shell", "code_of", "in_options", "sentence_of"]

_IN_PYTHON = re.compile(r"(`noisette [^`]*`|--[a-z-]+), or [^`();]* in Python")
_CALL = re.compile(r"\w+\([^()]*\) or (`noisette [^`]*`)")
_ARGUMENT = re.compile(
    r"\b(again|analyst|budget|delta|error|groups|level|policy|rows|spend|start_over|unit)="
    r"(Approx\([^)]*\)|'[^']*'|\"[^\"]*\"|\w+(?:[./]\w+)*)"
)

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
        return f"{said}." if said and said[-1] not in ".?" else said
    if isinstance(fault, NoisetteError):
        return in_options(str(fault))
    return f"Something went wrong that should not have ({type(fault).__name__}); its own words stay inside."


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
            typer.echo(sentence, err=True, nl=bool(sentence))
            code = code_of(fault)
        sys.exit(code or 0)
