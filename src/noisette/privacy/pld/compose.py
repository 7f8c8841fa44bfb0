"""delta(epsilon) and epsilon(delta) of many losses composed on a lattice, never below the truth.

1. Each loss is put on multiples of a step h such that the new pair dominates the old one (`discretize`).
2. The masses are tilted by e^(λL), λ the saddle point for the epsilon in question, and convolved by one FFT within a
   short window. What lies above the window is added by Chernoff's bound; what lies below it can only be counted twice,
   which is safe (`convolve`).
3. h is chosen so that step 1 adds at most a relative 1e-7 to epsilon, about n (λ+1) h²/8 for n losses off the lattice;
   more where that would take too many points. λ and the window come from a coarse lattice; where the coarse lattice
   has little mass, the fine one skips multiples (`Direction`).
4. P against Q and Q against P are two directions. One is left out where Chernoff's bound shows that the other is worse.

Proofs: docs/proofs/composition.md
Vocabulary: `parts` {loss: count} · `K(λ)` = ln E e^(λ sum of losses) · `h` step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from noisette.privacy.pld.convolve import LOG_FAINT, Curve, LossSum, log_delta_near
from noisette.privacy.pld.discretize import (
    LOG_TINY,
    Parts,
    Strides,
    aligned,
    off_lattice,
    on_lattice,
    share_off,
    tail_of,
    widest,
)
from noisette.privacy.pld.loss import Floats, at_least_one

__all__ = ["composed_delta", "composed_epsilon", "moments_of"]

_FIRST_TAIL = 1e-255  # of all losses, until delta is known
_NEGLIGIBLE = 1e-250  # a bound on delta that need not be improved
_COARSE_POINTS = 1 << 13  # of one loss where only the tilt is wanted
_PASSES = 6
_TOLERANCES = [(1e-8, 1 << 13), (1e-7, 1 << 17), (1e-4, 1 << 62)]
"""(relative excess of epsilon, largest number of points for which it is aimed at)."""
_OFFSETS = (-8.0, -6.0, -4.5, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0)  # of tilts, in 1/spread
_FLATTER = 5.0  # a tilt may raise the rounding error of the FFT, relative to delta, by e^5
_LEAST = 5e-324  # the smallest float above zero
_LONGEST = 1 << 20  # points of one loss
_WIDE, _ENOUGH = 1e4, 1 << 17  # an epsilon of thousands promises nothing: fewer points tell as much
_FURTHEST = 1e6  # an epsilon beyond it promises nothing


def composed_delta(parts: Parts, epsilon: float) -> float:
    """Return delta(epsilon) of all losses composed, rounded up."""
    worst = 0.0
    for direction in sorted(_directions(parts, lambda total: total.tilt_for_mean(epsilon)), key=lambda d: -d.log_delta):
        bound = direction.bound(epsilon)
        if bound > worst:
            worst = max(worst, min(bound, direction.curve().delta_at(epsilon)) if bound > _NEGLIGIBLE else bound)
    return worst


def composed_epsilon(parts: Parts, delta: float) -> float:
    """Return the smallest epsilon with delta(epsilon) <= delta, rounded up; infinite if none is found."""
    certain = at_least_one((loss.certain(), k) for loss, k in parts.items())
    if delta <= certain:
        return math.inf
    found = _directions(parts, lambda total: total.tilt_for_delta(delta - certain))
    worst = 0.0
    for direction in sorted(found, key=lambda d: -d.moments[1]):
        if not worst or direction.bound(worst) > delta:
            worst = max(worst, direction.epsilon_at(delta))
    return worst


def moments_of(parts: Parts) -> tuple[Callable[[float], float], float]:
    """Return K(λ) = ln E e^(λ L), which is λ times the Rényi divergence of order λ + 1, and the mass cut off."""
    tail = 1e-60 / sum(parts.values())
    wide = widest(parts, tail)
    h = max(aligned(parts, wide / 4000), wide / _LONGEST)  # a tiny loss beside large ones is not aligned
    sums = [_sum(parts, h, tail, reverse=reverse) for reverse in _reverses(parts)]
    return lambda tilt: max(total.log_moment(tilt) for total in sums), max(total.certain for total in sums)


def _directions(parts: Parts, tilt_of: Callable[[LossSum], float]) -> list[Direction]:
    return [_coarse_direction(parts, tilt_of, reverse=reverse) for reverse in _reverses(parts)]


def _reverses(parts: Parts) -> list[bool]:
    """The directions (reverse or not) to compute: one suffices where all losses are symmetric."""
    return [False] if all(loss.symmetric for loss in parts) else [False, True]


def _coarse_direction(parts: Parts, tilt_of: Callable[[LossSum], float], *, reverse: bool) -> Direction:
    """Put the losses on a lattice just fine enough to find the tilt: the mean is off by a tenth of its spread."""
    off, tail = off_lattice(parts), _FIRST_TAIL / sum(parts.values())
    wide = widest(parts, tail)
    h = wide / 128
    for _ in range(_PASSES):
        total = _sum(parts, max(aligned(parts, h), wide / _COARSE_POINTS), tail, reverse=reverse)
        tilt = tilt_of(total)
        log, mean, variance = total.moments(tilt)
        tail = tail_of(log_delta_near(tilt, log, mean, variance), parts)
        before, wide = wide, widest(parts, tail)
        enough = max(wide / _COARSE_POINTS, math.sqrt(math.sqrt(variance) / (off * (2 * tilt + 1))))
        if h <= enough and 0.9 < wide / before < 1.1:
            break
        h = min(h, wide / 64, enough)
    return Direction(parts, reverse, total, tilt)


def _sum(parts: Parts, h: float, tail: float, *, reverse: bool) -> LossSum:
    return LossSum([on_lattice(loss, h, tail, reverse=reverse) for loss in parts], list(parts.values()))


# One direction


class Window(NamedTuple):
    """The range of the sum that is computed, and its tilt; above it lies e^(K(λ') - λ' high), λ' = `beyond`."""

    low: float
    high: float
    tilt: float
    beyond: float


@dataclass(frozen=True)
class Direction:
    """One direction, P to Q or back: a coarse lattice and a tilt, from which window, fine lattice and curve follow."""

    parts: Parts
    reverse: bool
    coarse: LossSum
    tilt: float

    @cached_property
    def moments(self) -> tuple[float, float, float]:
        """K(λ), K'(λ), K''(λ) at the tilt."""
        return self.coarse.moments(self.tilt)

    @property
    def log_delta(self) -> float:
        """ln delta at the tilted mean, approximately."""
        return log_delta_near(self.tilt, *self.moments)

    def bound(self, epsilon: float) -> float:
        """delta(ε) <= E e^(λ(L-ε)) λ^λ / (λ+1)^(λ+1): Chernoff's bound, on the coarse lattice."""
        tilt = self.coarse.tilt_for_mean(epsilon)
        if not tilt:
            return 1.0
        log = self.coarse.log_moment(tilt) - tilt * epsilon - tilt * math.log1p(1 / tilt) - math.log1p(tilt)
        return min(1.0, self.coarse.certain + math.exp(min(0.0, log)) * _rounding(sum(self.parts.values())) + _LEAST)

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε with delta(ε) <= delta; by Chernoff's bound where one lattice cannot hold all losses."""
        found = self.curve().epsilon_at(delta)
        return found if found < math.inf else self._bounded_epsilon(delta)

    def _bounded_epsilon(self, delta: float) -> float:
        low, high = 0.0, 1.0
        while self.bound(high) > delta:
            low, high = high, 2 * high
            if high > _FURTHEST:
                return math.inf
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.bound(middle) > delta else (low, middle)
        return high

    @cached_property
    def window(self) -> Window:
        """The shortest window, and a tilt τ for it, such that at most e^-17 of delta is lost or counted twice.

        The FFT is cyclic with period W, so masses outside the window fold back into it. Those counted above ε come from
        above ε + W, at most e^(φ(κ) - (κ-τ)W) for every κ > τ, and from below the window, at most
        e^(φ(κ) - (τ-κ)W) for 0 <= κ < τ; φ(κ) = K(κ) - κε is least at the saddle point.
        """
        _, mean, variance = self.moments
        sd = max(math.sqrt(variance), self.coarse.step)
        kappa = self.tilt + np.array(_OFFSETS) / sd
        phi = self.coarse.log_moments(kappa) - kappa * mean - self.log_delta - LOG_TINY
        above, beyond = min((p / k, k) for p, k in zip(phi, kappa, strict=True) if k > self.tilt)
        needed = phi + np.maximum(0.0, -kappa) * above
        usable = [i for i, k in enumerate(kappa) if i > 0 and 0 <= k <= self.tilt and phi[i] <= phi.min() + _FLATTER]

        def length(i: int) -> float:
            tilt = kappa[i]
            return float(max(min(phi[i + 1 :] / (kappa[i + 1 :] - tilt)), min(needed[:i] / (tilt - kappa[:i]))))

        best = min(usable, key=length)
        above = max(above, sd)
        return Window(mean - max(length(best) - above, 2 * sd), mean + above, float(kappa[best]), float(beyond))

    @property
    def step(self) -> float:
        """The step h for which n (λ+1) h²/8 is as small as the number of points allows."""
        width, off = self.window.high - self.window.low, off_lattice(self.parts)
        each = max(self.moments[1], 1e-6) / (off * (self.tilt + 1))
        return min(max(math.sqrt(8 * tolerance * each), width / most) for tolerance, most in _TOLERANCES)

    def strides(self, h: float) -> list[Strides]:
        """Distances of lattice points that grow as the tilted mass^(-1/3): that takes the fewest points."""
        apart = zip(self.parts, self.coarse.apart(self.tilt), strict=True)
        return [_strides(t, w / share_off(loss), h, self.coarse.step) for loss, (t, w) in apart]

    def fine(self) -> LossSum:
        """The losses on the fine lattice."""
        tail = tail_of(self.log_delta, self.parts)
        width = max(widest(self.parts, tail), self.window.high - self.window.low)
        finest = width / (_LONGEST if width < _WIDE else _ENOUGH)
        h = max(aligned(self.parts, max(self.step, finest)), finest)
        masses = [
            on_lattice(loss, h, tail, reverse=self.reverse, strides=strides)
            for loss, strides in zip(self.parts, self.strides(h), strict=True)
        ]
        return LossSum(masses, list(self.parts.values()))

    def curve(self) -> Curve:
        """The curve delta(ε): the tilted masses convolved within the window."""
        from scipy.fft import irfft, next_fast_len

        total, (low, high, tilt, beyond) = self.fine(), self.window
        log, mean, _ = total.moments(tilt)
        start, stop = math.floor(low / total.step), math.ceil(high / total.step)
        size = next_fast_len(stop - start + 1, real=True)
        masses = np.roll(irfft(total.spectrum(tilt, size), size), -(start % size))
        up = _rounding(sum(total.counts))
        lost = math.exp(min(0.0, total.log_moment(beyond) - beyond * (start + size - 1) * total.step)) * up
        noise = _noise(masses, sum(total.counts))
        losses = (start + np.arange(size)) * total.step
        height = math.exp(log - tilt * mean) * up
        return Curve(losses, np.maximum(0.0, masses) + noise, tilt, mean, height, total.certain + lost)


def _rounding(n: int) -> float:
    """A factor that covers the float rounding of n masses and of K; far below what the lattice adds."""
    return 1 + 1e-9 + n * 2.0**-46


def _noise(masses: Floats, n: int) -> float:
    """The largest error of one mass from the FFT, its n-th power and the faint coefficients left out."""
    length = math.sqrt(float((masses**2).sum()))
    return math.exp(LOG_FAINT) + (8 * math.log2(len(masses)) + 8 * n) * 2.0**-53 * length


def _strides(t: Floats, weights: Floats, h: float, coarse: float) -> Strides:
    heavier = np.maximum(np.append(weights[0], weights), np.append(weights, weights[-1]))
    most = max(1.0, coarse / h)
    steps = np.clip((np.maximum(heavier, 1e-300) * len(t)) ** (-1 / 3), 1.0, most)
    return Strides(t, np.exp2(np.floor(np.log2(steps))).astype(np.int64))
