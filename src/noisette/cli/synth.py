"""`noisette synth`: a synthetic table in the form of the input, in a file, and how good it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noisette.cli.common import Analyst, Folder, Level, Spend, amount, curator_of, patience
from noisette.errors import InputError
from noisette.terminal import echo

if TYPE_CHECKING:
    from noisette.answers import Release

__all__ = ["synth"]

_FORMS = (".parquet", ".csv", ".arrow")


def synth(
    spend: Spend,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .parquet, .csv or .arrow file.", metavar="FILE")],
    table: Annotated[str | None, typer.Argument(help="visits, where there are several tables.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns with commas between them; all by default.")] = None,
    where: Annotated[str | None, typer.Option(help="A condition that every row keeps: 'child < parent'.")] = None,
    most: Annotated[int | None, typer.Option(help="At most that many rows are made: 500000 by default.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write how good it is, as HTML.", metavar="FILE")] = None,
    level: Level = 0.95,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Make up a table in the form of the input, with noisy one-way and two-way tables, and say how good it is.

    It can be shared, opened like any other table, and asked to preview answers.
    """
    from noisette.questions import Synthetic

    _check(output, _FORMS, "--output")
    if report is not None:
        _check(report, (".html",), "--report")
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    promise, limits = amount(spend, "--spend"), {} if most is None else {"most": most}
    with patience("Making up rows"), curator_of(project, asking=True) as curator:
        question = Synthetic(names, None if table is None else curator.table(table), where, **limits)
        answer = curator.ask(question, spend=promise, level=level, analyst=analyst)
    answer.value.save(output)
    if report is not None:
        report.write_text(_page(answer), encoding="utf-8")
    echo(f"{answer.value}, in {output.name}\n\n{answer.value.quality}\n\n{answer.statement}")


def _check(path: Path, forms: tuple[str, ...], option: str) -> None:
    if path.suffix.lower() not in forms:
        raise InputError(f"{option} must name a file that ends in {' or '.join(forms)}.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"The folder of {option} is missing: create it first.")


def _page(answer: "Release") -> str:
    """What is known of the rows on one page."""
    from noisette.report.page import card, figure, page, table

    quality = answer.value.quality
    known = quality.to_arrow().to_pylist()
    head = ["table", "measured", "cells", "values merged", "expected error", f"below ({answer.level:.0%})"]
    rows = [
        [one["table"], "yes" if one["measured"] else "no", f"{one['cells']:,}", f"{one['merged']:,}"]
        + ["unknown" if one[name] is None else f"{one[name]:.2%}" for name in ("expected", "bound")]
        for one in known
    ]
    errors = "Half the sum of all differences between a table of the rows and that of the data, as a share of the rows."
    return page(
        "Synthetic table",
        f"{answer.value}. {answer.statement}",
        [
            card("Errors", errors, figure(quality.chart()), note="From released numbers only."),
            card("Every table", errors, table(head, rows, numbers=range(2, 6))),
        ],
    )
