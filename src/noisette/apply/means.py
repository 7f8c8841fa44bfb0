"""Private means of what the blocks gave: m outputs, clamped to public bounds [low, high].

mean         (1/m) sum of the outputs, with noise of (high - low)/m per epsilon: one unit changes one of them, by at
             most high - low. [Nissim-Raskhodnikova-Smith 2007; Mohan-Thakurta-Shi-Song-Culler 2012, GUPT; the deck
             forgets to divide by m, erratum E15]
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
from typing import Any

import pyarrow

from noisette.apply.noise import BLOCK, STEPS, Noise, for_units, noise, part, recorded
from noisette.apply.numbers import CELLS, Bar, Numbers, Range, counts, told
from noisette.exact.random import Random
from noisette.mechanisms import Quantile
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.query.expected import Expected

__all__ = ["Mean", "Winsorized", "mean", "winsorized"]


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


@dataclass(frozen=True)
class Mean:
    """The mean of the outputs."""

    numbers: Numbers
    noise: Noise
    neighbours: Neighbours
    level: float

    @property
    def guarantee(self) -> Guarantee:
        """What the noise is worth."""
        return for_units(self.noise.guarantee, self.neighbours)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms, for the record."""
        return self.noise.parts

    @property
    def why(self) -> str:
        """Why this noise."""
        return f"{self.noise.name} noise on the mean over {self.numbers.blocks:,} blocks, one of which holds a unit."

    def expected(self) -> tuple[Expected, ...]:
        """The noise of each number."""
        return tuple(_expected(self.numbers, i, self.noise, self.level) for i in range(len(self.numbers.names)))

    def draw(self, outputs: Sequence[bytes], rng: Random) -> pyarrow.Table:
        """Add the noise."""
        values, bounds = self.numbers.read(outputs), self.numbers.bounds
        noised = self.noise([_steps(v, b) for v, b in zip(values, bounds, strict=True)], rng)
        within = self.noise.steps(self.level)
        bars = [_bar(total, b, self.numbers.blocks, within) for total, b in zip(noised, bounds, strict=True)]
        return told(self.numbers.names, bars)


def _expected(numbers: Numbers, i: int, noised: Noise, level: float, note: str = "") -> Expected:
    width, blocks = numbers.width(i), numbers.blocks
    sd = math.sqrt(noised.mechanism.variance()) * width / STEPS / blocks
    return Expected(
        numbers.names[i],
        f"{noised.name} noise, standard deviation {sd:.4g}",
        f"mean of {blocks:,} blocks: {width / blocks:.6g}",
        _half(width, blocks, noised.steps(level)),
        {},
        None,
        f"{numbers.assumes(i)}{note}",
    )


def mean(numbers: Numbers, spend: Promise, neighbours: Neighbours, level: float) -> Mean:
    """The mean that keeps a promise."""
    return Mean(numbers, noise(part(spend, Fraction(1)), len(numbers.names)), neighbours, level)


# With quartiles


@dataclass(frozen=True)
class Winsorized:
    """The mean of the outputs within a range about their quartiles, which are found privately."""

    numbers: Numbers
    quartiles: tuple[Quantile, Quantile]
    noise: Noise
    neighbours: Neighbours
    level: float

    @property
    def guarantee(self) -> Guarantee:
        """Quartiles and noise together."""
        each = [one.guarantee(BLOCK) * len(self.numbers.names) for one in self.quartiles]
        return for_units(reduce(add, [*each, self.noise.guarantee]), self.neighbours)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms, for the record."""
        chosen = [recorded(one, "outputs of blocks", BLOCK) for one in self.quartiles]
        return chosen * len(self.numbers.names) + self.noise.parts

    @property
    def why(self) -> str:
        """Why in two steps."""
        return f"Half of the promise finds where the blocks lie, the other half is {self.noise.name} noise for there."

    def expected(self) -> tuple[Expected, ...]:
        """The noise of each number if the quartiles are as far apart as can be."""
        note = "; the error bar is smaller in proportion to the range about the quartiles"
        return tuple(_expected(self.numbers, i, self.noise, self.level, note) for i in range(len(self.numbers.names)))

    def draw(self, outputs: Sequence[bytes], rng: Random) -> pyarrow.Table:
        """Find the ranges, then add the noise."""
        values = self.numbers.read(outputs)
        ranges = [self._range(v, b, rng) for v, b in zip(values, self.numbers.bounds, strict=True)]
        noised = self.noise([_steps(v, r) for v, r in zip(values, ranges, strict=True)], rng)
        within = self.noise.steps(self.level)
        bars = [_bar(total, r, self.numbers.blocks, within) for total, r in zip(noised, ranges, strict=True)]
        return told(self.numbers.names, bars)

    def _range(self, values: Sequence[Fraction], bounds: Range, rng: Random) -> Range:
        """From two widths below the first quartile to two above the third, in whole cells and within the bounds."""
        cells = counts(values, bounds)
        a, b = sorted(int(one(cells, rng)) for one in self.quartiles)
        width = b + 1 - a
        ends = max(0, a - 2 * width), min(CELLS, b + 1 + 2 * width)
        low, high = (bounds[0] + (bounds[1] - bounds[0]) * end / CELLS for end in ends)
        return low, high


def winsorized(numbers: Numbers, spend: Promise, neighbours: Neighbours, level: float) -> Winsorized:
    """A quarter of the promise for each quartile, half for the noise."""
    k = len(numbers.names)
    share = part(spend, Fraction(1, 4 * k), pure=True)
    low, high = (Quantile.calibrated(share, BLOCK, q=q, cells=CELLS, groups=1) for q in ("1/4", "3/4"))
    return Winsorized(numbers, (low, high), noise(part(spend, Fraction(1, 2)), k), neighbours, level)
