"""Numbers computed from noised measures, with error bars.

An estimate knows its value in each group and how the noise of each measure moves it, to first order. A number that is a
multiple of one measure has exactly that measure's error; a quotient s / n is bounded by Fieller's theorem, which holds
for small n too; all else adds up variances, with a quantile between that of the noise itself and that of a normal
variable, by how much one measure's noise dominates.   [Fieller 1954]

Vocabulary: `slope` d value / d measure · `spread` the standard deviation of a measure's noise · `reach` its half-width
at the level, in units of `spread`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.answers.column import moved_ends
from noisette.query.kind import Kind

__all__ = ["Estimate", "Floats", "Noise", "Noises", "Others"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """What is known of a measure's error: its standard deviation and the half-width that it keeps at the level."""

    spread: float
    half_width: float
    normal: float  # the same half-width for a normal variable of deviation 1
    whole: bool = False  # whole numbers may keep less than `normal` alone, but not where they are added to others


@dataclass(frozen=True)
class Others:
    """The noise of a measure in all other groups that are added up: it is independent of the group's own."""

    measure: Any


Noises: TypeAlias = Mapping[Any, Noise]
Rounding: TypeAlias = Callable[[Floats], Floats]
Bars: TypeAlias = Callable[[Noises], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Estimate:
    """A number for each group; `slopes` by the name of the measure, in its own units.

    `bars` computes the ends of the error bar where something better is known than the first order of the slopes, and
    `free` those before they were moved into bounds.
    """

    value: Floats
    slopes: Mapping[Any, Floats]
    bars: Bars | None = field(default=None, repr=False)
    free: Bars | None = field(default=None, repr=False)

    @staticmethod
    def measured(name: Any, value: Floats) -> Estimate:
        """What was measured itself."""
        return Estimate(value, {name: np.ones(())})

    @staticmethod
    def constant(number: float) -> Estimate:
        """A number that has no error."""
        return Estimate(np.asarray(number, dtype=float), {})

    @staticmethod
    def between(value: Floats, low: Floats, high: Floats) -> Estimate:
        """A number whose error bars were released with it."""
        return Estimate(value, {}, lambda _: (low, high))

    @property
    def certain(self) -> bool:
        """Whether it has no error: a constant or a key."""
        return not self.slopes and self.bars is None

    @property
    def _ranked(self) -> bool:
        """Whether nothing but its error bars is known: a quantile, or what was computed from one."""
        return not self.slopes and self.bars is not None

    # Arithmetic

    def __add__(self, other: Estimate) -> Estimate:
        if other.certain:
            return self._mapped(lambda ends: ends + other.value, self.slopes)
        if self.certain:
            return other + self
        if self._ranked or other._ranked:
            return self._combined(other, np.add)
        return Estimate(self.value + other.value, _sum(self.slopes, other.slopes))

    def __sub__(self, other: Estimate) -> Estimate:
        return self + other.scaled(-1)

    def __mul__(self, other: Estimate) -> Estimate:
        if other.certain:
            return self.scaled(other.value)
        if self.certain:
            return other.scaled(self.value)
        if self._ranked or other._ranked:
            return self._combined(other, np.multiply)
        slopes = _sum(_scaled(self.slopes, other.value), _scaled(other.slopes, self.value))
        return Estimate(self.value * other.value, slopes)

    def scaled(self, factor: Floats | float) -> Estimate:
        """This times what has no error."""
        return self._mapped(lambda ends: ends * factor, _scaled(self.slopes, factor))

    def over(self, other: Estimate) -> Estimate:
        """This divided by another number: what is near 0 counts as 1, since counts are what one divides by."""
        if other.certain:
            return self.scaled(1 / np.where(other.value == 0, np.nan, other.value))
        if self._ranked or other._ranked:
            return self._combined(other, np.divide)
        n = np.where(np.abs(other.value) < 1, 1.0, other.value)
        value = self.value / n
        slopes = _sum(_scaled(self.slopes, 1 / n), _scaled(other.slopes, -value / n))
        if self.certain:
            return Estimate(value, slopes, self._combined(other, np.divide).bars)
        return Estimate(value, slopes, lambda noises: _fieller(self, other, noises))

    def clearly_over(self, other: Estimate, excess: Bars) -> Estimate:
        """This divided by what must be clear of 0, or else nothing is known: then the ends of its bar are infinite.

        `excess` says by how much both may be off beyond first order, at the level of the noises.
        """
        n = np.where(other.value == 0, 1e-300, other.value)
        with np.errstate(all="ignore"):
            value = self.value / n
            slopes = _sum(_scaled(self.slopes, 1 / n), _scaled(other.slopes, -value / n))

        def bars(noises: Noises) -> tuple[Floats, Floats]:
            more, less = excess(noises)
            with np.errstate(all="ignore"):
                low, high, sure = _fieller_ends(self, other, Estimate(value, slopes), n, noises)
                room = np.where(sure > less, sure - less, np.nan)
                ends = low - (more + np.abs(low) * less) / room, high + (more + np.abs(high) * less) / room
            return np.where(np.isfinite(ends[0]), ends[0], -np.inf), np.where(np.isfinite(ends[1]), ends[1], np.inf)

        return Estimate(value, slopes, bars)

    def where_known(self, noises: Noises, span: tuple[float, float]) -> Estimate:
        """The same, with no number where nothing is known of it: where its bar is no narrower than all that can be."""
        low, high = moved_ends(self.value, self.interval(noises), span)
        return self if span[0] == span[1] else self.only((low > span[0]) | (high < span[1]))

    def only(self, known: NDArray[np.bool_]) -> Estimate:
        """The same, with no number elsewhere; there its bar has no end.

        >>> mean = Estimate.between(np.array([4.0, 5.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0]))
        >>> kept = mean.only(np.array([True, False]))
        >>> kept.value.tolist(), kept.interval({})[1].tolist()
        ([4.0, nan], [5.0, inf])
        """

        def open_ends(bars: Bars) -> Bars:
            def ends(noises: Noises) -> tuple[Floats, Floats]:
                low, high = bars(noises)
                return np.where(known, low, -np.inf), np.where(known, high, np.inf)

            return ends

        free = None if self.free is None else open_ends(self.free)
        return Estimate(np.where(known, self.value, np.nan), self.slopes, open_ends(self.interval), free)

    def less_square(self, mean: Estimate) -> Estimate:
        """This less the square of a mean, which noise enlarges: the upper end is higher by the mean's error squared.

        With m + d for m, the square is too large by 2md + d^2; the slopes know the first part alone.
        """
        first = self - mean * mean

        def bars(noises: Noises) -> tuple[Floats, Floats]:
            low, high = first.interval(noises)
            return low, high + mean.half_width(noises) ** 2

        return Estimate(first.value, first.slopes, bars)

    def total(self, places: NDArray[np.int64], shown: NDArray[np.bool_]) -> Estimate:
        """A measure, added up over the groups that are shown, for each group over those of its own place."""
        size = len(places)
        numbers = np.where(shown, np.broadcast_to(self.value, (size,)), 0.0)
        count = np.bincount(places, weights=shown.astype(float), minlength=1)
        sums = np.bincount(places, weights=numbers, minlength=1)
        return self._summed(
            np.asarray(sums[places], float), np.where(shown, 1.0, 0.0), np.asarray(count[places], float)
        )

    def times_alike(self, groups: int) -> Estimate:
        """The same sum over as many groups, if all of them are alike."""
        return self._summed(self.value * groups, np.ones(()), np.asarray(float(groups)))

    def _summed(self, value: Floats, own: Floats, count: Floats) -> Estimate:
        slopes: dict[Any, Floats] = {}
        for name, slope in self.slopes.items():
            slopes |= {name: np.asarray(slope * own), Others(name): np.asarray(slope * np.sqrt(count - own))}
        return Estimate(value, slopes)

    def root(self) -> Estimate:
        """The square root of what cannot be negative; its error bars are the roots of that number's."""
        value = np.sqrt(np.maximum(self.value, 0))
        slopes = _scaled(self.slopes, 0.5 / np.maximum(value, 1e-12))
        free = None if self.free is None else replace(self, bars=self.free)._ends(_root)
        return Estimate(value, slopes, self._ends(_root), free)

    def mirrored(self) -> Estimate:
        """The absolute value; its error bars reach down to 0 where the number's sign is not clear."""

        def bars(noises: Noises) -> tuple[Floats, Floats]:
            low, high = self.interval(noises)
            nearest = np.minimum(np.abs(low), np.abs(high))
            return np.where((low < 0) & (high > 0), 0.0, nearest), np.maximum(np.abs(low), np.abs(high))

        return Estimate(np.abs(self.value), _scaled(self.slopes, np.where(self.value < 0, -1.0, 1.0)), bars)

    def rounded(self, value: Floats, down: Rounding, up: Rounding) -> Estimate:
        """A value that was rounded; the ends of its error bar are rounded outwards."""

        def bars(noises: Noises) -> tuple[Floats, Floats]:
            low, high = self.interval(noises)
            return down(low), up(high)

        return Estimate(value, self.slopes, bars)

    def within(self, kind: Kind) -> Estimate:
        """The same, known to lie within bounds."""
        low = -np.inf if kind.low is None else float(kind.low)
        high = np.inf if kind.high is None else float(kind.high)

        def bars(noises: Noises) -> tuple[Floats, Floats]:
            return moved_ends(self.value, self.interval(noises), (low, high))

        return Estimate(np.clip(self.value, low, high), self.slopes, bars, self.interval)

    def _mapped(self, function: Callable[[Floats], Floats], slopes: Mapping[Any, Floats]) -> Estimate:
        """An affine map of the value; the ends go with it."""
        bars = None if self.bars is None else self._ends(function)
        return Estimate(function(self.value), slopes, bars)

    def _ends(self, function: Callable[[Floats], Floats]) -> Bars:
        """Error bars that are a monotone function of these."""

        def bars(noises: Noises) -> tuple[Floats, Floats]:
            one, other = (function(end) for end in self.interval(noises))
            return np.minimum(one, other), np.maximum(one, other)

        return bars

    def _combined(self, other: Estimate, operation: Callable[[Any, Any], Floats]) -> Estimate:
        """An operation on two numbers of which at least one is known by its error bars alone: on all their ends."""

        def bars(noises: Noises) -> tuple[Floats, Floats]:
            mine, others = self.interval(noises), other.interval(noises)
            with np.errstate(all="ignore"):
                corners = np.array([operation(a, b) for a in mine for b in others])
            if operation is np.divide:  # nothing is known of a quotient by what may be 0
                corners = np.where((others[0] <= 0) & (others[1] >= 0), np.nan, corners)
            low, high = corners.min(axis=0), corners.max(axis=0)
            return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

        with np.errstate(all="ignore"):
            return Estimate(operation(self.value, other.value), {}, bars)

    # Error bars

    def interval(self, noises: Noises) -> tuple[Floats, Floats]:
        """The ends between which the true number lies, at the level of the noises."""
        if self.bars is not None:
            return self.bars(noises)
        half = self.half_width(noises)
        return self.value - half, self.value + half

    def unclipped(self, noises: Noises) -> tuple[Floats, Floats]:
        """The ends as they follow from the noise alone, also where bounds say more."""
        return self.interval(noises) if self.free is None else self.free(noises)

    def half_width(self, noises: Noises) -> Floats:
        """Half the width of the error bars, to first order."""
        parts = [(np.abs(slope), noises[name]) for name, slope in self.slopes.items()]
        if not parts:
            return np.zeros_like(self.value)
        if len(parts) == 1:
            return np.asarray(parts[0][0] * parts[0][1].half_width)
        variances = [np.square(slope * noise.spread) for slope, noise in parts]
        total = np.sum(variances, axis=0)
        safe = np.where(total > 0, total, 1.0)
        normal = parts[0][1].normal
        excess = [
            np.square(v / safe) * max(noise.half_width / noise.spread - normal, 0.0 if noise.whole else -normal)
            for v, (_, noise) in zip(variances, parts, strict=True)
            if noise.spread > 0
        ]
        return np.asarray(np.sqrt(total) * (normal + np.sum(excess, axis=0)))


def _root(ends: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(ends, 0)))


def _sum(a: Mapping[Any, Floats], b: Mapping[Any, Floats]) -> dict[Any, Floats]:
    return {name: np.asarray(a.get(name, 0.0) + b.get(name, 0.0)) for name in {**a, **b}}


def _scaled(slopes: Mapping[Any, Floats], factor: Floats | float) -> dict[Any, Floats]:
    return {name: np.asarray(slope * factor) for name, slope in slopes.items()}


def _fieller(top: Estimate, bottom: Estimate, noises: Noises) -> tuple[Floats, Floats]:
    """The ends of a quotient by a count: what is near 0 counts as 1."""
    n = np.where(np.abs(bottom.value) < 1, 1.0, bottom.value)
    return _fieller_ends(top, bottom, top.over(bottom), n, noises)[:2]


def _fieller_ends(
    top: Estimate, bottom: Estimate, m: Estimate, n: Floats, noises: Noises
) -> tuple[Floats, Floats, Floats]:
    """All m with |top - m bottom| within the half-width of its own noise, and how far the divisor is clear of 0.

    (b^2 - h^2) m^2 - 2 (ab - c) m + (a^2 - g^2) <= 0: g and h are the half-widths of top and bottom at the mixture of
    the estimate, which is top over n, and c is the covariance of both in the same units. Where b is not clear of 0
    nothing is known of the quotient: the ends are infinite.
    """
    a, b = top.value, bottom.value
    shared = _covariance(top, bottom, noises)
    factor = _ratio(m.half_width(noises) * np.abs(n), _deviation(top, m, bottom, noises, shared))
    g, h, c = factor * _spread(top, noises), factor * _spread(bottom, noises), factor**2 * shared
    square = b**2 - h**2
    root = np.sqrt(np.maximum((a * b - c) ** 2 - square * (a**2 - g**2), 0))
    clear = square > 0
    safe = np.where(clear, square, 1.0)
    low = np.where(clear, (a * b - c - root) / safe, -np.inf)
    high = np.where(clear, (a * b - c + root) / safe, np.inf)
    return low, high, np.abs(b) - h


def _covariance(a: Estimate, b: Estimate, noises: Noises) -> Floats:
    shared = [a.slopes[name] * b.slopes[name] * noises[name].spread ** 2 for name in a.slopes if name in b.slopes]
    return np.asarray(sum(shared, np.zeros(())))


def _spread(estimate: Estimate, noises: Noises) -> Floats:
    variance = sum(np.square(slope * noises[name].spread) for name, slope in estimate.slopes.items())
    return np.asarray(np.sqrt(variance) + np.zeros_like(estimate.value))


def _deviation(top: Estimate, m: Estimate, bottom: Estimate, noises: Noises, shared: Floats) -> Floats:
    """The standard deviation of top - m bottom."""
    variance = _spread(top, noises) ** 2 + (m.value * _spread(bottom, noises)) ** 2 - 2 * m.value * shared
    return np.asarray(np.sqrt(np.maximum(variance, 0)))


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.divide(a, b, out=np.zeros_like(a + b), where=b > 0))
