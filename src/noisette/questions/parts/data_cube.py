"""What the release of a data cube is: marginals, counts, differences and ratios with error bars, at no further cost."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.errors import InputError
from noisette.query.kind import Kind, Value
from noisette.query.types import ARROW
from noisette.releases.marginal_cells import Box
from noisette.releases.marginals import Estimate, Terms
from noisette.releases.synthetic.coarsening import nonnegative

if TYPE_CHECKING:
    from noisette.charts import Chart

__all__ = ["Count", "CubeColumn", "DataCube", "Ratio", "arrow"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CubeColumn:
    """A column of a cube: its name, all values that it can have (NULL last), and which attribute it is."""

    name: str
    kind: Kind
    values: tuple[Value, ...]
    place: int


def arrow(axis: CubeColumn) -> pyarrow.Array:
    """The values of a column, in order."""
    if axis.kind.type == "real":
        return pyarrow.array([None if value is None else float(value) for value in axis.values], ARROW["real"])  # type: ignore[arg-type]
    return pyarrow.array(axis.values, ARROW[axis.kind.type])


@dataclass(frozen=True, repr=False)
class DataCube:
    """Every marginal of up to `ways` columns: unbiased, consistent with each other, with error bars.

    Numbers may be negative or broken, since noise is; that is why their sums agree. `level` is how likely each true
    number lies within its error bar.
    """

    axes: tuple[CubeColumn, ...]
    ways: int
    level: float
    estimate: Estimate

    # Numbers

    @property
    def total(self) -> "Count":
        """The number of rows."""
        return self.count({})

    def count(self, where: Mapping[str, Any]) -> "Count":
        """The rows with some values, such as {"ward": "north", "age": [1, 2]}: one value or several of a column."""
        if not isinstance(where, Mapping):
            raise InputError('Name columns and values: count({"ward": "north", "age": [1, 2]}).')
        box = {axis.place: _chosen(axis, given) for axis, given in zip(self._named(where), where.values(), strict=True)}
        return Count(self, ((1.0, box),))

    def marginal(self, *columns: str, simultaneous: bool = False, nonnegative: bool = False) -> pyarrow.Table:
        """The number of rows for each combination of values of some columns, as n with its error bar n_low to n_high.

        With `simultaneous`, all error bars of all marginals hold at once with the probability `level` (Bonferroni).
        With `nonnegative`, n is moved to the nearest numbers from 0 on with the same sum, and ends of bars below 0 to
        0; such numbers are biased, and their sums no longer agree with other marginals.
        """
        axes = self._named(columns)
        ordered = tuple(sorted(axis.place for axis in axes))
        n = self.estimate.marginal(ordered).transpose([ordered.index(axis.place) for axis in axes]).ravel()
        half = self.estimate.made.cell_width(ordered, self._level(simultaneous))
        low, high = n - half, n + half
        if nonnegative:
            n = nearest_nonnegative(n)
            low, high = np.minimum(np.maximum(low, 0), n), np.maximum(high, n)
        return pyarrow.table({**_keys(axes), "n": n, "n_low": low, "n_high": high})

    def to_arrow(self, *, simultaneous: bool = False) -> pyarrow.Table:
        """All marginals below each other: `marginal` says which, columns that are not in it are empty."""
        return pyarrow.concat_tables(self._labelled(columns, simultaneous) for columns in self.marginals)

    @property
    def marginals(self) -> list[tuple[str, ...]]:
        """The columns of each marginal, those of fewer columns first."""
        names = [axis.name for axis in self.axes]
        return [columns for size in range(self.ways + 1) for columns in combinations(names, size)]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of `to_arrow`, as an answer has them."""
        table = self.to_arrow()
        keys = [Column(name, table.column(name).combine_chunks()) for name in table.column_names[:-3]]
        n, low, high = (table.column(name).combine_chunks() for name in ("n", "n_low", "n_high"))
        return (*keys, Column("n", n, low.to_numpy(), high.to_numpy()))

    # For people

    def chart(self, *columns: str, note: str = "") -> "Chart":
        """A picture of one marginal, by default that of the first columns, at most two."""
        from noisette.charts.answers import answer

        drawn = columns or tuple(axis.name for axis in self.axes[: min(2, self.ways)])
        table = self.marginal(*drawn)
        keys = {name: table.column(name).to_pylist() for name in drawn}
        n, low, high = (table.column(name).to_pylist() for name in ("n", "n_low", "n_high"))
        return answer(keys, {"n": (n, low, high)}, note=note)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{axis.name} ({len(axis.values):,})" for axis in self.axes)
        return f"DataCube({sizes}; marginals of up to {self.ways} columns, {len(self.marginals):,} in all)"

    # Within

    def axis(self, name: str) -> CubeColumn:
        """A column, with all values that it can have."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise InputError(f"The cube has no such column: it has {', '.join(axis.name for axis in self.axes)}.")

    def _named(self, columns: Iterable[str]) -> list[CubeColumn]:
        found = [self.axis(name) for name in columns]
        if len(set(found)) < len(found):
            raise InputError("Name each column once.")
        if len(found) > self.ways:
            raise InputError(f"At most {self.ways} columns were measured together: name fewer, or ask with more ways.")
        return found

    def _level(self, simultaneous: bool) -> float:
        return 1 - (1 - self.level) / self.cells if simultaneous else self.level

    @property
    def cells(self) -> int:
        """How many cells all marginals have together."""
        return sum(math.prod(len(self.axis(name).values) for name in columns) for columns in self.marginals)

    def _labelled(self, columns: tuple[str, ...], simultaneous: bool) -> pyarrow.Table:
        table = self.marginal(*columns, simultaneous=simultaneous)
        size = table.num_rows
        keys = {
            axis.name: table.column(axis.name) if axis.name in columns else pyarrow.nulls(size, ARROW[axis.kind.type])
            for axis in self.axes
        }
        which = pyarrow.array([", ".join(columns)] * size, pyarrow.string())
        return pyarrow.table({"marginal": which, **keys, **{n: table.column(n) for n in ("n", "n_low", "n_high")}})


def _keys(axes: Sequence[CubeColumn]) -> dict[str, pyarrow.Array]:
    """All combinations of values, the last column's fastest."""
    sizes = [len(axis.values) for axis in axes]
    at = np.unravel_index(np.arange(math.prod(sizes)), sizes) if sizes else ()
    return {axis.name: arrow(axis).take(pyarrow.array(x)) for axis, x in zip(axes, at, strict=True)}


def _chosen(axis: CubeColumn, given: Any) -> NDArray[np.bool_]:
    """Which values of a column are meant by one of them or several."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    found = np.zeros(len(axis.values), bool)
    known = {value: i for i, value in enumerate(axis.values)}
    for value in given if several else [given]:
        if not _hashable(value) or value not in known:
            raise InputError(f"A value is not one of {axis.name}: axis(name).values lists them all.")
        found[known[value]] = True
    return found


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


# Counts


@dataclass(frozen=True, repr=False)
class Count:
    """A number of rows, or a sum or difference of such numbers, with its error bar; all come from the same noise."""

    cube: DataCube
    terms: tuple[tuple[float, Box], ...]

    @property
    def value(self) -> float:
        """The unbiased estimate."""
        return self.cube.estimate.count(self.terms)

    @property
    def half_width(self) -> float:
        """Half the width of the error bar."""
        return self.cube.estimate.made.half_width(self.terms, self.cube.level)

    @property
    def low(self) -> float:
        """The lower end of the error bar."""
        return self.value - self.half_width

    @property
    def high(self) -> float:
        """The upper end of the error bar."""
        return self.value + self.half_width

    def __float__(self) -> float:
        return self.value

    def __add__(self, other: "Count") -> "Count":
        return Count(self.cube, (*self.terms, *_same(self, other).terms))

    def __sub__(self, other: "Count") -> "Count":
        return Count(self.cube, (*self.terms, *((-factor, box) for factor, box in _same(self, other).terms)))

    def __truediv__(self, other: "Count") -> "Ratio":
        return _ratio(self, _same(self, other))

    def __repr__(self) -> str:
        return f"{self.value:,.1f} ± {self.half_width:,.1f}"


def _same(one: Count, other: Any) -> Count:
    if not isinstance(other, Count) or other.cube is not one.cube:
        raise InputError("Counts of one cube can be added, subtracted and divided: take both from the same cube.")
    return other


@dataclass(frozen=True, repr=False)
class Ratio:
    """One count divided by another; where the lower one is not clear of 0 the bar is all numbers."""

    value: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def _ratio(top: Count, bottom: Count) -> Ratio:
    """All m for which the count top - m bottom could be 0, by Fieller's theorem for correlated errors.

    With variances A, B and covariance C of both, and k the half-width in deviations of top - m bottom at the estimate:
    (b^2 - k^2 B) m^2 - 2 (ab - k^2 C) m + (a^2 - k^2 A) <= 0.   [Fieller 1954]
    """
    made, level = top.cube.estimate.made, top.cube.level
    a, b = top.value, bottom.value
    m = a / b if b else math.nan
    if not b:
        return Ratio(m, -math.inf, math.inf)
    apart: Terms = [*top.terms, *((-m * factor, box) for factor, box in bottom.terms)]
    spread = math.sqrt(made.variance(apart))
    k2 = (made.half_width(apart, level) / spread) ** 2 if spread else 0.0
    one, other = made.variance(top.terms), made.variance(bottom.terms)
    both = (made.variance([*top.terms, *bottom.terms]) - one - other) / 2
    square, middle = b * b - k2 * other, a * b - k2 * both
    if square <= 0:
        return Ratio(m, -math.inf, math.inf)
    root = math.sqrt(max(middle * middle - square * (a * a - k2 * one), 0.0))
    return Ratio(m, min(m, (middle - root) / square), max(m, (middle + root) / square))


# Numbers from 0 on


def nearest_nonnegative(n: Floats) -> Floats:
    """The nearest numbers from 0 on with the same sum; all 0 if that is not positive.

    >>> nearest_nonnegative(np.array([5.0, -1.0, 2.0])).tolist()
    [4.5, 0.0, 1.5]
    """
    return nonnegative(n, float(n.sum())) if n.sum() > 0 else np.zeros_like(n)
