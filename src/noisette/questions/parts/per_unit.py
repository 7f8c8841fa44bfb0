"""How many units have how many rows, or groups: whole numbers in which each unit counts once.

f(u) is the number of a unit's rows, or of the groups it is in; a row without a unit (NULL, NaN) belongs to nobody. Each
unit is in one cell (t, t + w] between two of the candidate limits t_1 < ... < t_m, at the place p = f(u) - t. It adds
w - p to a number A of its cell and p to a number B, which is w in all, whatever p is: in steps of 1/w a unit that comes
or goes moves both together by 1 in l1, and no limit is needed. (A + B)/w units are in the cell, and their places add up
to B, so every sum over units of a function that is linear within cells follows without bias:

    units beyond t:  #{f > t}        left out by t:  sum of (f - t)+        retained by t:  sum of min(f, t)

Beyond the last candidate a unit counts as if it had one row more than that: what it has in truth has no bound.

Vocabulary: `limits` t_1 ... t_m · `steps` M, the least common multiple of all w: numbers are whole in steps of 1/M.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical
from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.kind import Kind
from noisette.query.measure import Exact, Measure
from noisette.query.operations import kind_of
from noisette.query.plan import Aggregate, Key, Named, PerUnit, Query, Relation, Where
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema
from noisette.query.shape import ROW
from noisette.query.stability import shape_of
from noisette.questions.parts.cells import cell_of

__all__ = ["UnitCells", "groups_of_units", "powers", "rows_in_a_group", "rows_of_units"]

_ROWS = Aggregate("rows")
_FINEST = 2**30


def powers(most: int) -> tuple[int, ...]:
    """1, 2, 4, ... and the most.

    >>> powers(16), powers(20)
    ((1, 2, 4, 8, 16), (1, 2, 4, 8, 16, 20))
    """
    return (*(2**i for i in range((most - 1).bit_length())), most)


def rows_of_units(rows: Relation, limits: Sequence[int], schema: Schema) -> Prepared:
    """The units in each cell, and the sum over them of f(u), at most one above the last limit; f counts rows."""
    shape = shape_of(rows, schema)
    if shape.unit == ROW:
        raise InputError("Each row is a unit by itself here, so there is no limit on its rows: it has one.")
    if shape.public:
        raise InputError("All tables of this question are public: read them directly, no noise is needed.")
    return _between(rows, _ROWS, limits, schema)


def _between(rows: Relation, size: Aggregate, limits: Sequence[int], schema: Schema) -> Prepared:
    """The units in each cell, and the sum over them of f(u), which is an aggregate of the unit's rows."""
    f = Name("u.n")
    cells = cell_of(f, [limit + 1 for limit in limits])
    counted = (("units", _ROWS), ("sum", Aggregate("sum", Call("least", (f, Literal(limits[-1] + 1))))))
    source = PerUnit(rows, (), ((f.name, size),))
    return prepare(canonical(Query(source, (cells,), (("cell", Key(0)), *counted))), schema)


def groups_of_units(rows: Relation, keys: Sequence[Expression], limits: Sequence[int], schema: Schema) -> Prepared:
    """The same where f counts the groups that a unit is in."""
    return rows_of_units(PerUnit(_in_groups(rows, keys, schema), _named(keys), ()), limits, schema)


def rows_in_a_group(rows: Relation, keys: Sequence[Expression], limits: Sequence[int], schema: Schema) -> Prepared:
    """The same where f counts the rows of a unit in the group where it has most."""
    n = Name("g.n")
    in_groups = PerUnit(_in_groups(rows, keys, schema), _named(keys), ((n.name, _ROWS),))
    return _between(in_groups, Aggregate("quantile", n, Fraction(1)), limits, schema)


def _named(keys: Sequence[Expression]) -> tuple[Named, ...]:
    return tuple((f"g.k{i}", key) for i, key in enumerate(keys))


def _in_groups(rows: Relation, keys: Sequence[Expression], schema: Schema) -> Relation:
    """The rows whose keys are among the declared ones, where these are: others are in no group."""
    scope = shape_of(rows, schema).columns
    kinds = [(key, kind_of(key, scope)) for key in keys]
    return reduce(Where, (_known(key, kind) for key, kind in kinds if kind.keys is not None), rows)


def _known(key: Expression, kind: Kind) -> Expression:
    known = Call("in", (key, *map(Literal, kind.keys or ())))
    return Call("or", (known, Call("is_null", (key,)))) if kind.nullable else known


@dataclass(frozen=True)
class UnitCells:
    """Numbers A and B of each cell, in steps of 1/M; where w is 1, A is 0 whatever there is, and left out.

    >>> UnitCells("rows", (1, 2, 4), None).cells, UnitCells("rows", (1, 2, 4), None).steps
    ([(0, 1), (1, 1), (2, 2), (4, 1)], 2)
    """

    name: str
    limits: tuple[int, ...]
    prepared: Prepared

    def __post_init__(self) -> None:
        if self.steps > _FINEST:
            raise InputError(
                f"The distances between the candidate {self.name} have a very large common multiple: take powers of "
                "two, or 1, 2, 5, 10, 20, 50."
            )

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Where each cell begins, and how wide it is."""
        starts = (0, *self.limits)
        return [*((a, b - a) for a, b in zip(starts, self.limits, strict=False)), (self.limits[-1], 1)]

    @property
    def steps(self) -> int:
        """M."""
        return math.lcm(*(width for _, width in self.cells))

    @property
    def measure(self) -> Measure:
        """What gets noise."""
        return Measure("rows", grid=Fraction(1, self.steps))

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """M in l1, a + b = M. A unit that is replaced leaves one cell for another, or moves within its own."""
        m, times = self.steps, 1 if neighbours is Neighbours.ADD_REMOVE else 2
        return Sensitivity(times * m, times * m * m, m, 2 * times, neighbours=neighbours)

    def read_as(self, schema: Schema) -> Schema:
        """The tables as they are described."""
        return schema

    def numbers(self, exact: Exact) -> NDArray[np.int64]:
        """A and B of each cell, from its units and the sum of their f."""
        units, sums = (array.tolist() for array in exact.measures)
        found = []
        for (start, width), n, total in zip(self.cells, units, sums, strict=True):
            b, scale = total - n * start, self.steps // width
            found += [(n * width - b) * scale, b * scale] if width > 1 else [b * scale]
        return np.array(found, dtype=np.int64)

    @property
    def labels(self) -> dict[str, list[int]]:
        """The candidates."""
        return {self.name: list(self.limits)}

    @property
    def weights(self) -> dict[str, NDArray[np.float64]]:
        """How each column is added up of A and B for each candidate: by its function at the ends of cells."""
        pairs = [(t, x) for t, w in self.cells for x in ([t, t + w] if w > 1 else [t + w])]
        start, at = np.array(pairs, dtype=float).T
        limit = np.array(self.limits, dtype=float)[:, None]
        found = {"units": start >= limit, "left_out": np.maximum(at - limit, 0), "retained": np.minimum(at, limit)}
        return {name: np.asarray(weight, dtype=float) / self.steps for name, weight in found.items()}

    lost = ("left_out",)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not known."""
        most = f"{self.limits[-1] + 1:,} {self.name}"
        return (f"a unit with more than {most} counts as one with {most}, so left_out and share are lower bounds",)
