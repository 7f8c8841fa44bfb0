"""Choose a place on a line over which the counts of a histogram are spread evenly, exactly.

M(v) is how much mass lies below a place v. A place of a side is chosen with probability proportional to
e^(-g |M(v) - T|), or a whole cell with e^(-g S), S = max(L - T, T - R) for its ranks L .. R. Places of one cell on one
side of T are evenly spaced in mass, so their weights are a geometric series: a run is chosen by its sum, then a place
within.

Vocabulary: `place` the middle of one of `ties` parts of a cell, numbered along the line · `mass` M, at a place ·
`side` part of the line · `run` places of one cell on one side of T.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisette.exact import choice
from noisette.exact.random import Random
from noisette.exact.rational import exp_bounds
from noisette.exact.samplers import Bounds, bernoulli_exp, exp_real, geometric, retry
from noisette.mechanisms.quantiles.quantile import depths

__all__ = ["Cells", "Side", "TieSpread", "choose_cell", "choose_place"]

_LARGE = 1 << 20  # exponents up to there are precise enough in floats


@dataclass(frozen=True)
class TieSpread:
    """A histogram whose cells are spread evenly over their places."""

    counts: NDArray[np.int64]
    upto: NDArray[np.int64]
    ties: int

    @property
    def line(self) -> "Side":
        """All of it."""
        return Side(0, len(self.counts) * self.ties - 1, Fraction(0), Fraction(int(self.upto[-1])))

    def mass(self, place: int) -> Fraction:
        """How much lies below the middle of a place."""
        cell, within = divmod(place, self.ties)
        count = int(self.counts[cell])
        return int(self.upto[cell]) - count + Fraction(count * (2 * within + 1), 2 * self.ties)

    def step(self, cell: int) -> Fraction:
        """The mass between two places of a cell."""
        return Fraction(int(self.counts[cell]), self.ties)

    def up_to(self, cell: int, target: Fraction) -> int:
        """How many places of a cell have at most that mass."""
        ahead, count = target - int(self.upto[cell]) + int(self.counts[cell]), int(self.counts[cell])
        if not count:
            return self.ties if ahead >= 0 else 0
        return min(max(math.floor(self.ties * ahead / count + Fraction(1, 2)), 0), self.ties)


@dataclass(frozen=True)
class Side:
    """Part of the line: from one place to another, both of which may be released, with the masses at its ends."""

    first: int
    last: int
    low: Fraction
    high: Fraction

    def target(self, q: Fraction, move: Fraction = Fraction(0)) -> Fraction:
        """T; beyond an end it is as good as there, since all distances are longer by the same."""
        return min(max(self.low + q * (self.high - self.low) + move, self.low), self.high)

    def cells(self, ties: int) -> slice:
        """Those that it has places of."""
        return slice(self.first // ties, self.last // ties + 1)

    def split(self, place: int, mass: Fraction) -> "tuple[Side, Side]":
        """At a place that stays in both."""
        return Side(self.first, place, self.low, mass), Side(place, self.last, mass, self.high)


# A whole cell


@dataclass(frozen=True)
class Cells:
    """The cells of a side, with the ranks that lie within it."""

    spread: TieSpread
    side: Side
    target: Fraction

    @property
    def first(self) -> int:
        """Its number on the whole line."""
        return self.side.first // self.spread.ties

    def depth(self, i: int) -> Fraction:
        """How far T is from the ranks of a cell; within them, minus how far from their nearer end."""
        cell = self.first + i
        upto = int(self.spread.upto[cell])
        low = self.side.low if i == 0 else upto - int(self.spread.counts[cell])
        high = self.side.high if cell == self.side.last // self.spread.ties else upto
        return max(low - self.target, self.target - high)

    def depths(self) -> NDArray[np.float64]:
        """The same for all cells, in floats."""
        cells = self.side.cells(self.spread.ties)
        found = depths(self.spread.counts[cells], self.spread.upto[cells], self.target)
        found[0], found[-1] = float(self.depth(0)), float(self.depth(len(found) - 1))
        return found


def choose_cell(spread: TieSpread, side: Side, target: Fraction, rate: Fraction, rng: Random) -> int:
    """Draw a cell of a side."""
    cells = Cells(spread, side, target)
    near = cells.depths()
    least = cells.depth(int(np.argmin(near)))
    chosen = choice.choose((near - near.min()) * float(rate), lambda i: exp_real(rate * (cells.depth(i) - least)), rng)
    return cells.first + chosen


# A place: choose a run, then a place in it


@dataclass(frozen=True)
class _Run:
    """Places from the nearest to T on, away from it."""

    nearest: int
    step: int
    length: int

    def from_nearest(self, places: int) -> int:
        return self.nearest + self.step * places


@dataclass(frozen=True)
class _Runs:
    """All runs of a side: those below T up to that in the cell of T, then those above from there on."""

    spread: TieSpread
    side: Side
    target: Fraction
    first: int
    crossed: int
    last: int

    @cached_property
    def cut(self) -> int:
        """The first place above T, in the cell that T is in."""
        return self.crossed * self.spread.ties + self.spread.up_to(self.crossed, self.target)

    def __len__(self) -> int:
        return self.last - self.first + 2

    def cell(self, i: int) -> int:
        return self.first + i if i <= self.crossed - self.first else self.first + i - 1

    def run(self, i: int) -> _Run:
        cell, below = self.cell(i), i <= self.crossed - self.first
        start, ties = cell * self.spread.ties, self.spread.ties
        cut = self.cut if cell == self.crossed else start + ties * below
        low = max(self.side.first, start if below else cut)
        high = min(self.side.last, (cut if below else start + ties) - 1)
        return _Run(high, -1, high - low + 1) if below else _Run(low, 1, high - low + 1)

    def exponents(self, rate: Fraction) -> tuple[NDArray[np.float64], Fraction]:
        """(near, unit): -ln of the weight of each run in floats, less a unit that leaves the least of them 0."""
        unit = Fraction(0)
        if rate * int(self.spread.counts.max()) > _LARGE * self.spread.ties:
            places = [self.run(i) for i in range(len(self))]
            unit = rate * min(self.distance(run) for run in places if run.length > 0)
            near = np.array([self._exponent(i, rate, unit) for i in range(len(self))])
        else:
            near = self._of_whole_cells(float(rate))
            for i in {0, self.crossed - self.first, self.crossed - self.first + 1, len(self) - 1}:
                near[i] = self._exponent(i, rate, unit)
        least = float(near.min())
        return near - least, unit + Fraction(least)

    def _of_whole_cells(self, rate: float) -> NDArray[np.float64]:
        at = np.arange(len(self))
        below = at <= self.crossed - self.first
        cells = self.first + at - ~below
        counts, upto, start = self.spread.counts[cells], self.spread.upto[cells], math.floor(self.target)
        rest = np.where(below, 1, -1) * float(self.target - start)
        ranks, steps = np.where(below, start - upto, upto - counts - start) + rest, counts / self.spread.ties
        return np.asarray((ranks + steps / 2) * rate - _log_sum(steps * rate, self.spread.ties))

    def _exponent(self, i: int, rate: Fraction, unit: Fraction) -> float:
        run = self.run(i)
        if run.length <= 0:
            return math.inf
        step, distance = float(rate * self.spread.step(self.cell(i))), float(rate * self.distance(run) - unit)
        return distance - math.log(math.expm1(-step * run.length) / math.expm1(-step) if step else run.length)

    def distance(self, run: _Run) -> Fraction:
        return abs(self.spread.mass(run.nearest) - self.target)

    def weight(self, i: int, rate: Fraction, unit: Fraction) -> Bounds:
        """The sum of e^(unit - g D) over a run as a number to be enclosed."""
        run = self.run(i)
        if run.length <= 0:
            return lambda bits: (0, 0)
        exponent, step = unit - rate * self.distance(run), rate * self.spread.step(self.cell(i))

        def bounds(bits: int) -> tuple[int, int]:
            fine = bits + run.length.bit_length() + 8
            e, (low, high) = exp_bounds(exponent, fine), _sum_bounds(step, run.length, bits + 8)
            return math.floor(e[0] * low / (1 << fine - bits)), math.ceil(e[1] * high / (1 << fine - bits))

        return bounds


def choose_place(spread: TieSpread, side: Side, target: Fraction, rate: Fraction, rng: Random) -> int:
    """Draw a place of a side."""
    cells = side.cells(spread.ties)
    passed = int(np.searchsorted(spread.upto[cells], math.floor(target), side="right"))
    runs = _Runs(spread, side, target, cells.start, min(cells.start + passed, cells.stop - 1), cells.stop - 1)
    near, unit = runs.exponents(rate)
    i = choice.choose(near, lambda i: runs.weight(i, rate, unit), rng)
    run = runs.run(i)
    return run.from_nearest(retry(_attempt_within, rate * spread.step(runs.cell(i)), run.length, rng))


def _attempt_within(step: Fraction, length: int, rng: Random) -> int | None:
    """One of 0 .. length-1 with probability proportional to e^(-step i)."""
    if step * length > 1:
        i = geometric(1 / step, rng)
        return i if i < length else None
    i = rng.below(length)
    return i if bernoulli_exp(step * i, rng) else None


def _log_sum(steps: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """ln(1 + e^-step + … + e^(-(length - 1) step))."""
    some = np.where(steps > 0, steps, 1.0)
    return np.where(steps > 0, np.log(np.expm1(-some * length) / np.expm1(-some)), math.log(length))


def _sum_bounds(step: Fraction, length: int, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose 1 + e^-step + … + e^(-(length - 1) step) to about a part in 2^bits."""
    if not step:
        return Fraction(length), Fraction(length)
    fine = bits + max(0, math.ceil(1 / step).bit_length()) + 8
    low, high = exp_bounds(-step * length, fine)
    small, large = exp_bounds(-step, fine)
    one = 1 << fine
    return Fraction(one - high, one - small), Fraction(one - low, max(1, one - large))
