"""`noisette account`: what releases cost together, from an expression such as "laplace(1)*100 + gaussian(10)*50"."""

import json as json_module
from typing import Annotated

import typer

from noisette.cli.account.showing import show
from noisette.cli.account.totals import accounted
from noisette.errors import NoisetteError

__all__ = ["account"]


def account(
    releases: Annotated[
        str,
        typer.Argument(
            help="Releases, added with + and multiplied by whole numbers: pure(eps), approx(eps, delta), zcdp(rho), "
            "laplace(scale), geometric(scale), gaussian(sigma), response(eps), staircase(eps), "
            "subsampled(release, rate)."
        ),
    ],
    delta: Annotated[list[str] | None, typer.Option(help="The delta to find epsilon for; may be repeated.")] = None,
    epsilon: Annotated[list[str] | None, typer.Option(help="An epsilon to find delta for; may be repeated.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the account as JSON, with all digits.")] = False,
) -> None:
    """Tell what releases cost together: by basic addition, by zCDP and by tight composition."""
    from rich.console import Console

    try:
        found = accounted(releases, delta or ["1e-6"], epsilon or [])
    except NoisetteError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if json:
        typer.echo(json_module.dumps(found, indent=2))
    else:
        show(found, Console(highlight=False))
