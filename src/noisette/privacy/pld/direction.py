"""One direction of a composition, P to Q or back: which window, which lattice, and the curve they give.

λ and the window are found on a rough lattice; the fine one skips multiples where the rough one has little mass.
Vocabulary: `parts` {loss: count} · `K(λ)` = ln E e^(λ sum of losses) · `h` step.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from noisette.privacy.pld.curve import Curve
from noisette.privacy.pld.lattice import Floats, Strides, on_lattice
from noisette.privacy.pld.parts import LOG_TINY, Parts, aligned, off_lattice, share_off, tail_of, widest
from noisette.privacy.pld.tilted import LOG_FAINT, LossSum, log_delta_near

__all__ = ["Direction"]

_TOLERANCES = [(1e-8, 1 << 13), (1e-7, 1 << 17), (1e-4, 1 << 62)]
"""Relative excess, up to how many points."""
_OFFSETS = (-8.0, -6.0, -4.5, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0)  # of tilts, in 1/spread
_FLATTER = 5.0  # a tilt may make the FFT's noise e^5 times as large beside delta
_LEAST = 5e-324  # what underflows is above zero still
_LONGEST = 1 << 21  # points of one loss
_FURTHEST = 1e6  # an epsilon beyond it says nothing


class Window(NamedTuple):
    """Where the sum of losses is looked at, and with which tilt; above lies e^(K(λ') - λ' high), λ' = `beyond`."""

    low: float
    high: float
    tilt: float
    beyond: float


@dataclass(frozen=True)
class Direction:
    """One direction on a rough lattice, with the tilt in question: what is needed to choose the fine one."""

    parts: Parts
    reverse: bool
    rough: LossSum
    tilt: float

    @cached_property
    def moments(self) -> tuple[float, float, float]:
        """K(λ), K'(λ), K''(λ) at the tilt."""
        return self.rough.moments(self.tilt)

    @property
    def log_delta(self) -> float:
        """ln delta at the tilted mean, nearly."""
        return log_delta_near(self.tilt, *self.moments)

    def bound(self, epsilon: float) -> float:
        """delta(ε) <= E e^(λ(L-ε)) λ^λ / (λ+1)^(λ+1): Chernoff's bound for what exceeds ε, on the rough lattice."""
        tilt = self.rough.tilt_for_mean(epsilon)
        if not tilt:
            return 1.0
        log = self.rough.log_moment(tilt) - tilt * epsilon - tilt * math.log1p(1 / tilt) - math.log1p(tilt)
        return min(1.0, self.rough.certain + math.exp(min(0.0, log)) * _rounding(sum(self.parts.values())) + _LEAST)

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε with delta(ε) <= delta; by Chernoff's bound where losses are too far apart for one lattice."""
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
        """The shortest window, and a tilt τ for it, with which no more than e^-17 of delta is lost or counted twice.

        The window is a circle of length W: what lies outside comes back inside. Counted above ε are then masses from
        above ε + W with e^(φ(κ) - (κ-τ)W) at most, for every κ > τ, and masses from below the window with
        e^(φ(κ) - (τ-κ)W) at most, for 0 <= κ < τ; φ(κ) = K(κ) - κε is least at the saddle point.
        """
        _, mean, variance = self.moments
        sd = max(math.sqrt(variance), self.rough.step)
        kappa = self.tilt + np.array(_OFFSETS) / sd
        phi = self.rough.log_moments(kappa) - kappa * mean - self.log_delta - LOG_TINY
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
        """The step at which n (λ+1) h²/8 is as small as the number of points allows."""
        width, off = self.window.high - self.window.low, off_lattice(self.parts)
        each = max(self.moments[1], 1e-6) / (off * (self.tilt + 1))
        return min(max(math.sqrt(8 * tolerance * each), width / most) for tolerance, most in _TOLERANCES)

    def strides(self, h: float) -> list[Strides]:
        """Steps that grow as the cube root of the tilted mass falls, which takes the fewest points."""
        apart = zip(self.parts, self.rough.apart(self.tilt), strict=True)
        return [_strides(t, w / share_off(loss), h, self.rough.step) for loss, (t, w) in apart]

    def fine(self) -> LossSum:
        """The losses on the fine lattice."""
        tail = tail_of(self.log_delta, self.parts)
        finest = max(widest(self.parts, tail), self.window.high - self.window.low) / _LONGEST
        h = max(aligned(self.parts, max(self.step, finest)), finest)
        masses = [
            on_lattice(loss, h, tail, reverse=self.reverse, strides=strides)
            for loss, strides in zip(self.parts, self.strides(h), strict=True)
        ]
        return LossSum(masses, list(self.parts.values()))

    def curve(self) -> Curve:
        """Convolve everything, tilted, within the window."""
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
    """What FFT, n-th power and the faint coefficients left out can have taken from a mass."""
    length = math.sqrt(float((masses**2).sum()))
    return math.exp(LOG_FAINT) + (8 * math.log2(len(masses)) + 8 * n) * 2.0**-53 * length


def _strides(t: Floats, weights: Floats, h: float, rough: float) -> Strides:
    heavier = np.maximum(np.append(weights[0], weights), np.append(weights, weights[-1]))
    most = max(1.0, rough / h)
    steps = np.clip((np.maximum(heavier, 1e-300) * len(t)) ** (-1 / 3), 1.0, most)
    return Strides(t, np.exp2(np.floor(np.log2(steps))).astype(np.int64))
