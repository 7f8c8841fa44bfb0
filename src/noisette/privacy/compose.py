"""delta(epsilon) and epsilon(delta) of many losses together, never below the truth.

1. Each loss is put on multiples of a step h: the mass between two of them goes to both ends, such that its weight
   under P and under Q stays ("connect the dots": Doroshenko-Ghazi-Kamath-Kumar-Manurangsi 2022). That makes the pair
   easier to tell apart, so every bound from it holds, and it is exact at the multiples.
2. The masses are tilted by e^(λL), λ the saddle point for the epsilon in question, so that the sum of losses has its
   mean there; then one FFT gives the composed masses with full relative precision, be delta 1e-3 or 1e-300. Its window
   is short: what lies above is added by Chernoff's bound, what lies below can only be counted on top.
3. h is chosen so that what step 1 can have added, about n (λ+1) h²/8 in epsilon for n losses off the lattice, is below
   a relative 1e-7, or more where that would take too many points. λ and the window are found on a rough lattice first;
   where it has little mass, the fine one skips multiples.
4. A direction is left out where Chernoff's bound shows that the other one is the worse.

Why all this holds: docs/proofs/composition.md.
Vocabulary: `parts` {loss: count} · `K(λ)` = ln E e^(λ sum of losses) · `h` step · `p` masses on the lattice.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import imul
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.privacy.loss import LatticeLaplace, Loss, Response

__all__ = ["composed_delta", "composed_epsilon", "moments_of"]

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
Parts: TypeAlias = Mapping[Loss, int]

_TOLERANCES = [(1e-8, 1 << 13), (1e-7, 1 << 17), (1e-4, 1 << 62)]
"""Relative excess, up to how many points."""
_LOG_TINY = -17.0  # what is cut off, and added, is e^-17 of delta
_LOG_FAINT = -50.0  # Fourier coefficients of e^-50 are left out, and counted as lost
_OFFSETS = (-8.0, -6.0, -4.5, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0)  # of tilts, in 1/spread
_FLATTER = 5.0  # a tilt may make the FFT's noise e^5 times as large beside delta
_SOME_TAIL = 1e-255  # of all losses, until delta is known
_LEAST = 5e-324  # what underflows is above zero still
_HARDLY = 1e-250  # a bound on delta that need not be improved
_FLOAT_REACH = 600.0
_LONGEST = 1 << 21  # points of one loss
_ROUGH = 1 << 13  # points of one loss where only the tilt is looked for
_PASSES = 6


@dataclass(frozen=True)
class _Masses:
    """Finite masses at the losses index · h, and the mass `beyond` that is counted as certain to be told."""

    index: Whole
    h: float
    p: Floats
    beyond: float

    @property
    def losses(self) -> Floats:
        return np.asarray(self.index * self.h, dtype=np.float64)


class _Strides(NamedTuple):
    """How many multiples of h to go at a time: `steps[i]` from `edges[i - 1]` to `edges[i]`."""

    edges: Floats
    steps: Whole


def _on_lattice(loss: Loss, h: float, tail: float, *, reverse: bool, strides: _Strides | None = None) -> _Masses:
    reverse = reverse and not loss.symmetric
    found = loss.atoms()
    if found is not None:
        losses, p = found
        return _atoms_on_lattice(*((-losses, p * np.exp(-losses)) if reverse else (losses, p)), h, loss.certain())
    low, high = loss.ends(tail)
    if reverse:
        low, high = -high, -low
    index = _knots(math.floor(low / h), math.ceil(high / h) + 1, h, strides)
    t = np.asarray(index * h, dtype=np.float64)
    if reverse:  # the loss is -L, under Q
        up, down = loss.below(-t)[::-1], loss.above(-t)[::-1]
    else:
        up, down = loss.above(t), loss.below(t)
    p, q = (_between(a, b) for a, b in zip(up, down, strict=True))
    outer = np.clip((p - q * np.exp(np.minimum(t[:-1], 700.0))) / -np.expm1(-np.diff(t)), 0, p)
    masses = np.zeros(len(t))
    masses[:-1] += p - outer
    masses[1:] += outer
    masses[0] += down[0][0]  # what loses less loses this much
    return _trimmed(index, h, masses, loss.certain() + float(up[0][-1]))


def _knots(first: int, last: int, h: float, strides: _Strides | None) -> Whole:
    """The multiples of h, from the first to the last, at which the loss is looked at."""
    if strides is None:
        return np.arange(first, last + 1)
    edges = np.clip(np.rint(strides.edges / h), first, last).astype(np.int64)
    turns = np.flatnonzero(np.diff(strides.steps))  # runs of equal steps end here
    starts, stops = np.append(first, edges[turns]), np.append(edges[turns], last)
    steps = np.append(strides.steps[turns], strides.steps[-1])
    runs = [np.arange(*run) for run in zip(starts, stops, steps, strict=True)]
    return np.append(np.concatenate(runs), last)


def _trimmed(index: Whole, h: float, masses: Floats, beyond: float) -> _Masses:
    there = masses > 0
    return _Masses(index[there], h, masses[there], beyond)


def _between(up: Floats, down: Floats) -> Floats:
    """Masses between neighbouring points, from whichever tail is smaller."""
    return np.maximum(0.0, np.where(up[:-1] < 0.5, up[:-1] - up[1:], down[1:] - down[:-1]))


def _atoms_on_lattice(losses: Floats, p: Floats, h: float, beyond: float) -> _Masses:
    place = np.floor(losses / h).astype(np.int64)
    outer = np.clip(p * np.expm1(place * h - losses) / math.expm1(-h), 0, p)
    return _trimmed(np.append(place, place + 1), h, np.append(p - outer, outer), beyond)


@dataclass(frozen=True)
class _Sum:
    """Losses on a common lattice with their counts, in one direction."""

    masses: list[_Masses]
    counts: list[int]

    @property
    def step(self) -> float:
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
            return math.log(delta) - _log_delta(tilt, log, mean, variance), tilt * variance

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

        weights = np.split(self.tilted(tilt)[0], self._flat[2][1:])

        def product(count: int) -> NDArray[np.complex128]:
            own = ((m.index, w) for m, w, k in zip(self.masses, weights, self.counts, strict=True) if k == count)
            return reduce(imul, (rfft(np.bincount(index % size, w, minlength=size)) for index, w in own))

        return reduce(imul, (_power(product(count), count) for count in set(self.counts)))


def _log_delta(tilt: float, log: float, mean: float, variance: float) -> float:
    """ln delta at the tilted mean, nearly: the saddle-point approximation."""
    return log - tilt * mean - math.log1p(tilt * (tilt + 1) * math.sqrt(2 * math.pi * variance))


def _power(spectrum: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """The spectrum's power where it is not faint, by squaring: faster and nearer than by logarithms."""
    strong = np.flatnonzero(np.abs(spectrum) > math.exp(_LOG_FAINT / count))
    square, power = spectrum[strong], np.ones(len(strong), dtype=complex)
    for bit in reversed(f"{count:b}"):
        if bit == "1":
            power *= square
        square *= square
    result = np.zeros_like(spectrum)
    result[strong] = power
    return result


def _up(n: int) -> float:
    """A factor that covers the float rounding of n masses and of K; far below what the lattice adds."""
    return 1 + 1e-9 + n * 2.0**-46


class _Window(NamedTuple):
    """Where the sum of losses is looked at, and with which tilt; above lies e^(K(λ') - λ' high), λ' = `beyond`."""

    low: float
    high: float
    tilt: float
    beyond: float


@dataclass(frozen=True)
class _Direction:
    """One direction on a rough lattice, with the tilt in question: what is needed to choose the fine one."""

    parts: Parts
    reverse: bool
    rough: _Sum
    tilt: float

    @cached_property
    def moments(self) -> tuple[float, float, float]:
        return self.rough.moments(self.tilt)

    @property
    def log_delta(self) -> float:
        """ln delta at the tilted mean, nearly."""
        return _log_delta(self.tilt, *self.moments)

    def bound(self, epsilon: float) -> float:
        """delta(ε) <= E e^(λ(L-ε)) λ^λ / (λ+1)^(λ+1): Chernoff's bound for what exceeds ε, on the rough lattice."""
        tilt = self.rough.tilt_for_mean(epsilon)
        if not tilt:
            return 1.0
        log = self.rough.log_moment(tilt) - tilt * epsilon - tilt * math.log1p(1 / tilt) - math.log1p(tilt)
        return min(1.0, self.rough.certain + math.exp(min(0.0, log)) * _up(sum(self.parts.values())) + _LEAST)

    @cached_property
    def window(self) -> _Window:
        """The shortest window, and a tilt τ for it, with which no more than e^-17 of delta is lost or counted twice.

        The window is a circle of length W: what lies outside comes back inside. Counted above ε are then masses from
        above ε + W with e^(φ(κ) - (κ-τ)W) at most, for every κ > τ, and masses from below the window with
        e^(φ(κ) - (τ-κ)W) at most, for 0 <= κ < τ; φ(κ) = K(κ) - κε is least at the saddle point.
        """
        _, mean, variance = self.moments
        sd = max(math.sqrt(variance), self.rough.step)
        kappa = self.tilt + np.array(_OFFSETS) / sd
        phi = self.rough.log_moments(kappa) - kappa * mean - self.log_delta - _LOG_TINY
        above, beyond = min((p / k, k) for p, k in zip(phi, kappa, strict=True) if k > self.tilt)
        needed = phi + np.maximum(0.0, -kappa) * above
        usable = [i for i, k in enumerate(kappa) if i > 0 and 0 <= k <= self.tilt and phi[i] <= phi.min() + _FLATTER]

        def length(i: int) -> float:
            tilt = kappa[i]
            return float(max(min(phi[i + 1 :] / (kappa[i + 1 :] - tilt)), min(needed[:i] / (tilt - kappa[:i]))))

        best = min(usable, key=length)
        above = max(above, sd)
        return _Window(mean - max(length(best) - above, 2 * sd), mean + above, float(kappa[best]), float(beyond))

    @property
    def step(self) -> float:
        """The step at which n (λ+1) h²/8 is as small as the number of points allows."""
        width, off = self.window.high - self.window.low, _off_lattice(self.parts)
        each = max(self.moments[1], 1e-6) / (off * (self.tilt + 1))
        return min(max(math.sqrt(8 * tolerance * each), width / most) for tolerance, most in _TOLERANCES)

    def strides(self, h: float) -> list[_Strides]:
        """Steps that grow as the cube root of the tilted mass falls, which takes the fewest points."""
        edges = np.split(self.rough._flat[0], self.rough._flat[2][1:])
        weights = np.split(self.rough.tilted(self.tilt)[0], self.rough._flat[2][1:])
        return [
            _strides(t, w / _share_off(loss), h, self.rough.step)
            for loss, t, w in zip(self.parts, edges, weights, strict=True)
        ]

    def fine(self) -> _Sum:
        """The losses on the fine lattice."""
        tail = _tail(self.log_delta, self.parts)
        finest = max(_widest(self.parts, tail), self.window.high - self.window.low) / _LONGEST
        h = max(_aligned(self.parts, max(self.step, finest)), finest)
        masses = [
            _on_lattice(loss, h, tail, reverse=self.reverse, strides=strides)
            for loss, strides in zip(self.parts, self.strides(h), strict=True)
        ]
        return _Sum(masses, list(self.parts.values()))

    def curve(self) -> "_Curve":
        """Convolve everything, tilted, within the window."""
        from scipy.fft import irfft, next_fast_len

        total, (low, high, tilt, beyond) = self.fine(), self.window
        log, mean, _ = total.moments(tilt)
        start, stop = math.floor(low / total.step), math.ceil(high / total.step)
        size = next_fast_len(stop - start + 1, real=True)
        masses = np.roll(irfft(total.spectrum(tilt, size), size), -(start % size))
        up = _up(sum(total.counts))
        lost = math.exp(min(0.0, total.log_moment(beyond) - beyond * (start + size - 1) * total.step)) * up
        noise = _noise(masses, sum(total.counts))
        losses = (start + np.arange(size)) * total.step
        height = math.exp(log - tilt * mean) * up
        return _Curve(losses, np.maximum(0.0, masses) + noise, tilt, mean, height, total.certain + lost)


def _noise(masses: Floats, n: int) -> float:
    """What FFT, n-th power and the faint coefficients left out can have taken from a mass."""
    length = math.sqrt(float((masses**2).sum()))
    return math.exp(_LOG_FAINT) + (8 * math.log2(len(masses)) + 8 * n) * 2.0**-53 * length


def _strides(t: Floats, weights: Floats, h: float, rough: float) -> _Strides:
    heavier = np.maximum(np.append(weights[0], weights), np.append(weights, weights[-1]))
    most = max(1.0, rough / h)
    steps = np.clip((np.maximum(heavier, 1e-300) * len(t)) ** (-1 / 3), 1.0, most)
    return _Strides(t, np.exp2(np.floor(np.log2(steps))).astype(np.int64))


def _exps(t: Floats, rate: float) -> Floats:
    """e^(rate t) for equally spaced t: products of few exponentials."""
    block = math.isqrt(len(t)) + 1
    return np.outer(np.exp(rate * t[::block]), np.exp(rate * (t[:block] - t[0]))).ravel()[: len(t)]


def _sums_from(terms: Floats) -> Floats:
    """The sums from each term on, and the empty one."""
    sums = np.zeros(len(terms) + 1)
    np.cumsum(terms[::-1], out=sums[-2::-1])
    return sums


class _Curve:
    """delta(ε) near the tilted mean c: e^(K - λc) sum over s > ε of m(s) e^(-λ(s - c)) (1 - e^(ε - s)).

    With A and B the sums of m(s) e^(-λ(s-c)) and m(s) e^(-(λ+1)(s-c)) from a lattice point on, it is A - e^(ε-c) B.
    """

    def __init__(
        self, losses: Floats, masses: Floats, tilt: float, centre: float, height: float, certain: float
    ) -> None:
        self.centre, self.height, self.certain = centre, height, certain
        first = int(np.searchsorted(losses, centre - _FLOAT_REACH / (tilt + 1)))  # below, sums would leave the floats
        self.losses = losses[first:]
        over = self.losses - centre
        terms = masses[first:] * _exps(over, -tilt)
        self.a = _sums_from(terms)
        self.b = _sums_from(terms * _exps(over, -1.0))
        self.up = 1 + (len(losses) + 1000) * 2.0**-52  # covers the rounding of both sums

    def delta(self, epsilon: float) -> float:
        """delta(ε), and 1 below the window."""
        if epsilon < self.losses[0]:
            return 1.0
        return self._delta(epsilon, int(np.searchsorted(self.losses, epsilon, side="right")))

    def _delta(self, epsilon: float, first: int) -> float:
        """delta(ε) where `first` is the first lattice point above ε, with what was lost or rounded."""
        a, b = float(self.a[first]), float(self.b[first])
        found = a * self.up - math.exp(min(epsilon - self.centre, _FLOAT_REACH)) * b
        return self.height * max(0.0, found) + self.certain

    def epsilon(self, delta: float) -> float:
        """The smallest ε >= 0 in the window with delta(ε) <= delta; infinite if there is none."""
        bottom = max(0.0, float(self.losses[0]))
        if self.delta(bottom) <= delta:
            return bottom
        if self.certain >= delta:
            return math.inf
        first = bisect_left(self.losses, True, key=lambda s: self.delta(s) <= delta)
        above, a, b = float(self.losses[first]), float(self.a[first]), float(self.b[first])
        rest = a * self.up - (delta - self.certain) / self.height  # e^(ε-c) B, between the last point and this one
        return min(above, self.centre + math.log(rest / b) + (1 + above) * 1e-14) if rest > 0 < b else above


def _sum(parts: Parts, h: float, tail: float, *, reverse: bool) -> _Sum:
    return _Sum([_on_lattice(loss, h, tail, reverse=reverse) for loss in parts], list(parts.values()))


def _tail(log_delta: float, parts: Parts) -> float:
    """What one loss may have beyond its ends, to be counted as certain."""
    return math.exp(max(-600.0, log_delta + _LOG_TINY)) / sum(parts.values())


def _widest(parts: Parts, tail: float) -> float:
    return max(1e-9, *(high - low for low, high in (loss.ends(tail) for loss in parts)))


def _bounded(parts: Parts) -> dict[Loss, float]:
    return {loss: float(loss.epsilon) for loss in parts if isinstance(loss, Response | LatticeLaplace) and loss.epsilon}


def _aligned(parts: Parts, h: float) -> float:
    """A step, at most h, of which the smallest bounded loss is a multiple: atoms at its ends stay where they are."""
    smallest = min(_bounded(parts).values(), default=h)
    return smallest / math.ceil(smallest / h)


def _share_off(loss: Loss) -> float:
    """The share of a loss that lies off a lattice aligned with its ends."""
    return max(1e-6, loss.between_ends()) if isinstance(loss, Response | LatticeLaplace) else 1.0


def _off_lattice(parts: Parts) -> float:
    """How many losses, in the mean, lie off an aligned lattice: the ends of those that are multiples do not."""
    bounded = _bounded(parts)
    total = 0.0
    for loss, k in parts.items():
        multiple = bounded.get(loss, 0.5) / min(bounded.values(), default=1.0)
        on_lattice = loss in bounded and abs(multiple - round(multiple)) < 1e-12 * multiple
        total += k * (_share_off(loss) if on_lattice else 1.0)
    return max(1.0, total)


def _directions(parts: Parts, tilt_of: Callable[[_Sum], float]) -> list[_Direction]:
    return [_roughly(parts, tilt_of, reverse=reverse) for reverse in _both(parts)]


def _both(parts: Parts) -> list[bool]:
    """Forth, and back where that is not the same."""
    return [False] if all(loss.symmetric for loss in parts) else [False, True]


def _roughly(parts: Parts, tilt_of: Callable[[_Sum], float], *, reverse: bool) -> _Direction:
    """Put the losses on a lattice fine enough to tell the tilt: it moves the mean by a tenth of its spread at most."""
    off, tail = _off_lattice(parts), _SOME_TAIL / sum(parts.values())
    wide = _widest(parts, tail)
    h = wide / 128
    for _ in range(_PASSES):
        total = _sum(parts, max(_aligned(parts, h), wide / _ROUGH), tail, reverse=reverse)
        tilt = tilt_of(total)
        log, mean, variance = total.moments(tilt)
        tail = _tail(_log_delta(tilt, log, mean, variance), parts)
        before, wide = wide, _widest(parts, tail)
        enough = max(wide / _ROUGH, math.sqrt(math.sqrt(variance) / (off * (2 * tilt + 1))))
        if h <= enough and 0.9 < wide / before < 1.1:
            break
        h = min(h, wide / 64, enough)
    return _Direction(parts, reverse, total, tilt)


def composed_delta(parts: Parts, epsilon: float) -> float:
    """Return delta(epsilon) of all losses together, rounded up."""
    worst = 0.0
    for direction in sorted(_directions(parts, lambda total: total.tilt_for_mean(epsilon)), key=lambda d: -d.log_delta):
        bound = direction.bound(epsilon)
        if bound > worst:
            worst = max(worst, min(bound, direction.curve().delta(epsilon)) if bound > _HARDLY else bound)
    return worst


def composed_epsilon(parts: Parts, delta: float) -> float:
    """Return the smallest epsilon with delta(epsilon) <= delta, rounded up; infinite if none is found."""
    certain = -math.expm1(sum(k * math.log1p(-loss.certain()) for loss, k in parts.items()))
    if delta <= certain:
        return math.inf
    found = _directions(parts, lambda total: total.tilt_for_delta(delta - certain))
    worst = 0.0
    for direction in sorted(found, key=lambda d: -d.moments[1]):
        if not worst or direction.bound(worst) > delta:
            worst = max(worst, direction.curve().epsilon(delta))
    return worst


def moments_of(parts: Parts) -> tuple[Callable[[float], float], float]:
    """Return K(λ) = ln E e^(λ L), λ times the Rényi divergence of order λ + 1, and the mass beyond, at worst."""
    tail = 1e-60 / sum(parts.values())
    h = _aligned(parts, _widest(parts, tail) / 4000)
    sums = [_sum(parts, h, tail, reverse=reverse) for reverse in _both(parts)]
    return lambda tilt: max(total.log_moment(tilt) for total in sums), max(total.certain for total in sums)
