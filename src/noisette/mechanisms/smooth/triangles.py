"""The number of triangles of a graph; neighbouring graphs differ by one edge."""

import math
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.frozen import frozen
from noisette.exact.integers import Int64Array
from noisette.exact.number import whole
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.smooth.statistic import Fall, Pairs, largest
from noisette.privacy import Neighbours

__all__ = ["Graph", "TriangleCount"]

_MOST_NODES = 2000


class Graph(NamedTuple):
    """The number of triangles, and the A_k until they stay the same."""

    triangles: int
    gaps: Int64Array


@frozen
class TriangleCount:
    """The number of triangles of a graph on the nodes 0 .. nodes-1, given its edges; an edge comes or goes.

    A pair of nodes that both are next to a nodes, and one alone to b nodes, gets a node more in common for each of the
    first b changes and for every other one from then on: A_k is the largest min(a + (k + min(k, b))/2, nodes - 2),
    rounded down, over all pairs.   [Nissim-Raskhodnikova-Smith 2007]

    >>> t = TriangleCount(4)
    >>> graph = t.read([(0, 1), (1, 2), (0, 2)])
    >>> t.value(graph), graph.gaps.tolist(), t.smooth(graph, Fraction(1, 2))
    (1, [1, 1, 2], Fall(gap=1, changes=0))
    """

    neighbours = Neighbours.ADD_REMOVE  # an edge is added or removed
    nodes: Annotated[int, partial(whole, least=3)]

    def __post_init__(self) -> None:
        if self.nodes > _MOST_NODES:
            raise InputError(f"nodes must be at most {_MOST_NODES:,}: all their pairs are looked at.")

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

    def _gaps(self, a: Int64Array, b: Int64Array) -> Int64Array:
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

    def reaches(self, table: Graph) -> tuple[Int64Array, Int64Array]:
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
