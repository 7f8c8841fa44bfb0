"""The sum of many losses on one lattice, tilted by e^(λL): its moments, the tilt that is wanted, its spectrum.

Vocabulary: `K(λ)` = ln E e^(λ sum of losses) · `tilt` λ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import imul

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.privacy.pld.lattice import Floats, Masses, Whole

__all__ = ["LOG_FAINT", "LossSum", "log_delta_near"]

LOG_FAINT = -50.0
"""Fourier coefficients of e^-50 are left out, and counted as lost."""


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
        """The chance that some loss is infinite, or too large to be kept apart from that."""
        none = sum(k * math.log1p(-m.beyond) for m, k in zip(self.masses, self.counts, strict=True))
        return -math.expm1(none) * (1 + 2.0**-48)

    @cached_property
    def _flat(self) -> tuple[Floats, Floats, Whole, Whole, Floats]:
        """All losses in a row, the logarithms of their masses, where each part starts, whose each is, the counts."""
        lengths = [len(m.p) for m in self.masses]
        if not all(lengths):
            raise InputError("These losses are too large to be composed: use a smaller epsilon or more noise.")
        losses = np.concatenate([m.losses for m in self.masses])
        logs = np.log(np.concatenate([m.p for m in self.masses]))
        starts = np.cumsum([0, *lengths[:-1]])
        return losses, logs, starts, np.repeat(np.arange(len(lengths)), lengths), np.array(self.counts, dtype=float)

    def tilted(self, tilt: float) -> tuple[Floats, Floats]:
        """All masses in a row, tilted to sum to one for each part, and the logarithms of what they summed to."""
        losses, logs, starts, owner, _ = self._flat
        exponents = tilt * losses + logs
        top = np.maximum.reduceat(exponents, starts)
        weights = np.exp(exponents - top[owner])
        mass = np.add.reduceat(weights, starts)
        return weights / mass[owner], np.log(mass) + top

    def apart(self, tilt: float) -> list[tuple[Floats, Floats]]:
        """The losses of each part, and their tilted masses."""
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
        """The λ >= 0 with K'(λ) = ε, nearly; 0 where the mean is above it."""

        def rising(tilt: float) -> tuple[float, float]:
            _, mean, variance = self.moments(tilt)
            return mean - epsilon, variance

        return self._root(rising)

    def tilt_for_delta(self, delta: float) -> float:
        """The λ >= 0 at whose mean delta is near the given one, by the saddle-point approximation."""

        def rising(tilt: float) -> tuple[float, float]:
            log, mean, variance = self.moments(tilt)
            return math.log(delta) - log_delta_near(tilt, log, mean, variance), tilt * variance

        return self._root(rising)

    def _root(self, rising: Callable[[float], tuple[float, float]]) -> float:
        """The root of a rising function, to about one per cent: any tilt is valid, a good one is precise.

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
    """ln delta at the tilted mean, nearly: the saddle-point approximation."""
    return log - tilt * mean - math.log1p(tilt * (tilt + 1) * math.sqrt(2 * math.pi * variance))


def _power(spectrum: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """The spectrum's power where it is not faint, by squaring: faster and nearer than by logarithms."""
    strong = np.flatnonzero(np.abs(spectrum) > math.exp(LOG_FAINT / count))
    square, power = spectrum[strong], np.ones(len(strong), dtype=complex)
    for bit in reversed(f"{count:b}"):
        if bit == "1":
            power *= square
        square *= square
    result = np.zeros_like(spectrum)
    result[strong] = power
    return result
