"""delta(epsilon) and epsilon(delta) of many losses together, never below the truth.

1. Each loss is put on the multiples of a step h: the mass between two of them goes to both ends, such that its weight
   under P and under Q stays ("connect the dots": Doroshenko-Ghazi-Kamath-Kumar-Manurangsi 2022). That makes the pair
   easier to tell apart, so every bound from it holds, and it is exact at the multiples.
2. The masses are tilted by e^(λL), λ the saddle point for the epsilon in question, so that the sum of losses has its
   mean there; then one FFT gives the composed masses with full relative precision, be delta 1e-3 or 1e-300.
3. h is chosen so that what step 1 can have added, about n (λ+1) h²/8 in epsilon for n losses off the lattice, is below
   a relative 1e-6, or 1e-5 or 1e-4 where less would take too many points.

Vocabulary: `parts` {loss: count} · `K(λ)` = ln E e^(λ sum of losses) · `h` step · `m` masses on the lattice.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.privacy.loss import LatticeLaplace, Loss, Response

__all__ = ["composed_delta", "composed_epsilon", "moments_of"]

Floats: TypeAlias = NDArray[np.float64]
Parts: TypeAlias = Mapping[Loss, int]

_TOLERANCES = [(1e-6, 1 << 15), (1e-5, 1 << 17), (1e-4, 1 << 62)]  # relative excess, up to how many points
_SAFETY = 1 + 1e-9  # covers float rounding; far below what the lattice adds
_LOG_TINY = -40.0  # tilted mass of e^-40 outside the window is counted as lost
_LOG_FAINT = -50.0  # Fourier coefficients of e^-50 are left out, and counted as lost
_ROUNDING = 1e-13
_FLOAT_REACH = 600.0
_LONGEST = 1 << 21  # points of one loss


@dataclass(frozen=True)
class _Masses:
    """Finite masses at (start + i) h, and the mass `beyond` that is counted as certain to be told."""

    start: int
    h: float
    p: Floats
    beyond: float

    @cached_property
    def losses(self) -> Floats:
        return np.asarray((self.start + np.arange(len(self.p))) * self.h, dtype=np.float64)


def _on_lattice(loss: Loss, h: float, tail: float, *, reverse: bool) -> _Masses:
    reverse = reverse and not loss.symmetric
    found = loss.atoms()
    if found is not None:
        losses, p = found
        return _atoms_on_lattice(*((-losses, p * np.exp(-losses)) if reverse else (losses, p)), h, loss.certain())
    low, high = loss.ends(tail)
    if reverse:
        low, high = -high, -low
    start, stop = math.floor(low / h), math.ceil(high / h) + 1
    t = np.arange(start, stop + 1, dtype=np.float64) * h
    if reverse:  # the loss is -L, under Q
        up, down = loss.below(-t)[::-1], loss.above(-t)[::-1]
    else:
        up, down = loss.above(t), loss.below(t)
    p, q = (_between(a, b) for a, b in zip(up, down, strict=True))
    outer = np.clip((p - q * np.exp(np.minimum(t[:-1], 700.0))) / -math.expm1(-h), 0, p)
    masses = np.zeros(len(t))
    masses[:-1] += p - outer
    masses[1:] += outer
    masses[0] += down[0][0]  # what loses less loses this much
    return _trimmed(start, h, masses, loss.certain() + float(up[0][-1]))


def _trimmed(start: int, h: float, masses: Floats, beyond: float) -> _Masses:
    there = np.flatnonzero(masses)
    return _Masses(start + int(there[0]), h, masses[there[0] : there[-1] + 1], beyond)


def _between(up: Floats, down: Floats) -> Floats:
    """Masses between neighbouring points, from whichever tail is smaller."""
    return np.maximum(0.0, np.where(up[:-1] < 0.5, up[:-1] - up[1:], down[1:] - down[:-1]))


def _atoms_on_lattice(losses: Floats, p: Floats, h: float, beyond: float) -> _Masses:
    place = np.floor(losses / h).astype(np.int64)
    start = int(place.min())
    outer = np.clip(p * np.expm1(place * h - losses) / math.expm1(-h), 0, p)
    masses = np.bincount(place - start, p - outer, minlength=int(place.max()) - start + 2).astype(np.float64)
    masses += np.bincount(place - start + 1, outer, minlength=len(masses))
    return _trimmed(start, h, masses, beyond)


@dataclass(frozen=True)
class _Sum:
    """Losses on a common lattice with their counts, in one direction."""

    masses: list[_Masses]
    counts: list[int]

    @property
    def step(self) -> float:
        return self.masses[0].h

    def certain(self) -> float:
        """The chance that some loss is infinite, or too large to be kept apart from that."""
        return -math.expm1(sum(k * math.log1p(-m.beyond) for m, k in zip(self.masses, self.counts, strict=True)))

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """K(λ), K'(λ), K''(λ)."""
        log, mean, variance = 0.0, 0.0, 0.0
        for m, k in zip(self.masses, self.counts, strict=True):
            losses = m.losses
            top = tilt * losses[-1 if tilt > 0 else 0]
            weights = m.p * np.exp(tilt * losses - top)
            mass = float(weights.sum())
            if not mass > 0:
                raise InputError("These losses are too large to be composed: use a smaller epsilon or more noise.")
            own = float((weights * losses).sum()) / mass  # not a dot product, which would start threads
            log, mean = log + k * (math.log(mass) + top), mean + k * own
            variance += k * float((weights * (losses - own) ** 2).sum()) / mass
        return log, mean, variance

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
            spread = math.log1p(tilt * (tilt + 1) * math.sqrt(2 * math.pi * variance))
            return math.log(delta) - (log - tilt * mean - spread), tilt * variance

        return self._root(rising)

    def _root(self, rising: Callable[[float], tuple[float, float]]) -> float:
        """The root of a rising function, to about one per cent: any tilt is valid, a good one is precise.

        Newton steps within a bracket; tilts beyond 200 standard deviations gain nothing and are not tried.
        """
        low, high = 0.0, 200 / (math.sqrt(self.moments(0.0)[2]) or self.step)
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

    def _reach(self, tilt: float, sign: int) -> float:
        """How far from its mean all but e^-40 of the tilted mass lies on one side, by Chernoff's bound."""
        log, mean, variance = self.moments(tilt)
        sd = max(math.sqrt(variance), self.step)
        widths = []
        for theta in (2.0**i / sd for i in range(4)):
            rise = self.moments(tilt + sign * theta)[0] - log - sign * theta * mean
            widths.append((rise - _LOG_TINY) / theta)
        return max(min(widths), 4 * self.step)

    def curve(self, tilt: float) -> "_Curve":
        """Convolve everything, tilted, around its mean."""
        from scipy.fft import irfft, next_fast_len, rfft

        log, mean, _ = self.moments(tilt)
        below, above = self._reach(tilt, -1), self._reach(tilt, +1)
        size = next_fast_len(math.ceil((below + above) / self.step) + 4, real=True)
        spectrum = np.ones(size // 2 + 1, dtype=complex)
        for count in set(self.counts):
            factor = np.ones_like(spectrum)
            for m in (m for m, k in zip(self.masses, self.counts, strict=True) if k == count):
                weights = m.p * np.exp(tilt * (m.losses - m.losses[-1]))
                factor *= rfft(_folded(weights / weights.sum(), size))
            spectrum *= _power(factor, count)
        offset = sum(k * m.start for m, k in zip(self.masses, self.counts, strict=True))
        index = math.floor((mean - below) / self.step) + np.arange(size)
        masses = np.maximum(0.0, irfft(spectrum, size)[(index - offset) % size])
        lost = 4 * math.exp(_LOG_TINY) + size * math.exp(_LOG_FAINT)
        return _Curve(index * self.step, masses, tilt, log, mean, lost)


def _power(spectrum: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """The spectrum's power where it is not faint: most of it is, and powers of complex numbers are slow."""
    strong = np.abs(spectrum) > math.exp(_LOG_FAINT / count)
    result = np.zeros_like(spectrum)
    result[strong] = spectrum[strong] ** count
    return result


def _folded(weights: Floats, size: int) -> Floats:
    """Sum what is the same modulo the size."""
    padded = np.append(weights, np.zeros(-len(weights) % size))
    return np.asarray(padded.reshape(-1, size).sum(axis=0))


class _Curve:
    """delta(ε) near the tilted mean c: e^(K - λc) sum over s > ε of m(s) e^(-λ(s - c)) (1 - e^(ε - s)).

    With A and B the sums of m(s) e^(-λ(s-c)) and m(s) e^(-(λ+1)(s-c)) from a lattice point on, it is A - e^(ε-c) B.
    """

    def __init__(
        self, losses: Floats, masses: Floats, tilt: float, log_moment: float, centre: float, lost: float
    ) -> None:
        self.tilt, self.centre, self.lost = tilt, centre, lost
        self.height = math.exp(log_moment - tilt * centre)
        known = losses >= centre - _FLOAT_REACH / (tilt + 1)  # below, the sums would leave the range of floats
        self.losses = losses[known]
        over = self.losses - centre
        terms = masses[known] * np.exp(-tilt * over)
        self.a = np.append(np.cumsum(terms[::-1])[::-1], 0.0)
        self.b = np.append(np.cumsum((terms * np.exp(-over))[::-1])[::-1], 0.0)

    def delta(self, epsilon: float) -> float:
        if epsilon < self.losses[0]:
            return 1.0
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        return float(self._delta(np.array([epsilon]), np.array([first]))[0])

    def _delta(self, epsilon: Floats, first: NDArray[np.intp]) -> Floats:
        """delta(ε) where `first` is the first lattice point above ε, with what was lost or rounded."""
        over = np.minimum(epsilon - self.centre, _FLOAT_REACH)
        found = np.maximum(0.0, self.a[first] - np.exp(over) * self.b[first])
        lost = self.lost * np.exp(-self.tilt * over) + self.a[first] * _ROUNDING
        return np.asarray(self.height * (found * _SAFETY + lost))

    def epsilon(self, allowed: Callable[[Floats], Floats]) -> float:
        """The smallest ε >= 0 in the window with delta(ε) <= allowed(ε); infinite if there is none."""
        points = np.append(max(0.0, self.losses[0]), self.losses[self.losses > max(0.0, self.losses[0])])
        first = np.searchsorted(self.losses, points, side="right")
        enough = np.flatnonzero(self._delta(points, first) <= allowed(points))
        if not enough.size:
            return math.inf
        if enough[0] == 0:
            return float(points[0])
        low, high = float(points[enough[0] - 1]), float(points[enough[0]])
        while high - low > 1e-13 * max(1.0, high):
            middle = (low + high) / 2
            holds = self.delta(middle) <= float(allowed(np.array([middle]))[0])
            low, high = (low, middle) if holds else (middle, high)
        return high


def _sums(parts: Parts, h: float, tail: float) -> list[_Sum]:
    directions = [False] if all(loss.symmetric for loss in parts) else [False, True]
    counts = list(parts.values())
    return [_Sum([_on_lattice(loss, h, tail, reverse=reverse) for loss in parts], counts) for reverse in directions]


def _bounded(parts: Parts) -> dict[Loss, float]:
    return {loss: float(loss.epsilon) for loss in parts if isinstance(loss, Response | LatticeLaplace) and loss.epsilon}


def _aligned(parts: Parts, h: float) -> float:
    """A step, at most h, of which the smallest bounded loss is a multiple: atoms at its ends stay where they are."""
    smallest = min(_bounded(parts).values(), default=h)
    return smallest / math.ceil(smallest / h)


def _off_lattice(parts: Parts) -> float:
    """How many losses, in the mean, lie off an aligned lattice: the ends of those that are multiples do not."""
    bounded = _bounded(parts)
    total = 0.0
    for loss, k in parts.items():
        multiple = bounded.get(loss, 0.5) / min(bounded.values(), default=1.0)
        on_lattice = loss in bounded and abs(multiple - round(multiple)) < 1e-12 * multiple
        total += k * (loss.between_ends() if on_lattice and isinstance(loss, Response | LatticeLaplace) else 1.0)
    return max(1.0, total)


def _on_fine_lattice(parts: Parts, tilt_of: Callable[[_Sum], float]) -> list[tuple[_Sum, float]]:
    """Put the losses on a lattice fine enough for the tilt in question; return them with that tilt."""
    n, off = sum(parts.values()), _off_lattice(parts)
    tail, widest = 1e-40 / n, max(1e-9, *(high - low for low, high in (loss.ends(1e-40 / n) for loss in parts)))
    h, finest = widest / 32, widest / _LONGEST
    while True:
        sums = _sums(parts, _aligned(parts, h), tail)
        tilts = [tilt_of(total) for total in sums]
        means = [total.moments(tilt) for total, tilt in zip(sums, tilts, strict=True)]
        wanted = min(_wanted(off, tilt, mean, var) for tilt, (_, mean, var) in zip(tilts, means, strict=True))
        log_tail = min(log - tilt * mean for (log, mean, _), tilt in zip(means, tilts, strict=True))
        tail = math.exp(max(-600.0, log_tail)) * 1e-9 / n
        if h <= max(4 * wanted, finest):
            final = _aligned(parts, max(min(h, wanted), finest))
            return list(zip(_sums(parts, final, tail), tilts, strict=True))
        h = max(2 * wanted, finest)


def _wanted(off: float, tilt: float, mean: float, variance: float) -> float:
    """The step at which n (λ+1) h²/8 is as small as the number of points allows."""
    window = 18 * math.sqrt(variance)
    steps = [(math.sqrt(8 * tol * max(mean, 1e-6) / (off * (tilt + 1))), window / most) for tol, most in _TOLERANCES]
    return min(max(step, coarsest) for step, coarsest in steps)


def _slack(parts: Parts, epsilon: float) -> float:
    """What total variation adds to delta: (1 + e^ε) times its sum."""
    total = sum(k * loss.slack() for loss, k in parts.items())
    return total * (1 + math.exp(min(700.0, epsilon))) if total else 0.0


def composed_delta(parts: Parts, epsilon: float) -> float:
    """Return delta(epsilon) of all losses together, rounded up."""
    tilted = _on_fine_lattice(parts, lambda total: total.tilt_for_mean(epsilon))
    worst = max(total.certain() + total.curve(tilt).delta(epsilon) for total, tilt in tilted)
    return min(1.0, worst + _slack(parts, epsilon))


def composed_epsilon(parts: Parts, delta: float) -> float:
    """Return the smallest epsilon with delta(epsilon) <= delta, rounded up; infinite if none is found."""
    certain = -math.expm1(sum(k * math.log1p(-loss.certain()) for loss, k in parts.items()))
    if delta <= certain + _slack(parts, 0.0):
        return math.inf
    variation = sum(k * loss.slack() for loss, k in parts.items())

    def solved(total: _Sum, tilt: float) -> float:
        left = delta - total.certain()
        return total.curve(tilt).epsilon(lambda e: left - variation * (1 + np.exp(np.minimum(e, 700.0))))

    return max(solved(*pair) for pair in _on_fine_lattice(parts, lambda total: total.tilt_for_delta(delta - certain)))


def moments_of(parts: Parts) -> tuple[Callable[[float], float], float]:
    """Return K(λ) = ln E e^(λ L), λ times the Rényi divergence of order λ + 1, and the mass beyond, at worst."""
    tail = 1e-60 / sum(parts.values())
    widest = max(high - low for low, high in (loss.ends(tail) for loss in parts))
    sums = _sums(parts, _aligned(parts, widest / 4000), tail)
    return lambda tilt: max(total.moments(tilt)[0] for total in sums), max(total.certain() for total in sums)
