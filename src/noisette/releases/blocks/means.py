"""Private means of what the blocks gave: m outputs, clamped to public bounds [low, high].

mean         (1/m) sum of the outputs, with noise of r (high - low)/m per epsilon: one unit changes r of them, those of
             its blocks, by at most high - low each. [Nissim-Raskhodnikova-Smith 2007; Mohan-Thakurta-Shi-Song-Culler
             2012, GUPT, also for r > 1]
winsorized   a quarter of the promise for each of the quartiles a, b of the outputs, then the mean of the outputs
             clamped to a - 2 (b - a) .. b + 2 (b - a), with noise for that range. The range is private already, so
             that noise may depend on it. [Smith 2011]

Error bars are about the noise: how far the outputs of the blocks spread is private, and not part of them.

Vocabulary: `cells` the grid that quartiles are chosen from · `steps` the finer one that outputs are rounded to.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
import pyarrow

from noisette.exact.number import floor_log2
from noisette.exact.random import Random
from noisette.mechanisms import Gaussian, Geometric, Quantile, calibrate
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import Omission
from noisette.query.expected import Expected
from noisette.releases.blocks.numbers import CELLS, Bar, Numbers, Range, bars_table, counts
from noisette.releases.blocks.terms import Terms, recorded

__all__ = ["STEPS", "Mean", "Winsorized", "mean", "winsorized"]

STEPS = 2**24
"""Steps between the bounds of a number, which outputs are rounded to."""

Noisy: TypeAlias = Geometric | Gaussian


def _steps(values: Sequence[Fraction], inside: Range) -> int:
    """The sum of values in steps of a range, each clamped to it and rounded."""
    low, high = inside
    clamped = (max(low, min(high, value)) for value in values)
    return sum(math.floor((value - low) * STEPS / (high - low) + Fraction(1, 2)) for value in clamped)


def _bar(total: Fraction, inside: Range, blocks: int, within: float) -> Bar:
    """A mean with its error bar, of a noised sum of steps."""
    low, high = inside
    value = float(low + (high - low) * total / (STEPS * blocks))
    half = _half(float(high - low), blocks, within)
    return value, value - half, value + half


def _half(width: float, blocks: int, within: float) -> float:
    """Half of an error bar: the noise of the sum, and half a step of rounding."""
    return width * (within / blocks + 0.5) / STEPS


# Noise on the sums


@dataclass(frozen=True)
class SumNoise:
    """The noise on `count` sums, Laplace noise on each by itself or Gaussian noise on all together.

    A unit is in `each` blocks, so it can change each sum by as many times STEPS.
    """

    mechanism: Noisy
    count: int
    each: int

    @property
    def _moved(self) -> Sensitivity:
        return _moves(1 if isinstance(self.mechanism, Geometric) else self.count, self.each)

    @property
    def _times(self) -> int:
        return self.count if isinstance(self.mechanism, Geometric) else 1

    @property
    def guarantee(self) -> Guarantee:
        """What all of it is worth."""
        return self.mechanism.guarantee(self._moved) * self._times

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms, for the record."""
        return [recorded(self.mechanism, "sum over blocks", self._moved)] * self._times

    @property
    def name(self) -> str:
        """What it is called."""
        return "Laplace" if isinstance(self.mechanism, Geometric) else "Gaussian"

    def steps(self, level: float) -> float:
        """By how many steps a sum is off at most, at that level; half a step for each block's rounding comes to it."""
        return self.mechanism.interval(level)

    def __call__(self, sums: Sequence[int], rng: Random) -> list[Fraction]:
        """Noised sums; Gaussian noise may lie on a finer grid."""
        return [Fraction(one) for one in np.atleast_1d(self.mechanism(np.array(sums, np.int64), rng)).tolist()]


def noise(promise: Promise, count: int, each: int) -> SumNoise:
    """The noise of least variance that keeps a promise for `count` sums."""
    base = calibrate(Geometric, promise, sensitivity=1, times=count)
    laplace = SumNoise(Geometric(base.scale * each * STEPS), count, each)
    if promise.is_pure:
        return laplace
    gaussian = SumNoise(_gaussian(promise, count, each), count, each)
    return min((laplace, gaussian), key=lambda one: one.mechanism.variance())


def _gaussian(promise: Promise, count: int, each: int) -> Gaussian:
    """Calibrated at distance 1 and stretched, lattice and all: what it costs is the same."""
    base, size = calibrate(Gaussian, promise, sensitivity=1), _moves(count, each).l2
    return Gaussian(base.sigma * size, grid=base.grid * Fraction(2) ** floor_log2(size))


def _moves(count: int, each: int) -> Sensitivity:
    """How far `count` sums can move if `each` blocks give something else."""
    most = each * STEPS
    return Sensitivity(count * most, count * most**2, most, count, neighbours=Neighbours.REPLACE)


# Means


@dataclass(frozen=True)
class Mean:
    """The mean of the outputs."""

    numbers: Numbers
    noise: SumNoise
    terms: Terms

    @property
    def guarantee(self) -> Guarantee:
        """What the noise is worth."""
        return self.terms.for_units(self.noise.guarantee)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms, for the record."""
        return self.noise.parts

    @property
    def why(self) -> str:
        """Why this noise."""
        return f"{self.noise.name} noise on the mean over {self.terms.blocks:,} blocks, {self.terms.held}."

    @property
    def omitted(self) -> tuple[Omission, ...]:
        """What becomes of outputs before they are aggregated."""
        return self.numbers.omitted

    def expected(self) -> tuple[Expected, ...]:
        """The noise of each number."""
        return tuple(_expected(self.numbers, i, self.noise, self.terms) for i in range(len(self.numbers.names)))

    def draw(self, outputs: Sequence[bytes], rng: Random) -> pyarrow.Table:
        """Add the noise."""
        return _noised(self.numbers, self.numbers.read(outputs), self.numbers.bounds, self.noise, self.terms, rng)


def _noised(
    numbers: Numbers,
    values: Sequence[Sequence[Fraction]],
    ranges: Sequence[Range],
    noised: SumNoise,
    terms: Terms,
    rng: Random,
) -> pyarrow.Table:
    """The means of values within ranges, noised, with their error bars."""
    totals = noised([_steps(v, r) for v, r in zip(values, ranges, strict=True)], rng)
    within = noised.steps(terms.level)
    return bars_table(numbers.names, [_bar(t, r, terms.blocks, within) for t, r in zip(totals, ranges, strict=True)])


def _expected(numbers: Numbers, i: int, noised: SumNoise, terms: Terms, note: str = "") -> Expected:
    width, blocks = numbers.width(i), terms.blocks
    sd = math.sqrt(noised.mechanism.variance()) * width / STEPS / blocks
    return Expected(
        numbers.names[i],
        f"{noised.name} noise, standard deviation {sd:.4g}",
        f"mean of {blocks:,} blocks: {terms.each * width / blocks:.6g}",
        _half(width, blocks, noised.steps(terms.level)),
        {},
        None,
        note,
    )


def mean(numbers: Numbers, terms: Terms) -> Mean:
    """The mean that keeps a promise."""
    return Mean(numbers, noise(terms.part(Fraction(1)), len(numbers.names), terms.each), terms)


# With quartiles


@dataclass(frozen=True)
class Winsorized:
    """The mean of the outputs within a range about their quartiles, which are found privately."""

    numbers: Numbers
    quartiles: tuple[Quantile, Quantile]
    noise: SumNoise
    terms: Terms

    @property
    def guarantee(self) -> Guarantee:
        """Quartiles and noise together."""
        found = [one.guarantee(self.terms.sensitivity) * len(self.numbers.names) for one in self.quartiles]
        return self.terms.for_units(reduce(add, [*found, self.noise.guarantee]))

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms, for the record."""
        chosen = [recorded(one, "outputs of blocks", self.terms.sensitivity) for one in self.quartiles]
        return chosen * len(self.numbers.names) + self.noise.parts

    @property
    def why(self) -> str:
        """Why in two steps."""
        return f"Half of the promise finds where the blocks lie, the other half is {self.noise.name} noise for there."

    @property
    def omitted(self) -> tuple[Omission, ...]:
        """What becomes of outputs before they are aggregated."""
        return self.numbers.omitted

    def expected(self) -> tuple[Expected, ...]:
        """The noise of each number if the quartiles are as far apart as can be."""
        note = "the error bar is smaller in proportion to the range about the quartiles"
        return tuple(_expected(self.numbers, i, self.noise, self.terms, note) for i in range(len(self.numbers.names)))

    def draw(self, outputs: Sequence[bytes], rng: Random) -> pyarrow.Table:
        """Find the ranges, then add the noise."""
        values = self.numbers.read(outputs)
        ranges = [self._range(v, b, rng) for v, b in zip(values, self.numbers.bounds, strict=True)]
        return _noised(self.numbers, values, ranges, self.noise, self.terms, rng)

    def _range(self, values: Sequence[Fraction], bounds: Range, rng: Random) -> Range:
        """From two widths below the first quartile to two above the third, in whole cells and within the bounds."""
        cells = counts(values, bounds)
        a, b = sorted(int(one(cells, rng)) for one in self.quartiles)
        width = b + 1 - a
        ends = max(0, a - 2 * width), min(CELLS, b + 1 + 2 * width)
        low, high = (bounds[0] + (bounds[1] - bounds[0]) * end / CELLS for end in ends)
        return low, high


def winsorized(numbers: Numbers, terms: Terms) -> Winsorized:
    """A quarter of the promise for each quartile, half for the noise."""
    k = len(numbers.names)
    share = terms.part(Fraction(1, 4 * k), pure=True)
    low, high = (Quantile.calibrated(share, terms.sensitivity, q=q, cells=CELLS, groups=1) for q in ("1/4", "3/4"))
    return Winsorized(numbers, (low, high), noise(terms.part(Fraction(1, 2)), k, terms.each), terms)
