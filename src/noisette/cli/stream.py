"""`noisette stream`: release the next step of a count that is published again and again; one command a step."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Analyst, Folder, Json, Spend, amount, as_json, curator_of, patience
from noisette.errors import InputError
from noisette.terminal import echo
from noisette.text import aligned

if TYPE_CHECKING:
    import pyarrow

    from noisette.questions.parts.publication import Publication

__all__ = ["stream"]


def stream(
    time: Annotated[str, typer.Argument(help="The column that says when a row came.")],
    since: Annotated[str, typer.Option(help="When the first step begins: 2026-01-01, in UTC.")],
    until: Annotated[str, typer.Option(help="When the last step ends.")],
    spend: Spend,
    every: Annotated[str, typer.Option(help="How long a step is: 1 day, 1 week, 15 minutes.")] = "1 day",
    by: Annotated[
        str | None, typer.Option(help="A column with declared keys: a sum for each.", metavar="COLUMN")
    ] = None,
    of: Annotated[str | None, typer.Option(help="SELECT * FROM … WHERE …: which rows.", metavar="ROWS")] = None,
    events: Annotated[int | None, typer.Option(help="Rows of one unit that count in each group, in all.")] = None,
    window: Annotated[int | None, typer.Option(help="Count this many last steps instead of all.")] = None,
    sum: Annotated[
        str | None, typer.Option(help="Add up a column with bounds instead of counting rows.", metavar="COLUMN")
    ] = None,
    ends: Annotated[
        str | None, typer.Option(help="A column that says when a row is over: count rows under way.", metavar="COLUMN")
    ] = None,
    half_life: Annotated[int | None, typer.Option(help="What came this many steps ago counts half.")] = None,
    name: Annotated[str | None, typer.Option(help="Tells streams apart that are alike otherwise.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Release all steps that are over, not one.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write all steps so far to a CSV file.", metavar="FILE")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw all steps so far.", metavar="FILE")] = None,
    altered: Annotated[
        Path | None,
        typer.Option(help="For the owner alone: write what was altered or deleted, exactly.", metavar="FILE"),
    ] = None,
    json: Json = False,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Release the next step of a running count, if it is over; the whole stream is charged when it begins.

    The same command, run again (by cron, say), goes on from where the last one stopped. A step is released once and
    kept: who comes too late for it reads it with --csv or --plot.
    """
    from noisette.questions import Stream

    promise = amount(spend, "--spend")
    _check_files(csv, plot, altered, analyst)
    asked = Stream(time, since, until, every, by, of, events, window, name, sum, ends, half_life)
    with patience("Counting"), curator_of(project, asking=True) as curator:
        published = curator.stream(asked, spend=promise, analyst=analyst)
        before = published.to_arrow().num_rows
        published.step()
        while everything and published.left and published.over():
            published.step()
        found = published.to_arrow()
        _save(published, found, csv, plot, altered)
    rows = _rows(found, before)
    echo(as_json({"steps": published.steps, "of": asked.steps, "rows": rows}) if json else _shown(rows, published))


def _rows(found: "pyarrow.Table", first: int) -> list[dict[str, Any]]:
    """The rows of the steps that were released now."""
    return [
        {name: str(v) if name == "until" else v for name, v in row.items()} for row in found.slice(first).to_pylist()
    ]


def _shown(rows: list[dict[str, Any]], published: Any) -> str:
    if not rows:
        return f"No key is released yet.\n\n{published!r}"
    *names, n, low, high = rows[0]
    cells = [
        [*(str(row[name]) for name in names), f"{row[n]:,.10g}", f"± {(row[high] - row[low]) / 2:,.3g}"] for row in rows
    ]
    return f"{aligned([*names, n, ''], cells)}\n\n{published!r}"


def _check_files(csv: Path | None, plot: Path | None, altered: Path | None, analyst: str | None) -> None:
    if altered is not None and analyst is not None:
        raise InputError("--altered writes exact numbers, for the owner alone: leave it out where an analyst asks.")
    if any(file is not None and not file.absolute().parent.is_dir() for file in (csv, plot, altered)):
        raise InputError("The folder of the file is missing: create it first.")


def _save(
    published: "Publication", found: "pyarrow.Table", csv: Path | None, plot: Path | None, altered: Path | None
) -> None:
    from noisette.curator.altered import altered as fallen

    if csv is not None:
        _write(found, csv)
    if plot is not None:
        published.chart().save(str(plot))
    if altered is not None:
        _write(fallen(published), altered)


def _write(found: "pyarrow.Table", path: Path) -> None:
    from pyarrow import csv

    try:
        csv.write_csv(found, path)
    except OSError:
        raise InputError(f"{path.name} cannot be written: check that its folder may be written to.") from None
