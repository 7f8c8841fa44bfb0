"""`noisette demo`: a guided tour on data it makes itself."""

from pathlib import Path
from typing import Annotated

import typer

from noisette.terminal import console

__all__ = ["demo"]


def demo(
    html: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("noisette-demo.html"),
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the data.")] = False,
) -> None:
    """Take a tour: make up a hospital, attack it, ask it one question of each kind, spend its budget; with a report."""
    from rich.text import Text

    shown = console()
    if html.is_dir() or not html.parent.is_dir():
        raise typer.BadParameter("Name a file in a folder that is there.", param_hint="--html")
    with shown.status(Text("Starting …")) as status:  # the imports take a second, so progress shows before them
        show_progress = status.update if shown.is_terminal else shown.print
        show_progress(Text("Starting …"))
        from noisette.cli.demo.report import report
        from noisette.cli.demo.show import show
        from noisette.cli.demo.tour import LARGE, SMALL, toured

        tour = toured(SMALL if quick else LARGE, progress=lambda step: show_progress(Text(f"{step} …")))
        html.write_text(report(tour), encoding="utf-8")
    show(tour, shown)
    where = ("\nThe whole story with charts: ", (str(html), "bold"), ", one file that needs no network.")
    shown.print(Text.assemble(*where))
