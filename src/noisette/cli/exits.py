"""How commands end.

0   well
1   the question failed after its charge, or something else went wrong
2   the input cannot be used; nothing was spent
3   the budget refuses; nothing was spent
4   going on would break a promise, or the ledger or a record is not as it was written

A fault is one sentence on the error stream. None of them quotes data.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

from noisette.errors import BudgetError, FailedError, InputError, NoisetteError, PrivacyError

__all__ = ["Shell", "code_of", "sentence_of"]

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
        return str(fault)
    return (
        f"Something went wrong that should not have ({type(fault).__name__}); more is not told, as it may quote data."
    )


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
