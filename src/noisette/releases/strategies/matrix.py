"""A strategy that is any public matrix of whole numbers: measured exactly, inferred by least squares.

Vocabulary: `A` the matrix, a row for each measured number, a column for each cell · `G` = A'A · `H` the inverse of A
(of least squares and least norm) · `fill` the most that a unit's rows can add up to where a row in cell j adds a_j.

Real transforms become exact in this form: round their coefficients to whole multiples of a small unit, in public, and
take all norms of the rounded matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.integers import Integers, magnitude
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution

__all__ = ["Matrix"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

MOST_ENTRIES = 1 << 24
_PAIRS = 1 << 26  # steps, up to which the l1 norms of all differences of columns are worth their time
_CHUNK = 1 << 22
_BLOCK = 1 << 17  # products of columns at a time: they fit the processor's cache
_ZERO = 1e-12  # of the largest eigenvalue


@dataclass(frozen=True, eq=False, repr=False)
class Matrix:
    """Whole numbers A x, all with the same noise.

    >>> made = Matrix(np.array([[1, 1], [1, -1], [0, 1]]))
    >>> made.measure(np.array([3, 4]))[0].tolist(), made.sensitivities(Contribution(1, 1, 1), Neighbours.ADD_REMOVE)
    ([7, -1, 4], (Sensitivity(l1='3', l2_squared='3', linf='1', l0=3, neighbours=ADD_REMOVE),))
    >>> made.variances(np.array([0, 0]), np.array([0, 1]), [1.0]).round(4).tolist()
    [0.5, 0.8333]
    """

    rows: Counts
    name: str = field(default="matrix", kw_only=True)

    def __post_init__(self) -> None:
        rows = np.array(self.rows)
        if rows.ndim != 2 or rows.size == 0 or rows.dtype.kind not in "iu" or rows.size > MOST_ENTRIES:
            raise InputError(f"A strategy must be a matrix of whole numbers with at most {MOST_ENTRIES:,} entries.")
        if not rows.any() or magnitude(rows) > 2**24:
            raise InputError("The numbers of a strategy must lie between -2^24 and 2^24, and not all be 0.")
        rows = rows.astype(np.int64)
        rows.flags.writeable = False
        object.__setattr__(self, "rows", rows)

    def __repr__(self) -> str:
        return f"Matrix({self.name}: {len(self.rows):,} numbers of {self.cells:,} cells)"

    @property
    def cells(self) -> int:
        """How many columns there are."""
        return len(self.rows[0])

    def measure(self, x: Counts) -> list[Integers]:
        """A x, exactly."""
        wide = int(np.abs(self.rows).sum(axis=1).max()) * magnitude(x) >= 2**62
        return [self.rows.astype(object) @ x.astype(object) if wide else self.rows @ np.asarray(x, np.int64)]

    def shares(self, *, gaussian: bool) -> tuple[float]:
        """All of the promise, for the one level."""
        return (1.0,)

    # How far one unit moves it

    def sensitivities(self, part: Contribution, neighbours: Neighbours) -> tuple[Sensitivity]:
        """How far one unit can move A x: exact for one row, or rows that may all lie in one cell; else from above.

        By the triangle inequality k rows move A x at most k times as far as the worst one (under replace: the worst
        pair of an old and a new row). Where they must lie in different cells, l1 norms of the longest columns add up,
        and |A d|^2 = d'G d is at most k times the largest `fill` of a row of G.
        """
        return (self._added(part) if neighbours is Neighbours.ADD_REMOVE else self._replaced(part),)

    def _added(self, part: Contribution) -> Sensitivity:
        lengths = np.abs(self.rows).sum(axis=0)
        l1, square = _fill(lengths[None], part), part.total**2 * int((self.rows**2).sum(axis=0).max())
        if part.rows < part.total:
            square = min(square, part.total * _fill(np.maximum(self.gram, 0), part))
        linf = max(_fill(np.maximum(self.rows, 0), part), _fill(np.maximum(-self.rows, 0), part))
        return Sensitivity(l1, min(square, l1**2), linf, len(self.rows), neighbours=Neighbours.ADD_REMOVE)

    def _replaced(self, part: Contribution) -> Sensitivity:
        """Pairs of an old and a new row, one of which may be in no cell; no product of columns below 0 saves half."""
        added, (pair, product) = self._added(part), self._pairs
        l1 = min(2 * int(added.l1), part.total * self._furthest)
        square = min((4 if product < 0 else 2) * int(added.l2_squared), part.total**2 * pair, l1**2)
        linf = _fill(np.maximum(self.rows, 0), part, np.maximum(-self.rows, 0))
        return Sensitivity(l1, square, linf, len(self.rows), neighbours=Neighbours.REPLACE)

    @cached_property
    def _exact(self) -> NDArray[Any]:
        """A in floats where they hold every product: whole numbers below 2^53, no sum exceeds the longest column."""
        return self.rows.astype(float) if int((self.rows**2).sum(axis=0).max()) < 2**51 else self.rows

    @cached_property
    def gram(self) -> Counts:
        """A'A, exactly."""
        found: Counts = (self._exact.T @ self._exact).astype(np.int64)
        return found

    @cached_property
    def _pairs(self) -> tuple[int, int]:
        """The largest square of a column's length or of the distance of two; the smallest product of two. In blocks."""
        a, own, step = self._exact, (self._exact**2).sum(axis=0), max(1, _BLOCK // self.cells)
        furthest, smallest = [own.max()], []
        for at in range(0, self.cells, step):
            products = a[:, at : at + step].T @ a
            smallest.append(products.min())
            products *= -2
            products += own
            furthest.append((products.max(axis=1) + own[at : at + step]).max())
        return int(max(furthest)), int(min(smallest))

    @cached_property
    def _furthest(self) -> int:
        """The largest l1 distance of two columns, or length of one; twice that length where pairs are too many."""
        longest = int(np.abs(self.rows).sum(axis=0).max())
        if self.rows.size * self.cells > _PAIRS:
            return 2 * longest
        columns = np.ascontiguousarray(self.rows.T)
        pairs = (int(np.abs(columns[j + 1 :] - columns[j]).sum(axis=1).max()) for j in range(self.cells - 1))
        return max(longest, *pairs, 0)

    # Least squares

    @cached_property
    def inverse(self) -> Floats:
        """H: least squares, and of least norm where cells are not determined."""
        a = self.rows.astype(float)
        wide = a.shape[0] < a.shape[1]
        values, vectors = np.linalg.eigh(a @ a.T if wide else self.gram.astype(float))
        known = values > _ZERO * values.max()
        scaled = vectors[:, known] / values[known]
        core = scaled @ vectors[:, known].T
        found: Floats = a.T @ core if wide else core @ a.T
        return found

    @cached_property
    def biased(self) -> bool:
        """Whether the numbers leave cells undetermined, so that an estimate is off by more than noise."""
        return bool(np.abs(self.inverse @ self.rows - np.eye(self.cells)).max() > 1e-6)

    def infer(self, y: Sequence[Floats], v: Sequence[float]) -> Floats:
        """H y."""
        found: Floats = self.inverse @ np.asarray(y[0], float)
        return found

    @cached_property
    def _prefixes(self) -> Floats:
        return np.vstack([np.zeros(len(self.rows)), np.cumsum(self.inverse, axis=0)])

    def variances(self, low: Counts, high: Counts, v: Sequence[float]) -> Floats:
        """The variance of the noise in each range."""
        start, stop = np.broadcast_arrays(np.asarray(low, np.int64), np.asarray(high, np.int64) + 1)
        found, step = np.empty(start.size), max(1, _CHUNK // len(self.rows))
        for at in range(0, start.size, step):
            ends = start.ravel()[at : at + step], stop.ravel()[at : at + step]
            found[at : at + step] = ((self._prefixes[ends[1]] - self._prefixes[ends[0]]) ** 2).sum(axis=1)
        return v[0] * found.reshape(start.shape)

    def query_variances(self, queries: Any, v: Sequence[float]) -> Floats:
        """The variance of the noise in any linear query of the cells, one query a row."""
        found: Floats = v[0] * ((np.asarray(queries, float) @ self.inverse) ** 2).sum(axis=1)
        return found


def _fill(columns: Counts, part: Contribution, others: Counts | None = None) -> int:
    """The most that a unit's rows add up to, over lines: it fills the best cells first; with `others`, two units do."""
    full, rest = divmod(part.total, part.rows)
    used = min(full + (rest > 0), columns.shape[1])
    weights = np.array(([part.rows] * full + [rest] * (rest > 0))[:used], np.int64)
    most = np.zeros(len(columns), object)
    for some in (columns, others):
        if some is not None:
            best = np.sort(some, axis=1)[:, ::-1][:, :used] if used > 1 else some.max(axis=1, keepdims=True)
            most += best.astype(object) @ weights.astype(object)
    return int(max(most))
