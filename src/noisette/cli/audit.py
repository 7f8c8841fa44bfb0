"""`noisette audit`: hold every mechanism to its contract."""

from typing import Annotated

import typer

from noisette.audit.report import as_json, audited, show
from noisette.errors import InputError
from noisette.terminal import console, echo

__all__ = ["audit"]


def audit(
    name: Annotated[str | None, typer.Argument(help="A mechanism's name, such as geometric; all if left out.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every finding as JSON.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Draw less for the statistical checks.")] = False,
) -> None:
    """Check laws, guarantees, samplers, errors and refusals of the mechanisms; exit with 1 if one fails."""
    try:
        audits = audited(name, quick=quick)
    except InputError as error:
        echo(str(error), err=True)
        raise typer.Exit(2) from None
    if json:
        echo(as_json(audits))
    else:
        show(audits, console())
    if not all(found.passed for found in audits):
        raise typer.Exit(1)
