"""The command line: a shell without logic."""

import typer

from noisette.cli.account import account
from noisette.cli.audit import audit
from noisette.cli.demo import demo

__all__ = ["app"]

app = typer.Typer(
    help="Differential privacy that is exact where others approximate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(audit)
app.command()(account)
