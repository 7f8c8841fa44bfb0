"""Frequent values in bounded memory: the Misra-Gries sketch, what one row moves of it, and its private release.

A sketch has k counters c. A row whose value has a counter adds 1 to it; else, if a counter is free, the value gets it;
else all k counters lose 1, and those that reach 0 are free again. With n rows in all, T_x of them of value x,

    c_x <= T_x <= c_x + (n - s)/(k + 1),      s the sum of all counters,

since each loss takes k + 1 rows away.   [Misra-Gries 1982]

**Sensitivity.** One row more, anywhere in the stream, (a) adds 1 to one counter, or (b) takes 1 from all k counters of
a full sketch. By induction: the next row keeps (a), turns (a) into (b) if only the longer stream's sketch is full, and
turns (b) into (a) if only the shorter one's is.   [Lebeda-Tetek 2023] So counters move by k in l1. The reduced counters

    r_x = max(0, c_x - s/(k + 1))      move by (2k - 1)/(k + 1) < 2 in l1, whatever k is:

(a) moves one by k/(k + 1) and the others by -1/(k + 1), (b) all k by -1/(k + 1). They are whole in steps of 1/(k + 1)
and are released above a threshold (`Threshold`). What is taken from all, s/(k + 1), and what may be missing,
(n - s)/(k + 1), move by at most 1 each and are released with noise of their own, for estimates and error bars:

    r_x + s/(k + 1) <= T_x <= r_x + s/(k + 1) + (n - s)/(k + 1)      for r_x > 0.

That takes the place of the paper's shared noise. A unit with m rows is m such moves; under replace there are 2 m, of
which m go up and m down.

**Merging** exact sketches adds counters and takes the (k + 1)-st largest from all.   [Agarwal et al. 2013] Then a row
moves any of the k counters by 1, all in one direction but not all by the same: k in l1, and reducing them gains little.
So noise of merged sketches is k/2 times as large. Let each party release its own, or add up reduced counters instead.

When: memory is bounded, or the table is a stream. Where a table can be grouped, counts above a threshold err less.

Vocabulary: `memory` k · `rows` m of one unit · `steps` of reduced counters, 1/(k + 1) of a row.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Geometric, Threshold
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    import pyarrow

    from noisette.charts import Chart

__all__ = ["FrequentValues", "HeavyHitterRelease", "MisraGries", "moved_shared", "moved_steps"]

_MOST = 2**20
_SHARED = Fraction(1, 8)  # of epsilon, for what is taken from all counters, and as much for what may be missing


@dataclass(frozen=True, eq=False, repr=False)
class MisraGries:
    """An exact sketch: counters by value, and the number of rows; never shown, only released with noise.

    >>> sketch = MisraGries.of(["oak", "ash", "elm", "yew"], [900, 40, 8, 2], memory=2)
    >>> sketch, dict(sketch.counters), sketch.total
    (MisraGries(memory=2), {'oak': 890, 'ash': 30}, 950)
    """

    memory: int
    counters: Mapping[Any, int] = field(default_factory=dict)
    total: int = 0
    merged: bool = False

    @classmethod
    def of(cls, values: Iterable[Any], counts: Iterable[int] | None = None, *, memory: int) -> "MisraGries":
        """The sketch of a stream of values, each with its number of rows (1 if none is given)."""
        return cls(_memory(memory)).add(values, counts)

    def add(self, values: Iterable[Any], counts: Iterable[int] | None = None) -> "MisraGries":
        """The same after more rows."""
        if self.merged:
            raise InputError("A merged sketch takes no more rows: add them to one of the parts, then merge.")
        table, total = dict(self.counters), self.total
        lost = 0  # counters are stored with what all have lost since
        queue = [(count, place, key) for place, (key, count) in enumerate(table.items())]
        heapq.heapify(queue)
        pairs = ((value, 1) for value in values) if counts is None else zip(values, counts, strict=True)
        for place, (value, rows) in enumerate(pairs, len(table)):
            rows = whole(rows, "each number of rows", least=0)
            total += rows
            if value not in table and len(table) == self.memory:
                taken = min(rows, _smallest(queue, table) - lost)
                lost, rows = lost + taken, rows - taken
                while len(table) and _smallest(queue, table) == lost:
                    del table[heapq.heappop(queue)[2]]
            if rows:
                table[value] = table.get(value, lost) + rows
                heapq.heappush(queue, (table[value], place, value))
        return MisraGries(self.memory, {key: count - lost for key, count in table.items()}, total)

    def merge(self, *others: "MisraGries") -> "MisraGries":
        """The sketch of all parts, merged at once: what one row moves is larger then, see `sensitivity`."""
        parts = [self, *others]
        if any(part.merged or part.memory != self.memory for part in parts):
            raise InputError("Sketches merge all at once, with the same memory, and not when they are merged already.")
        summed: dict[Any, int] = {}
        for part in parts:
            for key, count in part.counters.items():
                summed[key] = summed.get(key, 0) + count
        ranked = sorted(summed.values(), reverse=True)
        taken = ranked[self.memory] if len(ranked) > self.memory else 0
        kept = {key: count - taken for key, count in summed.items() if count > taken}
        return MisraGries(self.memory, kept, sum(part.total for part in parts), merged=True)

    @property
    def taken(self) -> int:
        """What reducing takes from each counter, in steps; nothing from those of a merged sketch."""
        return 0 if self.merged else sum(self.counters.values())

    @property
    def missing(self) -> int:
        """How many steps a counter may be too small."""
        return self.total - sum(self.counters.values())

    @property
    def steps(self) -> dict[Any, int]:
        """What is released with noise: reduced counters, or those of a merged sketch as they are, in steps."""
        found = {key: (self.memory + 1) * count - self.taken for key, count in self.counters.items()}
        return {key: steps for key, steps in found.items() if steps > 0}

    def __repr__(self) -> str:
        return f"MisraGries(memory={self.memory}{', merged' if self.merged else ''})"


def _memory(memory: Any) -> int:
    k = whole(memory, "memory")
    if k > _MOST:
        raise InputError(f"memory must be at most {_MOST:,} counters.")
    return k


def _smallest(queue: list[tuple[int, int, Any]], table: Mapping[Any, int]) -> int:
    """The smallest stored counter; entries that counters have outgrown are dropped."""
    while table.get(queue[0][2]) != queue[0][0]:
        heapq.heappop(queue)
    return queue[0][0]


def moved_steps(memory: int, rows: int, neighbours: Neighbours, *, merged: bool = False) -> Sensitivity:
    """How far a unit with at most that many rows moves `MisraGries.steps`, over all streams.

    >>> moved_steps(3, 1, Neighbours.ADD_REMOVE)
    Sensitivity(l1='5', l2_squared='11', linf='3', l0=3, neighbours=ADD_REMOVE)
    >>> moved_steps(3, 1, Neighbours.ADD_REMOVE, merged=True)
    Sensitivity(l1='12', l2_squared='48', linf='4', l0=3, neighbours=ADD_REMOVE)
    """
    k, two_sided = memory, neighbours is Neighbours.REPLACE
    m = 2 * rows if two_sided else rows
    keys = k if m == 1 else 2 * k  # counters of either sketch
    if merged:
        each = k + 1
        return Sensitivity(m * k * each, m**2 * k * each**2, m * each, keys, neighbours=neighbours)
    most = rows * (k + 1) if two_sided else m * k
    return Sensitivity(m * (2 * k - 1), m**2 * (k**2 + k - 1), most, keys, neighbours=neighbours)


def moved_shared(memory: int, rows: int, neighbours: Neighbours, *, merged: bool = False) -> Sensitivity:
    """How far such a unit moves `taken`, and how far it moves `missing`, each by itself."""
    both = neighbours is Neighbours.REPLACE
    most = rows * (memory + 1) * (2 if both and merged else 1)
    return Sensitivity(most, most**2, most, 1, neighbours=neighbours)


# Release


@dataclass(frozen=True)
class HeavyHitterRelease:
    """Noisy counters above a threshold, and noisy numbers of what was taken from all of them and what may be missing.

    >>> from noisette.privacy import Approx
    >>> made = HeavyHitterRelease.calibrated(Approx(1, "1e-6"), memory=10)
    >>> made.guarantee() <= Approx(1, "1e-6"), made.least
    (True, 34)
    >>> made(MisraGries.of(["oak", "ash"], [900, 3], memory=10)).keys
    ('oak',)
    """

    memory: int
    rows: int
    merged: bool
    threshold: Threshold
    shared: Geometric
    neighbours: Neighbours

    @classmethod
    def calibrated(
        cls,
        spend: Promise,
        *,
        memory: int,
        rows: int = 1,
        merged: bool = False,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
    ) -> "HeavyHitterRelease":
        """The least noise for a promise with a delta, for units that have at most that many rows."""
        k, m = _memory(memory), whole(rows, "rows")
        moved = moved_steps(k, m, neighbours, merged=merged)
        threshold = Threshold.calibrated(spend.share(1 - 2 * _SHARED, delta=1), moved, noise="truncated")
        shared = Geometric.calibrated(spend.share(_SHARED, delta=0), moved_shared(k, m, neighbours, merged=merged))
        return cls(k, m, merged, threshold, shared, neighbours)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The mechanisms with what one unit moves, in steps."""
        given = self.memory, self.rows, self.neighbours
        shared = self.shared, moved_shared(*given, merged=self.merged)
        return [(self.threshold, moved_steps(*given, merged=self.merged)), shared, shared]

    def guarantee(self) -> Guarantee:
        """What holds for one unit."""
        costs: list[Guarantee] = [mechanism.guarantee(moved) for mechanism, moved in self.parts]
        return reduce(add, costs)

    @property
    def least(self) -> int:
        """How many rows a released counter stands for at least, rounded up."""
        return -(-self.threshold.threshold // (self.memory + 1))

    def __call__(self, sketch: MisraGries, rng: Random = SYSTEM) -> "FrequentValues":
        """Release the values whose noisy counters reach the threshold, the largest first."""
        if sketch.memory != self.memory or sketch.merged != self.merged:
            raise InputError("The sketch must be of the memory, and merged or not, as this release was calibrated for.")
        steps = sketch.steps
        noisy = self.threshold(np.array(list(steps.values()), np.int64), rng) if steps else np.zeros(0, np.int64)
        found = sorted(((int(y), key) for key, y in zip(steps, noisy, strict=True) if y), key=_largest_first)
        taken, missing = (int(self.shared(number, rng)) for number in (sketch.taken, sketch.missing))
        return FrequentValues(self, tuple(key for _, key in found), tuple(y for y, _ in found), taken, missing)


def _largest_first(pair: tuple[int, Any]) -> tuple[int, str]:
    """Never in the order of counters, which would show which came first in the stream."""
    return -pair[0], repr(pair[1])


@dataclass(frozen=True)
class FrequentValues:
    """Released values, the most frequent first, and noisy numbers from which the rows of any value are estimated."""

    release: HeavyHitterRelease
    keys: tuple[Any, ...]
    noisy: tuple[int, ...]
    taken: int
    missing: int

    def bars(self, noisy: Any, level: float) -> tuple[Any, Any, Any]:
        """Rows with error bars, from noisy steps; a third of the misses is for each of the three noises."""
        each = 1 - (1 - level_of(level)) / 3
        own, shared = self.release.threshold.interval(each), self.release.shared.interval(each)
        taken = np.array([0.0, 0.0] if self.release.merged else [max(0.0, self.taken + z) for z in (-shared, shared)])
        missing = max(0.0, self.missing + shared)
        ends = np.asarray(noisy, float) - own + taken[0], np.asarray(noisy, float) + own + taken[1] + missing
        low, high = (np.maximum(end, 0) / (self.release.memory + 1) for end in ends)
        return (low + high) / 2, low, high

    def estimate(self, keys: Iterable[Any], *, level: float = 0.95) -> "pyarrow.Table":
        """The rows of each key: released or not, since what is not released is below the threshold."""
        import pyarrow

        asked, known = list(keys), dict(zip(self.keys, self.noisy, strict=True))
        hidden = np.array([key not in known for key in asked], bool)
        _, low, high = self.bars([known.get(key, self.release.threshold.threshold - 1) for key in asked], level)
        low = np.where(hidden, 0, low)
        ends = {"count": (low + high) / 2, "count_low": low, "count_high": high}
        return pyarrow.table({"key": pyarrow.array(asked), **ends})

    def to_arrow(self) -> "pyarrow.Table":
        """The released values with error bars."""
        return self.estimate(self.keys)

    def chart(self, *, note: str = "") -> "Chart":
        """A bar for each released value."""
        from noisette.charts import bars

        value, low, high = (end.tolist() for end in self.bars(self.noisy, 0.95))
        return bars(self.keys, {"count": (value, low, high)}, title="Frequent values", note=note)
