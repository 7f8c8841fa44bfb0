"""`noisette map`: where rows are, as a picture or a file for geographic programs."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Analyst, Folder, Json, Level, Spend, amount, curator_of, patience
from noisette.errors import InputError
from noisette.terminal import echo

if TYPE_CHECKING:
    from noisette.answers import Release

__all__ = ["map_of"]

_PICTURES, _FILES = (".png", ".svg", ".html", ".json"), (".geojson", ".parquet")


def map_of(
    table: Annotated[str, typer.Argument(help="The table, such as visits.")],
    x: Annotated[str, typer.Argument(help="The column of longitudes, or any column of numbers.")],
    y: Annotated[str, typer.Argument(help="The column of latitudes, or any other column of numbers.")],
    spend: Spend,
    bounds: Annotated[str | None, typer.Option(help="west,south,east,north; else those of the policy.")] = None,
    cells: Annotated[str | None, typer.Option(help="Cells along each axis: 256, or 256,128.")] = None,
    strategy: Annotated[str, typer.Option(help="How cells are measured, see docs/maps.md.")] = "adaptive",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .png, .svg, .html, .geojson or .parquet file.", metavar="FILE"),
    ] = None,
    where: Annotated[str | None, typer.Option(help="Which rows: age >= 18.", metavar="CONDITION")] = None,
    level: Level = 0.95,
    json: Json = False,
    analyst: Analyst = None,
    project: Folder = None,
) -> None:
    """Release a map of two columns, and draw it; rows outside its bounds are left out.

    `noisette explain` with the same question as JSON tells the error to expect before anything is paid.
    """
    from noisette.questions import Map

    promise = amount(spend, "--spend")
    _check(output)
    west_to_north = None if bounds is None else _numbers(bounds, "--bounds", "8.4,47.3,8.7,47.5")
    fineness = None if cells is None else _whole(cells)
    with patience("Asking"), curator_of(project, asking=True) as curator:
        rows = curator.table(table)
        of = rows if where is None else rows.where(where)
        question = Map(x, y, west_to_north, fineness, of, strategy)
        answer = curator.ask(question, spend=promise, level=level, analyst=analyst)
    if output is not None:
        _write(answer, output)
    echo(answer.to_json() if json else _shown(answer, output))


def _check(output: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is spent."""
    if output is None:
        return
    if output.suffix.lower() not in (*_PICTURES, *_FILES):
        raise InputError("A map is written by the ending of its name: .png, .svg, .html, .json, .geojson or .parquet.")
    if not output.absolute().parent.is_dir():
        raise InputError("The folder of the file is missing: create it first.")
    if output.suffix.lower() in _PICTURES[:-1]:
        from noisette.charts.chart import renderer

        renderer()


def _write(answer: "Release", output: Path) -> None:
    try:
        if output.suffix.lower() == ".geojson":
            answer.value.to_geojson(output)
        elif output.suffix.lower() == ".parquet":
            answer.value.to_geoparquet(output)
        else:
            answer.plot(output)
    except OSError:
        raise InputError(f"{output.name} cannot be written: name another file; to ask again is free.") from None


def _shown(answer: "Release", output: Path | None) -> str:
    lines = [repr(answer.value), answer.statement]
    return "\n".join([*lines, *([f"Written to {output}."] if output is not None else [])])


def _numbers(text: str, option: str, example: str) -> list[Any]:
    """Numbers with commas between them, as texts, which are read exactly.

    >>> _numbers("8.4, 47.3,8.7,47.5", "--bounds", "")
    ['8.4', '47.3', '8.7', '47.5']
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[-+]?\d+(\.\d*)?", part) for part in parts):
        raise InputError(f"{option} must be numbers with commas between them: {option} {example}.")
    return parts


def _whole(text: str) -> int | list[int]:
    """One number, or several.

    >>> _whole("256"), _whole("256,128")
    (256, [256, 128])
    """
    if not re.fullmatch(r"\d{1,9}(\s*,\s*\d{1,9})*", text.strip()):
        raise InputError("--cells must be whole numbers: --cells 256, or --cells 256,128.")
    found = [int(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found
