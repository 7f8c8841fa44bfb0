"""The cells of maps, counted by the engine: what Map and Flows measure."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from noisette.errors import InputError
from noisette.exact.number import fraction
from noisette.query.kind import Kind
from noisette.query.schema import Schema
from noisette.questions.parts.line_cells import GridCells
from noisette.questions.parts.records import grouped
from noisette.questions.parts.rows import Rows
from noisette.releases.axis import MOST_CELLS, Axis

__all__ = ["bounds_of", "listed", "map_cells"]

_USUAL = {2: 256, 3: 64}  # cells along each of so few axes
_FEWEST = 16
_BOUNDS = "bounds must be (west, south, east, north): the low ends of all columns, then the high ends."

Bounds = tuple[Fraction, ...]


def bounds_of(given: Any, columns: Sequence[str]) -> Bounds | None:
    """The bounds of a map exactly, or a sentence on what is wrong with them."""
    if given is None:
        return None
    if len(listed(given)) != 2 * len(columns):
        raise InputError(_BOUNDS)
    found = tuple(fraction(end, "each of bounds") for end in given)
    low, high = found[: len(columns)], found[len(columns) :]
    if low[0] > high[0] >= -180 and low[0] <= 180 and "lon" in columns[0].lower():
        raise InputError("bounds cross the date line: make two maps, one on each side of it.")
    if not all(a < b for a, b in zip(low, high, strict=True)):
        raise InputError(f"bounds are reversed or empty: {_BOUNDS}")
    return found


def listed(given: Any) -> Sequence[Any]:
    """A list, or a sentence on what to write."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError("bounds, cells and more must be lists: bounds=(8.4, 47.3, 8.7, 47.5), cells=(256, 128).")
    return given


def map_cells(
    columns: Sequence[str],
    bounds: Bounds | None,
    cells: int | Sequence[int] | None,
    of: Rows,
    schema: Schema,
    *,
    most: int = MOST_CELLS,
) -> GridCells:
    """The cells of columns between bounds, or between those of the policy; rows outside bounds are left out."""
    plain, many = grouped(of, columns, schema), len(columns)
    ends = [None] * many if bounds is None else list(zip(bounds[:many], bounds[many:], strict=True))
    each = cells if isinstance(cells, tuple) else (cells,) * many
    known = zip(columns, GridCells.kinds(plain, many), ends, each, strict=True)
    axes = tuple(_axis(*one, many) for one in known)
    if math.prod(axis.cells for axis in axes) > most:
        raise InputError(f"A map has at most {most:,} cells, such as 4,096 × 4,096: ask for fewer.")
    return GridCells.along(plain, axes, schema, inside=bounds is not None)


def _axis(name: str, kind: Kind, ends: tuple[Fraction, Fraction] | None, cells: int | None, many: int) -> Axis:
    """The cells of a column between the map's bounds; as many as asked for, if its grid has as many steps."""
    if not kind.number or kind.keys is not None:
        raise InputError(f"{name} must hold numbers with declared bounds: a map has no place for other values.")
    if kind.low is not None and kind.high is not None and ends is not None:
        if ends[0] < kind.low or ends[1] > kind.high:
            raise InputError(
                f"The map reaches beyond the declared bounds of {name}, {float(kind.low):g} to {float(kind.high):g}: "
                "choose bounds within them."
            )
        kind = replace(kind, low=ends[0], high=ends[1])
    steps = kind.count
    if cells is not None and steps is not None and cells > steps:
        raise InputError(f"{name} has {steps:,} values between these bounds: ask for at most as many cells.")
    return Axis.of(name, kind, cells or min(_USUAL.get(many, _FEWEST), steps or MOST_CELLS))
