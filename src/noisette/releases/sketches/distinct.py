"""How many different values people hold: a lower bound that one person moves by at most a limit, chosen privately.

A person who holds many values moves the exact number of different values by as many. Instead, let each person be
credited with at most l of their values, and each value be credited to one person. The most values that can be credited,
f_l, is a maximum flow: source -> person (capacity l) -> value (1) -> sink (1).   [Knop-Steinke 2023]

**Sensitivity.** A person who comes adds a node of capacity l: f_l rises by 0 to l, since old credits still stand and
removing the person gives back at most l of them. Under replace both tables are within [f, f + l] of the table f without
either person, so f_l moves by at most l there as well. f_l grows with l and never exceeds the number of values; it is
that number as soon as everybody holds at most l of them, and mostly much earlier.

**The limit** is chosen among l = 1, 2, 4, ... with scores s_l = f_l - (what the noise at l is likely to be), which move
by l each. Scores that move by different amounts are compared in pairs: q_l = min over j of (s_l - s_j)/(l + j) moves by
at most 1, so any selection mechanism takes it.   [Raskhodnikova-Smith 2015] Scores are floors in steps of 1/`STEPS`:
|x - x'| <= n implies that of their floors for whole n, so flooring costs nothing.

Vocabulary: `limits` l · `credited` f_l · `pairs` (person, value), each once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Exponential, PermuteAndFlip, calibrate
from noisette.privacy import ZCDP, Guarantee, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.linear import Noise
from noisette.releases.sketches.noise import least_noise

__all__ = ["STEPS", "DistinctCount", "credited", "powers"]

Whole: TypeAlias = NDArray[np.int64]

STEPS = 1024
"""Scores are whole in steps of 1/STEPS."""

_LARGEST = 2**20
_LIKELY = 0.9  # the noise at a limit stays within what its score pays for, with that probability
_NOBODY = -1
_CHOICE = Fraction(1, 2)  # of the promise for the choice of the limit


def powers(most: int) -> tuple[int, ...]:
    """1, 2, 4, ... and the most.

    >>> powers(1), powers(20)
    ((1,), (1, 2, 4, 8, 16, 20))
    """
    return (*(2**i for i in range((most - 1).bit_length())), most)


# Credits


def credited(people: Any, values: Any, limits: Sequence[int]) -> list[int]:
    """f_l for each limit: the most values that can be credited to people, with at most l values each.

    >>> credited([0, 0, 0, 1], [7, 8, 9, 9], [1, 2, 3])
    [2, 3, 3]
    """
    pairs = _pairs(people, values)
    different = int(pairs[1].max(initial=-1)) + 1
    found: list[int] = []
    for limit in sorted(limits):
        done = bool(found) and found[-1] == different
        found.append(different if done else _most(*pairs, limit))
    return [found[sorted(limits).index(limit)] for limit in limits]


def _pairs(people: Any, values: Any) -> tuple[Whole, Whole]:
    """Each pair once, people and values numbered from 0."""
    who, what = (np.unique(np.asarray(x), return_inverse=True)[1].astype(np.int64) for x in (people, values))
    different = int(what.max(initial=0)) + 1
    each = np.sort(who * different + what)
    each = each[np.diff(each, prepend=-1) > 0]
    return each // different, each % different


def _numbered(x: Whole) -> Whole:
    """Whole numbers at least 0, renumbered without gaps."""
    return np.asarray(np.cumsum(np.bincount(x) > 0)[x] - 1)


def _most(who: Whole, what: Whole, limit: int) -> int:
    """The maximum flow; whoever holds at most `limit` of the values that are left can be credited with all of them."""
    sure = 0
    while who.size:
        free = np.bincount(who)[who] <= limit
        if not free.any():
            break
        taken = np.zeros(what.max() + 1, bool)
        taken[what[free]] = True
        sure += int(taken.sum())
        left = ~taken[what]
        who, what = who[left], what[left]
    return sure + (_flow(_numbered(who), _numbered(what), limit) if who.size else 0)


def _flow(who: Whole, what: Whole, limit: int) -> int:
    """The maximum flow of people of whom each holds more than the limit: credits in rounds, then augmenting paths."""
    spare, credit = np.full(int(who.max()) + 1, limit), np.full(int(what.max()) + 1, _NOBODY)
    at = np.arange(who.size)
    while (at := at[(spare[who[at]] > 0) & (credit[what[at]] == _NOBODY)]).size:
        taken = _round(who[at], what[at], spare)
        credit[what[at[taken]]] = who[at[taken]]
        np.subtract.at(spare, who[at[taken]], 1)
    given = int((credit != _NOBODY).sum())
    if given == credit.size or not spare.any():
        return given
    return given + _augmented(who, what, spare, credit)


def _round(who: Whole, what: Whole, spare: Whole) -> Whole:
    """Places of pairs that can be credited at once: each value asks one person, who takes as many as there is room."""
    holders, held = np.bincount(what), np.bincount(who)
    order = np.lexsort((held[who], what))  # each value asks the person with the fewest values
    asked = order[np.flatnonzero(np.diff(what[order], prepend=-1))]
    asked = asked[np.lexsort((holders[what[asked]], who[asked]))]  # who takes values with the fewest holders first
    mine = who[asked]
    rank = np.arange(mine.size) - np.searchsorted(mine, mine)
    return np.asarray(asked[rank < spare[mine]])


def _augmented(who: Whole, what: Whole, spare: Whole, credit: Whole) -> int:
    """The maximum flow of what is left: a credit can move to another person, against its edge."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    people, different = spare.size, credit.size
    source, sink = people + different, people + different + 1
    back = credit[what] == who
    free, open_ = np.flatnonzero(spare), np.flatnonzero(credit == _NOBODY)
    start = np.concatenate([np.full(free.size, source), np.where(back, people + what, who), people + open_])
    end = np.concatenate([free, np.where(back, who, people + what), np.full(open_.size, sink)])
    capacity = np.concatenate([spare[free], np.ones(who.size + open_.size)]).astype(np.int32)
    seen = _reached(start, end, source, sink + 1)
    if not seen[sink]:
        return 0
    inside = seen[start] & seen[end]
    graph = csr_matrix((capacity[inside], (start[inside], end[inside])), shape=(sink + 1, sink + 1), dtype=np.int32)
    return int(maximum_flow(graph, source, sink, method="dinic").flow_value)


def _reached(start: Whole, end: Whole, source: int, nodes: int) -> NDArray[np.bool_]:
    """Which nodes can be reached from the source."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order

    graph = csr_matrix((np.ones(start.size, np.int8), (start, end)), shape=(nodes, nodes))
    seen = np.zeros(nodes, bool)
    seen[breadth_first_order(graph, source, return_predecessors=False)] = True
    return seen


# Release


@dataclass(frozen=True)
class DistinctCount:
    """A lower bound on the number of different values, with noise: first a limit is chosen, then f_l is released.

    `chooser` is None where there is one limit; `noise` has one law for each limit.

    >>> from noisette.privacy import Pure
    >>> made = DistinctCount.calibrated(Pure(1), most=8)
    >>> made.limits, made.guarantee()
    ((1, 2, 4, 8), Pure('1', neighbours=ADD_REMOVE))
    >>> limit, noisy = made([20, 20, 20, 20])
    >>> limit in made.limits, isinstance(noisy, int)
    (True, True)
    """

    limits: tuple[int, ...]
    chooser: PermuteAndFlip | Exponential | None
    noise: tuple[Noise, ...]
    neighbours: Neighbours

    @classmethod
    def calibrated(
        cls, spend: Promise, *, most: int, neighbours: Neighbours = Neighbours.ADD_REMOVE
    ) -> "DistinctCount":
        """Half of the promise chooses the limit, half is for the noise; all of it where the only limit is 1."""
        if whole(most, "most") > _LARGEST:
            raise InputError(f"most must be at most {_LARGEST:,}: name a smaller one.")
        limits = powers(most)
        rest = spend.share(1 - _CHOICE if most > 1 else 1, delta=0)
        noise = tuple(least_noise(rest, _moved(limit, 1, neighbours)) for limit in limits)
        if most == 1:
            return cls(limits, None, noise, neighbours)
        return cls(limits, _chooser(spend.share(_CHOICE, delta=0), len(limits), neighbours), noise, neighbours)

    def guarantee(self) -> Guarantee:
        """What holds for one unit: the choice, and the noise of whichever limit is chosen."""
        costs: list[Guarantee] = [mechanism.guarantee(moved) for mechanism, moved in self.parts]
        return reduce(add, costs)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The mechanisms with what one unit moves; the noise is that of the largest limit, others promise the same."""
        noise = [(self.noise[-1], _moved(self.limits[-1], 1, self.neighbours))]
        if self.chooser is None:
            return noise
        return [(self.chooser, _moved(STEPS, len(self.limits), self.neighbours)), *noise]

    def scores(self, f: Sequence[int]) -> list[int]:
        """q_l in whole steps: one unit moves each by at most `STEPS`. Larger limits start further behind.

        What a limit starts with is public. A factor 1/e for each doubling makes up for the noise, which doubles: few
        values for everybody is the usual case, and a limit that is far too large must not be chosen by chance.
        """
        s = [int(x) - math.ceil(noise.interval(_LIKELY)) for x, noise in zip(f, self.noise, strict=True)]
        pairs = list(zip(self.limits, s, strict=True))
        behind = 0 if self.chooser is None else math.ceil(self.chooser.scale)
        ahead = [min(STEPS * (mine - other) // (mine_at + at) for at, other in pairs) for mine_at, mine in pairs]
        return [q - place * behind for place, q in enumerate(ahead)]

    def __call__(self, f: Sequence[int], rng: Random = SYSTEM) -> tuple[int, int]:
        """The chosen limit and its noisy number, given f_l for each limit."""
        at = 0 if self.chooser is None else self.chooser(self.scores(f), rng)
        return self.limits[at], int(self.noise[at](int(f[at]), rng))

    def half_width(self, limit: int, level: float) -> float:
        """Half of the error bar at a limit."""
        return float(self.noise[self.limits.index(limit)].interval(level))


def _chooser(promise: Promise, limits: int, neighbours: Neighbours) -> PermuteAndFlip | Exponential:
    """What chooses the limit; under zCDP the exponential mechanism costs less."""
    moved = _moved(STEPS, limits, neighbours)
    if isinstance(promise, ZCDP):
        return calibrate(Exponential, promise, sensitivity=moved, candidates=limits)
    return calibrate(PermuteAndFlip, promise, sensitivity=moved, candidates=limits)


def _moved(most: int, numbers: int, neighbours: Neighbours) -> Sensitivity:
    """Several numbers that move by at most `most` each."""
    return Sensitivity(numbers * most, numbers * most**2, most, numbers, neighbours=neighbours)
