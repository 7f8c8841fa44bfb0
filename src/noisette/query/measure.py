"""What the engine computes exactly, and how far one unit can move it.

A measure is one whole number for each group, a sum over the group's rows of a whole number of steps (or, for quantiles,
a histogram of steps). Only measures are noised; all else is computed from them.

    `steps` a row's value in units of `grid`, between `low` and `high` · `rows` retained of one unit in one group ·
    `groups` it may appear in · `total` of its rows in all groups
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING
from typing import Literal as OneOf

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError, LimitError
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.expression import Expression
from noisette.query.kind import Value
from noisette.query.plan import Relation
from noisette.query.schema import Limits
from noisette.query.shape import ROW, Shape

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Contribution", "Exact", "Measure", "Request", "contribution", "moved", "sensitivity"]


@dataclass(frozen=True)
class Measure:
    """One whole number for each group.

    rows: how many rows · count: how many rows where `of` is not NULL · units: how many units · distinct: how many
    different values of `of` · sum: the steps of `of`, added up (NULL adds nothing) · histogram: how many rows at each
    step from `low` to `high`.
    """

    what: OneOf["rows", "count", "units", "distinct", "sum", "histogram"]
    of: Expression | None = None
    grid: Fraction = Fraction(1)
    low: int = 0
    high: int = 1

    @property
    def cells(self) -> int:
        """How many steps there are from low to high."""
        return self.high - self.low + 1


@dataclass(frozen=True)
class Request:
    """What to compute: measures of the groups of a relation, with at most `limits` of each unit retained.

    `domains` holds for each key the values it is grouped by (other values are left out), or None where they are
    unknown. If all are known, measures come for every combination, in the order of `itertools.product`; if not, for the
    groups that are there, in any order. `limits` is None where each unit has one row at most. `nearest`: the keys are
    numbers that are measured, so that values beyond the bounds are the nearer one (`beyond`).
    """

    source: Relation
    keys: tuple[Expression, ...]
    domains: tuple[tuple[Value, ...] | None, ...]
    measures: tuple[Measure, ...]
    limits: Limits | None
    nearest: bool = False


@dataclass(frozen=True)
class Exact:
    """What an engine answers to a request: never shown, only noised.

    `keys` holds one column for each key, or is None if all combinations of the domains are there. Each measure is an
    array of int64, one number a group (saturated at +-2^62); a histogram is groups x cells.
    """

    keys: "pyarrow.Table | None"
    measures: tuple[NDArray[np.int64], ...]

    def __repr__(self) -> str:
        return "Exact(...)"


@dataclass(frozen=True)
class Contribution:
    """The most that the rows of one unit can be: in how many groups, in one of them, in all, and squared."""

    groups: int
    rows: int
    total: int
    returns: bool = field(default=False, repr=False)  # rows that were left out can come where the unit's go: as many

    @property
    def squares(self) -> int:
        """The largest sum over groups of the square of the unit's rows there.

        >>> Contribution(groups=3, rows=2, total=5).squares
        9
        """
        full, rest = divmod(self.total, self.rows)
        return full * self.rows**2 + rest**2

    def within(self, groups: int, cells: int = 1) -> "Contribution":
        """The same where there are `groups` groups in all, each of them the sum of `cells` of the groups here.

        A unit is in no more groups than there are. All of its rows may still be in one of them, as far as the limit on
        rows of one group allows.

        >>> Contribution(16, rows=2, total=32).within(3), Contribution(16, rows=16, total=16).within(3)
        (Contribution(groups=3, rows=2, total=6), Contribution(groups=3, rows=16, total=16))
        >>> Contribution(3, rows=2, total=6).within(1, cells=10), Contribution(3, rows=2, total=6).within(5, cells=2)
        (Contribution(groups=1, rows=6, total=6), Contribution(groups=3, rows=4, total=6))
        """
        most, rows = min(self.groups, groups), min(self.total, self.rows * cells)
        return replace(self, groups=most, rows=rows, total=min(self.total, most * rows))


def contribution(shape: Shape, *, grouped: bool, keys: Sequence[Expression] = ()) -> tuple[Contribution, Limits | None]:
    """What one unit contributes at most, and the limits that see to it (None where nothing has to be cut).

    Where rows are limited in calendar periods, the `keys` of the groups say how many of them are in one group.

    >>> contribution(Shape({}, "person", None, Limits(groups=3, rows_per_group=2)), grouped=True)[0]
    Contribution(groups=3, rows=2, total=6)
    """
    if shape.rows == 1:
        return Contribution(1, 1, 1), None
    if shape.moved is not None:
        raise InputError("Private tables that are joined on other columns than their units are for questions in SQL.")
    if shape.unit == ROW:
        raise InputError("Join on a column of the public table that has no repeats: each row here must stay one row.")
    if shape.rows is not None:  # a join bounded what one unit produces, or a limit per period
        part = Contribution(shape.rows if grouped else 1, shape.rows, shape.rows)
        if keys and shape.periods is not None:
            part = _in_periods(shape.rows, *shape.periods.spread(keys))
        return part, Limits(rows=shape.rows)
    limits = shape.limits if grouped else replace(shape.limits, groups=None)
    rows = _least(limits.rows, limits.rows_per_group)
    if rows is None:
        raise LimitError(
            f"Say in the policy how many rows of one {shape.whose} may count: "
            'rows = 10, or groups = 3 and rows_per_group = 1, or rows = "each question" for a limit that each question '
            'chooses (streams need a number). Where it says rows = "private", buy the limit once, with '
            "rows(table, spend=...) or `noisette buy rows`."
        )
    if not grouped:
        return Contribution(1, rows, rows), Limits(rows=rows)
    groups = _least(limits.groups, limits.rows)
    if groups is None:
        raise InputError(f"Say in the policy in how many groups one {shape.whose} may count: groups = 3.")
    total = _least(limits.rows, groups * rows)
    assert total is not None
    return Contribution(groups, rows, total), limits


def _in_periods(total: int, groups: int, rows: int) -> Contribution:
    groups, rows = min(groups, total), min(rows, total)
    return Contribution(groups, rows, min(total, groups * rows))


def moved(shape: Shape, *, grouped: bool) -> Contribution | None:
    """What one unit moves where rows belong to several units; None where each row has a unit of its own."""
    if shape.moved is None:
        return None
    rows = shape.moved.rows
    return Contribution(2 * rows if grouped else 1, rows, rows, returns=True)


def _least(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def sensitivity(measure: Measure, part: Contribution, neighbours: Neighbours) -> Sensitivity:
    """How far one unit can move a measure, over all groups together, in steps.

    A unit's rows add at most `rows` numbers between low and high to a group. Under replace another unit's take their
    place: two vectors of that kind differ by at most twice each norm, and where all numbers have one sign the squares
    only add, since (a - b)^2 <= a^2 + b^2.

    >>> s = sensitivity(Measure("sum", low=-2, high=5), Contribution(3, 2, 5), Neighbours.ADD_REMOVE)
    >>> s.l1, s.l2_squared, s.linf, s.l0
    (Fraction(25, 1), Fraction(225, 1), Fraction(10, 1), 3)
    """
    if part.returns:
        return _of_both(measure, part, neighbours)
    if measure.what == "units":
        part = Contribution(part.groups, 1, part.groups)
    size = max(abs(measure.low), abs(measure.high)) if measure.what == "sum" else 1
    l1, squares, most = part.total * size, part.squares * size**2, part.rows * size
    if size == 0:
        return Sensitivity(0, 0, 0, 0, neighbours=neighbours)
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(l1, squares, most, part.groups, neighbours=neighbours)
    one_sign = measure.what != "sum" or measure.low >= 0 or measure.high <= 0
    if one_sign:
        return Sensitivity(2 * l1, 2 * squares, most, 2 * part.groups, neighbours=neighbours)
    return Sensitivity(2 * l1, 4 * squares, 2 * most, 2 * part.groups, neighbours=neighbours)


def _of_both(measure: Measure, part: Contribution, neighbours: Neighbours) -> Sensitivity:
    """The same where a unit that leaves takes rows along and as many come: under replace twice as many of each.

    Rows that go and rows that come are two vectors of numbers of one sign, or of any sign. In one group alone numbers
    of one sign differ by no more than the larger of both (`docs/proofs/joins.md`).

    >>> s = sensitivity(Measure("rows"), Contribution(1, 6, 6, returns=True), Neighbours.ADD_REMOVE)
    >>> s.l1, s.l2_squared, s.linf, s.l0
    (Fraction(6, 1), Fraction(36, 1), Fraction(6, 1), 1)
    """
    times = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    rows = times * part.total
    size = rows * max(abs(measure.low), abs(measure.high)) if measure.what == "sum" else rows
    if size == 0:
        return Sensitivity(0, 0, 0, 0, neighbours=neighbours)
    one_sign = measure.what != "sum" or measure.low >= 0 or measure.high <= 0
    most = size if one_sign else 2 * size
    if part.groups == 1:
        return Sensitivity(most, most**2, most, 1, neighbours=neighbours)
    return Sensitivity(2 * size, (2 if one_sign else 4) * size**2, most, times * part.groups, neighbours=neighbours)
