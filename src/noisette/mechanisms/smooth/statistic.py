"""Statistics that one record can move far on some tables and hardly on most: how far, and how fast that can change.

Let A_k(x) be the furthest that one record can move the answer of any table within k changes of x. Then

    S(x) = max_k A_k(x) e^(-beta k)

is at least A_0, and between neighbours it changes by at most a factor e^beta, because A_k(x) <= A_(k+1)(x').
[Nissim-Raskhodnikova-Smith 2007; proof note: docs/proofs/smooth-sensitivity.md]

Answers and A_k are whole numbers. S is given as the pair (A_k, k) at which it is attained, found exactly: floats only
compare what differs by far.

Vocabulary: `gap` A_k · `changes` k · `reach` how far from the answer t changes can bring it, for t = 1, 2, ….
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError, PrivacyError
from noisette.exact.integers import Int64Array
from noisette.exact.rational import ln_bounds
from noisette.mechanisms.calibration import agreed, pure_epsilon
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.stability.stability import whole_steps
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.convert import powers_up
from noisette.privacy.sensitivity import Sensitivity

__all__ = [
    "Fall",
    "Int64Array",
    "Pairs",
    "Statistic",
    "ceilings",
    "largest",
    "near_logs",
    "people",
    "pieces",
    "related",
    "sensitivity_steps",
    "steepest",
]

Pairs = Sequence[tuple[Any, Any, int]]
_FEW = 64


# S itself. (x_j - x_i)(x_j' - x_i') >= (x_j' - x_i)(x_j - x_i') for i < i' <= j < j', so the best right end of a gap
# moves right with its left end, and halving the left ends takes n log n steps.   [Nissim-Raskhodnikova-Smith 2007]


class Fall(NamedTuple):
    """S = gap e^(-beta changes)."""

    gap: int
    changes: int


def largest(gaps: Int64Array, changes: Int64Array, beta: Fraction) -> int:
    """Return the place of the largest gap e^(-beta changes); the last place if all gaps are 0."""
    logs = near_logs(gaps, changes, beta)
    top = float(logs.max())
    if top == -math.inf:
        return len(gaps) - 1
    room = 2.0**-40 * (64 + float(beta) * float(np.abs(changes).max()))  # far more than floats err by
    best, *others = (int(i) for i in np.flatnonzero(logs >= top - room))
    for i in others:
        if _exceeds(Fall(int(gaps[i]), int(changes[i])), Fall(int(gaps[best]), int(changes[best])), beta):
            best = i
    return best


def near_logs(gaps: Int64Array, changes: Int64Array, beta: Fraction) -> NDArray[np.float64]:
    """Return ln of gap e^(-beta changes) in floats; minus infinity for no gap."""
    return np.where(gaps > 0, np.log(np.maximum(gaps, 1)) - float(beta) * changes, -math.inf)


def _exceeds(one: Fall, other: Fall, beta: Fraction) -> bool:
    """Tell whether one S is above another: ln of a ratio is a rational multiple of beta for equal ones alone."""
    apart, ratio, bits = beta * (one.changes - other.changes), Fraction(one.gap, other.gap), 96
    if not apart:
        return ratio > 1
    while True:
        lo, hi = (Fraction(end, 1 << bits) for end in ln_bounds(ratio, bits))
        if lo > apart or hi <= apart:
            return lo > apart
        bits *= 2


def steepest(table: Int64Array, first: int, last: int, beta: Fraction) -> Fall:
    """The largest (x_j - x_i) e^(-beta k), k = j - i - 1 - (last - first) >= 0."""
    rows, columns = _ends(table, first, last, beta)

    def falls(i: int, j: Int64Array) -> tuple[Int64Array, Int64Array]:
        changes = j - i - 1 - (last - first)
        return np.where(changes < 0, 0, table[j] - table[i]), changes

    best, parts = Fall(0, 0), [(0, len(rows) - 1, 0, len(columns) - 1)]
    while parts:
        top, bottom, left, right = parts.pop()
        if top > bottom:
            continue
        middle = (top + bottom) // 2
        gaps, changes = falls(int(rows[middle]), columns[left : right + 1])
        at = largest(gaps, changes, beta)
        found = Fall(int(gaps[at]), int(changes[at]))
        if found.gap and (not best.gap or _exceeds(found, best, beta)):
            best = found
        parts += [(top, middle - 1, left, left + at), (middle + 1, bottom, left + at, right)]
    return best


def _ends(table: Int64Array, first: int, last: int, beta: Fraction) -> tuple[Int64Array, Int64Array]:
    """The i and j that may be best: the nearest of equal values, and the two next to the middle."""
    new = table[1:] != table[:-1]
    left, right = new[:first], new[last:]
    left[-1:], right[:1] = True, True
    rows = np.append(np.flatnonzero(left), first)
    columns = np.append(last, last + 1 + np.flatnonzero(right))
    few = len(rows) + len(columns) <= _FEW
    return (rows, columns) if few else _near(table, rows, columns, 1 + last - first, beta)


def _near(
    table: Int64Array, rows: Int64Array, columns: Int64Array, extra: int, beta: Fraction
) -> tuple[Int64Array, Int64Array]:
    """Those that are not so far out that a nearer one is better whatever lies between."""
    first, last = rows[-1], columns[0]
    side = near_logs(table[columns] - table[first], columns - first - extra, beta)[1:]
    other = near_logs(table[last] - table[rows], last - rows - extra, beta)[:-1]
    known = max([-math.inf, *side, *other]) - 1e-6
    down = near_logs(table[-1] - table[rows], last - rows - extra, beta)
    up = near_logs(table[columns] - table[0], columns - first - extra, beta)
    return rows[down >= known], columns[up >= known]


def ceilings(start: Fraction, step: Fraction, count: int) -> Int64Array:
    """start + t step, rounded up, for t = 1 .. count."""
    unit = math.lcm(start.denominator, step.denominator)
    a, b = int(start * unit), int(step * unit)
    return np.array([-(-(a + t * b) // unit) for t in range(1, count + 1)], np.int64)


@lru_cache(maxsize=4096)
def sensitivity_steps(gap: int, step: Fraction) -> int:
    """Return the least whole j with e^(step j) >= gap.

    >>> sensitivity_steps(1, Fraction(1, 64)), sensitivity_steps(2, Fraction(1, 64))
    (0, 45)
    """
    bits = 96
    while True:
        low, high = (math.ceil(Fraction(end, 1 << bits) / step) for end in ln_bounds(Fraction(gap), bits))
        if low == high:
            return low
        bits *= 2


def pieces(span: tuple[int, int], value: int, reaches: tuple[Int64Array, Int64Array]) -> tuple[Int64Array, Int64Array]:
    """Return how many points of the span have which distance from the answer, from left to right.

    >>> sizes, distances = pieces((0, 9), 4, (np.array([1, 4]), np.array([3, 6])))
    >>> sizes.tolist(), distances.tolist()
    ([3, 1, 1, 3, 2], [2, 1, 0, 1, 2])
    """
    down, up = (
        np.diff(np.minimum(reach, room), prepend=0)
        for reach, room in zip(reaches, (value - span[0], span[1] - value), strict=True)
    )
    sizes = np.concatenate([down[::-1], [1], up])
    return sizes, np.concatenate([np.arange(len(down), 0, -1), [0], np.arange(1, len(up) + 1)])


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

    def reaches(self, table: Any) -> tuple[Int64Array, Int64Array]:
        """How far down and up t = 1, 2, … changes can bring the answer, at most; the last covers the span."""
        ...

    def pairs(self, beta: Fraction) -> Pairs:
        """Neighbouring tables that show much."""
        ...


# Promises of mechanisms that read tables and know their neighbouring relation


def people(distance: Distance, neighbours: Neighbours) -> int:
    """Read how many records two tables differ by; a replaced one moves two counts of a histogram.

    >>> from noisette.privacy import sensitivity
    >>> replace = Neighbours.REPLACE
    >>> people(3, replace), people(sensitivity.histogram(neighbours=replace), replace)
    (3, 1)
    """
    if not isinstance(distance, Sensitivity):
        return whole_steps(distance)
    if distance.neighbours is not neighbours:
        raise PrivacyError(f"The statistic is for {neighbours}: make one for {distance.neighbours}.")
    return math.ceil(distance.l1 / (2 if neighbours is Neighbours.REPLACE else 1))


def related(
    guarantee: Promise, sensitivity: Distance, neighbours: Neighbours, *, pure: bool
) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta that are left for one record, if several are protected together.

    >>> from noisette.privacy import Pure
    >>> related(Pure(1), 2, Neighbours.REPLACE, pure=True)
    (Fraction(1, 2), Fraction(0, 1))
    """
    agreed(guarantee, sensitivity)
    if guarantee.neighbours not in (None, neighbours):
        raise PrivacyError(f"The statistic is for {neighbours}: make one for {guarantee.neighbours}.")
    k = people(sensitivity, neighbours)
    if not k:
        raise InputError("sensitivity must be at least 1: it is how many records one person can have.")
    if pure:
        return pure_epsilon(guarantee) / k, Fraction(0)
    if not isinstance(guarantee, Approx) or not guarantee.delta:
        raise InputError("This noise needs a delta above 0: ask for Approx(epsilon, delta).")
    return guarantee.epsilon / k, guarantee.delta / powers_up(guarantee.epsilon / k, k)
