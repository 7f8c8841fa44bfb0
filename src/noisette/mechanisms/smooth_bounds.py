"""Statistics that one record can move far on some tables and hardly on most: how far, and how fast that can change.

Let A_k(x) be the furthest that one record can move the answer of any table within k changes of x. Then

    S(x) = max_k A_k(x) e^(-beta k)

is at least A_0, and between neighbours it changes by at most a factor e^beta, because A_k(x) <= A_(k+1)(x').
[Nissim-Raskhodnikova-Smith 2007; errata E13, E14; proof note: docs/proofs/smooth-sensitivity.md]

Answers and A_k are whole numbers. S is told as the pair (A_k, k) at which it is attained, found exactly: floats compare
only what differs by far.

Vocabulary: `gap` A_k · `changes` k · `reach` how far from the answer t changes can bring it, for t = 1, 2, ….
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, whole
from noisette.mechanisms.answers import integer_answer
from noisette.mechanisms.steepest import Fall, ceilings, largest, steepest
from noisette.privacy import Neighbours

__all__ = ["Order", "Statistic", "Triangles", "Trimmed"]

Whole = NDArray[np.int64]
Pairs = Sequence[tuple[Any, Any, int]]
ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
_MOST = 2**60
_MOST_NODES = 2000


class Statistic(Protocol):
    """A whole-number answer, with what is known of how far records can move it."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation for which all of it holds."""
        ...

    @property
    def span(self) -> tuple[int, int]:
        """The least and the largest answer of all tables."""
        ...

    @property
    def furthest(self) -> int:
        """The global sensitivity."""
        ...

    def read(self, x: Any) -> Any:
        """Read a table, for the other methods."""
        ...

    def value(self, table: Any) -> int:
        """The answer."""
        ...

    def smooth(self, table: Any, beta: Fraction) -> Fall:
        """S, exactly."""
        ...

    def reaches(self, table: Any) -> tuple[Whole, Whole]:
        """How far down and up t = 1, 2, … changes can bring the answer, at most; the last covers the span."""
        ...

    def pairs(self, beta: Fraction) -> Pairs:
        """Neighbouring tables that show much."""
        ...


# Sums of values between two ranks


@dataclass(frozen=True)
class _Ranked:
    """Values within public bounds; those outside are moved to the nearest bound."""

    low: int
    high: int

    def _bounded(self, low: int, high: int) -> None:
        object.__setattr__(self, "low", whole(low, "low", least=-_MOST))
        object.__setattr__(self, "high", whole(high, "high", least=-_MOST))
        if not self.low < self.high < _MOST:
            raise InputError("low must be below high, and both within 2^60.")

    @property
    def furthest(self) -> int:
        return self.high - self.low

    def _ranks(self, n: int) -> tuple[int, int]:
        """The first and last rank that count."""
        raise NotImplementedError

    def _padded(self, x: Any) -> Whole:
        """The sorted values between their bounds."""
        empty = isinstance(x, list | tuple | np.ndarray) and len(x) == 0
        values = np.array([], np.int64) if empty else integer_answer(x)
        if values.ndim != 1:
            raise InputError("The table must be a list of whole numbers, one for each record.")
        clamped = np.clip(values, self.low, self.high).astype(np.int64)
        return np.concatenate([[self.low], np.sort(clamped), [self.high]])

    def value(self, table: Whole) -> int:
        first, last = self._ranks(len(table) - 2)
        return int(table[first : last + 1].sum())

    def smooth(self, table: Whole, beta: Fraction) -> Fall:
        """A_k is the largest x_j - x_i, i <= first, j >= last, with k more values between them than need be.

        The best j does not fall as i grows, so halving the rows leaves little to look at.
        """
        first, last = self._ranks(len(table) - 2)
        return steepest(table, first, last, beta)


@dataclass(frozen=True)
class Order(_Ranked):
    """The value at rank q n, rounded up: 1/2 for the (lower) median, 1 for the maximum; `low` for an empty table.

    >>> median = Order("1/2", 0, 10, neighbours=REPLACE)
    >>> table = median.read([7, 3, 0, 10, 4])
    >>> median.value(table), median.smooth(table, Fraction(1, 10))
    (4, Fall(gap=10, changes=3))
    >>> [reach.tolist() for reach in median.reaches(table)]
    [[1, 4, 4], [3, 6, 6]]
    """

    q: Fraction
    neighbours: Neighbours

    def __init__(self, q: Number, low: int, high: int, *, neighbours: Neighbours = ADD_REMOVE) -> None:
        object.__setattr__(self, "q", fraction(q, "q"))
        object.__setattr__(self, "neighbours", neighbours)
        self._bounded(low, high)
        if not 0 < self.q <= 1:
            raise InputError("q must be above 0 and at most 1 (the maximum): the median is 1/2.")
        if not isinstance(neighbours, Neighbours):
            raise InputError("neighbours must be Neighbours.ADD_REMOVE or Neighbours.REPLACE.")

    @property
    def span(self) -> tuple[int, int]:
        """The bounds."""
        return self.low, self.high

    def _ranks(self, n: int) -> tuple[int, int]:
        m = math.ceil(self.q * n)
        return m, m

    def read(self, x: Any) -> Whole:
        """The sorted values between their bounds; there must be one if their number is public."""
        table = self._padded(x)
        if len(table) == 2 and self.neighbours is REPLACE:
            raise InputError("The table must have at least one record.")
        return table

    def reaches(self, table: Whole) -> tuple[Whole, Whole]:
        """Down to the value t steps of rank below, up to that above: steps of 1, or of max(q, 1 - q) if n moves.

        No t changes bring it further. Records that are replaced bring it to every point up to there, and for the median
        so do those that come or go; for other q a point that no record has may take one more than t.
        """
        n, at = len(table) - 2, self.q * (len(table) - 2)
        step = Fraction(1) if self.neighbours is REPLACE else max(self.q, 1 - self.q)
        value = int(table[math.ceil(at)])
        down = ceilings(at, -step, max(1, math.ceil(at / step)))
        up = ceilings(at, step, math.floor((n - at) / step) + 1)
        return value - table[np.maximum(down, 0)], table[np.minimum(up, n + 1)] - value

    def pairs(self, beta: Fraction) -> Pairs:
        """The answer jumps to the top; S falls by e^beta and the answer moves by as much as S; ranks drift apart.

        A record at the bottom is replaced by one elsewhere, or one is added there.
        """
        near = self.low + math.floor(Fraction(math.exp(-beta)) * self.furthest)
        removed = 1 if self.neighbours is REPLACE else 0
        m, n = next((m, n) for m, n in map(self._wide, range(2, 999)) if removed or self._ranks(n + 1)[0] > m)
        x, z = [self.low] * m + [self.high] * (n - m), [self.low] * (m - 1) + [self.high - 1] + [self.high] * (n - m)
        return [(x, [*x[removed:], self.high], 1), (x, [*x[removed:], near], 1), (z, [*z[removed:], self.high], 1)]

    def _wide(self, least: int) -> tuple[int, int]:
        """A rank of at least that, and the size of a table that has it and about as many above."""
        n = math.ceil(least / self.q)
        return self._ranks(n)[0], n


@dataclass(frozen=True)
class Trimmed(_Ranked):
    """The sum of `rows` values without the `trim` least and largest; divided by rows - 2 trim, the trimmed mean.

    The number of rows is public, so records are replaced.

    >>> t = Trimmed(5, 0, 10, trim=1)
    >>> table = t.read([7, 3, 0, 10, 4])
    >>> t.value(table), t.smooth(table, Fraction(1, 2))
    (14, Fall(gap=7, changes=0))
    """

    rows: int
    trim: int

    def __init__(self, rows: int, low: int, high: int, *, trim: int = 0) -> None:
        object.__setattr__(self, "rows", whole(rows, "rows"))
        object.__setattr__(self, "trim", whole(trim, "trim", least=0))
        self._bounded(low, high)
        if 2 * self.trim >= self.rows:
            raise InputError("trim must leave values over: choose one below half of the rows.")
        if self.rows * max(abs(self.low), abs(self.high)) >= _MOST:
            raise InputError("The sum must stay below 2^60: use a coarser unit.")

    @property
    def neighbours(self) -> Neighbours:
        """Replace."""
        return REPLACE

    @property
    def span(self) -> tuple[int, int]:
        """So many times the bounds."""
        kept = self.rows - 2 * self.trim
        return kept * self.low, kept * self.high

    def _ranks(self, n: int) -> tuple[int, int]:
        return self.trim + 1, n - self.trim

    def read(self, x: Any) -> Whole:
        """The sorted values between their bounds."""
        table = self._padded(x)
        if len(table) - 2 != self.rows:
            raise InputError(f"The table must have {self.rows:,} records.")
        return table

    def reaches(self, table: Whole) -> tuple[Whole, Whole]:
        """t changes replace the t least values by the upper bound: exact, if nothing is trimmed."""
        if self.trim:
            raise InputError("Distances to other trimmed sums are not known here: choose trim=0, or smooth noise.")
        values = table[1:-1]
        return np.cumsum(values[::-1] - self.low), np.cumsum(self.high - values)

    def pairs(self, beta: Fraction) -> Pairs:
        """One record moves from the lower to the upper bound."""

        def at(top: int) -> list[int]:
            return [self.low] * (self.rows - top) + [self.high] * top

        return [(at(self.trim), at(self.trim + 1), 1), (at(self.rows), at(self.rows - 1), 1)]


# Triangles


class Graph(NamedTuple):
    """The number of triangles, and the A_k until they stay the same."""

    triangles: int
    gaps: Whole


@dataclass(frozen=True)
class Triangles:
    """The number of triangles of a graph on the nodes 0 .. nodes-1, given its edges; an edge comes or goes.

    A pair of nodes that both are next to a nodes, and one alone to b nodes, gets a node more in common for each of the
    first b changes and for every other one from then on: A_k is the largest min(a + (k + min(k, b))/2, nodes - 2),
    rounded down, over all pairs.   [Nissim-Raskhodnikova-Smith 2007]

    >>> t = Triangles(4)
    >>> graph = t.read([(0, 1), (1, 2), (0, 2)])
    >>> t.value(graph), graph.gaps.tolist(), t.smooth(graph, Fraction(1, 2))
    (1, [1, 1, 2], Fall(gap=1, changes=0))
    """

    nodes: int

    def __init__(self, nodes: int) -> None:
        object.__setattr__(self, "nodes", whole(nodes, "nodes", least=3))
        if self.nodes > _MOST_NODES:
            raise InputError(f"nodes must be at most {_MOST_NODES:,}: all their pairs are looked at.")

    @property
    def neighbours(self) -> Neighbours:
        """An edge is added or removed."""
        return ADD_REMOVE

    @property
    def span(self) -> tuple[int, int]:
        """None to all."""
        return 0, math.comb(self.nodes, 3)

    @property
    def furthest(self) -> int:
        """An edge and all other nodes."""
        return self.nodes - 2

    def read(self, x: Any) -> Graph:
        """Count triangles, common neighbours and nodes next to one of two, for all pairs."""
        adjacent = self._adjacent(x)
        common = adjacent @ adjacent
        degrees = adjacent.sum(axis=0)
        single = degrees[:, None] + degrees[None, :] - 2 * common - 2 * adjacent
        pairs = np.triu_indices(self.nodes, 1)
        triangles = int((adjacent * common).astype(np.int64).sum()) // 6
        return Graph(triangles, self._gaps(common[pairs].astype(np.int64), single[pairs].astype(np.int64)))

    def _adjacent(self, x: Any) -> NDArray[np.float32]:
        """1 where there is an edge: whole numbers below 2^24 are exact, and so are their products' sums."""
        adjacent = np.zeros((self.nodes, self.nodes), np.float32)
        if isinstance(x, list | tuple | np.ndarray) and len(x) == 0:
            return adjacent
        edges = integer_answer(x)
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InputError("The edges must be pairs of whole numbers.")
        if edges.min() < 0 or edges.max() >= self.nodes or (edges[:, 0] == edges[:, 1]).any():
            raise InputError(f"An edge must join two different nodes of 0 to {self.nodes - 1}.")
        i, j = edges.astype(np.int64).T
        adjacent[i, j] = adjacent[j, i] = 1
        return adjacent

    def _gaps(self, a: Whole, b: Whole) -> Whole:
        """A_k for k = 0, 1, … until it is nodes - 2; of pairs with the same a only the largest b counts."""
        most = np.full(self.nodes, -1)
        np.maximum.at(most, a, b)
        front = np.flatnonzero(most >= 0)
        k = np.arange(2 * self.nodes)
        gains = (k[None, :] + np.minimum(k[None, :], most[front][:, None])) // 2
        gaps = np.minimum((front[:, None] + gains).max(axis=0), self.furthest)
        return np.asarray(gaps[: int(np.argmax(gaps)) + 1])

    def value(self, table: Graph) -> int:
        """The number of triangles."""
        return table.triangles

    def smooth(self, table: Graph, beta: Fraction) -> Fall:
        """The largest of all A_k e^(-beta k)."""
        changes = np.arange(len(table.gaps))
        at = largest(table.gaps, changes, beta)
        return Fall(int(table.gaps[at]), int(changes[at]))

    def reaches(self, table: Graph) -> tuple[Whole, Whole]:
        """A_0 + … + A_(t-1) either way: a ladder, no less than what t changes can do, with rungs of the same widths.

        It is 1-Lipschitz all the same: A_k(x) <= A_(k+1)(x').   [Zhang-Cormode-Procopiuc-Srivastava-Xiao 2015]
        """
        left = max(table.triangles, self.span[1] - table.triangles) - int(table.gaps.sum())
        more = np.full(max(0, -(-left // self.furthest)), self.furthest)
        reach = np.cumsum(np.concatenate([table.gaps, more]))
        return reach, reach

    def pairs(self, beta: Fraction) -> Pairs:
        """The first edge goes: of a book whose pages all share it, of a path, and of all edges that there can be."""
        pages = [(0, 1)] + [(i, j) for j in range(2, self.nodes) for i in (0, 1)]
        path = [(i, i + 1) for i in range(self.nodes - 1)]
        full = [(i, j) for j in range(self.nodes) for i in range(j)]
        return [(edges, edges[1:], 1) for edges in (pages, path, full)]
