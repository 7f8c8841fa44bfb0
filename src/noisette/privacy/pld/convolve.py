"""The sum of independent losses on one lattice, tilted by e^(λL), and the curve delta(ε) that it gives.

Tilting by the saddle point λ moves the mean of the sum to the epsilon in question, so that one FFT gives the composed
masses there with full relative precision, whether delta is 1e-3 or 1e-300.   Proof: docs/proofs/composition.md

Vocabulary: `K(λ)` = ln E e^(λ sum of losses) · `tilt` λ · `faint` too small to matter, and counted as lost.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import imul

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.privacy.pld.discretize import Masses, Whole
from noisette.privacy.pld.loss import Floats, at_least_one

__all__ = ["LOG_FAINT", "Curve", "LossSum", "log_delta_near"]

LOG_FAINT = -50.0
"""Fourier coefficients below e^-50 are left out, and counted as lost."""

_LARGEST_EXPONENT = 600.0  # e^600 is within the floats


@dataclass(frozen=True)
class LossSum:
    """Losses on a common lattice with their counts, in one direction."""

    masses: list[Masses]
    counts: list[int]

    @property
    def step(self) -> float:
        """The step h of the lattice."""
        return self.masses[0].h

    @cached_property
    def certain(self) -> float:
        """The chance that some loss is infinite, or was cut off and counted as infinite."""
        beyond = ((m.beyond, k) for m, k in zip(self.masses, self.counts, strict=True))
        return at_least_one(beyond) * (1 + 2.0**-48)

    @cached_property
    def _flat(self) -> tuple[Floats, Floats, Whole, Whole, Floats]:
        """All losses in one array: values, log masses, where each part starts, the part of each value, the counts."""
        lengths = [len(m.p) for m in self.masses]
        if not all(lengths):
            raise InputError("These losses are too large to be composed: use a smaller epsilon or more noise.")
        losses = np.concatenate([m.losses for m in self.masses])
        logs = np.log(np.concatenate([m.p for m in self.masses]))
        starts = np.cumsum([0, *lengths[:-1]])
        return losses, logs, starts, np.repeat(np.arange(len(lengths)), lengths), np.array(self.counts, dtype=float)

    def tilted(self, tilt: float) -> tuple[Floats, Floats]:
        """The tilted masses of all parts in one array, normalised for each part, and the logs of their sums."""
        losses, logs, starts, owner, _ = self._flat
        exponents = tilt * losses + logs
        top = np.maximum.reduceat(exponents, starts)
        weights = np.exp(exponents - top[owner])
        mass = np.add.reduceat(weights, starts)
        return weights / mass[owner], np.log(mass) + top

    def apart(self, tilt: float) -> list[tuple[Floats, Floats]]:
        """The losses and the tilted masses of each part."""
        losses, _, starts, _, _ = self._flat
        split = (np.split(row, starts[1:]) for row in (losses, self.tilted(tilt)[0]))
        return list(zip(*split, strict=True))

    def log_moment(self, tilt: float) -> float:
        """K(λ)."""
        return float((self._flat[4] * self.tilted(tilt)[1]).sum())

    def log_moments(self, tilts: Floats) -> Floats:
        """K(λ) for several λ at once."""
        losses, logs, starts, owner, counts = self._flat
        exponents = tilts[:, None] * losses + logs
        top = np.maximum.reduceat(exponents, starts, axis=1)
        mass = np.add.reduceat(np.exp(exponents - top[:, owner]), starts, axis=1)
        return np.asarray(((np.log(mass) + top) * counts).sum(axis=1))

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """K(λ), K'(λ), K''(λ)."""
        losses, _, starts, owner, counts = self._flat
        weights, log = self.tilted(tilt)
        own = np.add.reduceat(weights * losses, starts)
        variance = np.add.reduceat(weights * (losses - own[owner]) ** 2, starts)
        return float((counts * log).sum()), float((counts * own).sum()), float((counts * variance).sum())

    def tilt_for_mean(self, epsilon: float) -> float:
        """The λ >= 0 with K'(λ) = ε, approximately; 0 where the mean is above ε already."""

        def rising(tilt: float) -> tuple[float, float]:
            _, mean, variance = self.moments(tilt)
            return mean - epsilon, variance

        return self._root(rising)

    def tilt_for_delta(self, delta: float) -> float:
        """The λ >= 0 at whose tilted mean delta(ε) is about the given one, by the saddle-point approximation."""

        def rising(tilt: float) -> tuple[float, float]:
            log, mean, variance = self.moments(tilt)
            return math.log(delta) - log_delta_near(tilt, log, mean, variance), tilt * variance

        return self._root(rising)

    def _root(self, rising: Callable[[float], tuple[float, float]]) -> float:
        """The root of a rising function, to one per cent: every tilt gives a valid bound, a good tilt a tight one.

        Newton steps within a bracket; tilts beyond 200 standard deviations gain nothing and are not tried.
        """
        if rising(0.0)[0] >= 0:
            return 0.0
        low, high = 0.0, 200 / max(math.sqrt(self.moments(0.0)[2]), self.step)
        tilt = high / 40
        for _ in range(60):
            value, slope = rising(tilt)
            low, high = (low, tilt) if value >= 0 else (tilt, high)
            if high - low <= 0.01 * high:
                break
            newton = tilt - value / slope if slope > 0 else high
            before, tilt = tilt, newton if low < newton < high else (low + high) / 2
            if abs(tilt - before) <= 0.01 * tilt:
                break
        return tilt

    def spectrum(self, tilt: float, size: int) -> NDArray[np.complex128]:
        """The Fourier coefficients of the tilted masses, modulo the size, to the power of their counts."""
        from scipy.fft import rfft

        weights = [own for _, own in self.apart(tilt)]

        def product(count: int) -> NDArray[np.complex128]:
            own = ((m.index, w) for m, w, k in zip(self.masses, weights, self.counts, strict=True) if k == count)
            return reduce(imul, (rfft(np.bincount(index % size, w, minlength=size)) for index, w in own))

        return reduce(imul, (_power(product(count), count) for count in set(self.counts)))


def log_delta_near(tilt: float, log: float, mean: float, variance: float) -> float:
    """ln delta at the tilted mean, by the saddle-point approximation."""
    return log - tilt * mean - math.log1p(tilt * (tilt + 1) * math.sqrt(2 * math.pi * variance))


def _power(spectrum: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """The power of the spectrum where it is not faint, by squaring: faster and more precise than by logarithms."""
    strong = np.flatnonzero(np.abs(spectrum) > math.exp(LOG_FAINT / count))
    square, power = spectrum[strong], np.ones(len(strong), dtype=complex)
    for bit in reversed(f"{count:b}"):
        if bit == "1":
            power *= square
        square *= square
    result = np.zeros_like(spectrum)
    result[strong] = power
    return result


class Curve:
    """delta(ε) near the tilted mean c: e^(K - λc) sum over s > ε of m(s) e^(-λ(s - c)) (1 - e^(ε - s)).

    With A and B the sums of m(s) e^(-λ(s-c)) and m(s) e^(-(λ+1)(s-c)) from a lattice point on, it is A - e^(ε-c) B.
    """

    def __init__(
        self, losses: Floats, masses: Floats, tilt: float, centre: float, height: float, certain: float
    ) -> None:
        first = int(np.searchsorted(losses, centre - _LARGEST_EXPONENT / (tilt + 1)))  # below, the sums would overflow
        if first == len(losses):  # the lattice is too coarse for this delta: no bound below 1 is known
            first, centre, masses, certain = first - 1, float(losses[-1]), np.zeros_like(masses), 1.0
        self.centre, self.height, self.certain = centre, height, certain
        self.losses = losses[first:]
        over = self.losses - centre
        terms = masses[first:] * _exps(over, -tilt)
        self.a = _sums_from(terms)
        self.b = _sums_from(terms * _exps(over, -1.0))
        self.up = 1 + (len(losses) + 1000) * 2.0**-52  # covers the rounding of both sums

    def delta_at(self, epsilon: float) -> float:
        """delta(ε); 1 below the window."""
        if epsilon < self.losses[0]:
            return 1.0
        return self._delta(epsilon, int(np.searchsorted(self.losses, epsilon, side="right")))

    def _delta(self, epsilon: float, first: int) -> float:
        """delta(ε) where `first` is the first lattice point above ε; rounding and what was cut off are added."""
        a, b = float(self.a[first]), float(self.b[first])
        found = a * self.up - math.exp(min(epsilon - self.centre, _LARGEST_EXPONENT)) * b
        return self.height * max(0.0, found) + self.certain

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε >= 0 in the window with delta(ε) <= delta; infinite if there is none."""
        bottom = max(0.0, float(self.losses[0]))
        if self.delta_at(bottom) <= delta:
            return bottom
        if self.certain >= delta:
            return math.inf
        first = bisect_left(self.losses, True, key=lambda s: self.delta_at(s) <= delta)
        above, a, b = float(self.losses[first]), float(self.a[first]), float(self.b[first])
        rest = a * self.up - (delta - self.certain) / self.height  # e^(ε-c) B, between the last point and this one
        return min(above, self.centre + math.log(rest / b) + (1 + above) * 1e-14) if rest > 0 < b else above


def _exps(t: Floats, rate: float) -> Floats:
    """e^(rate t) for equally spaced t, as products of about 2 sqrt(n) exponentials."""
    block = math.isqrt(len(t)) + 1
    return np.outer(np.exp(rate * t[::block]), np.exp(rate * (t[:block] - t[0]))).ravel()[: len(t)]


def _sums_from(terms: Floats) -> Floats:
    """The sum of the terms from each position on, and the empty sum."""
    sums = np.zeros(len(terms) + 1)
    np.cumsum(terms[::-1], out=sums[-2::-1])
    return sums
