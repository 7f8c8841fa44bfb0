"""delta(ε) and ε(delta) from the tilted masses of a sum of losses, within a window."""

import math
from bisect import bisect_left

import numpy as np

from noisette.privacy.pld.lattice import Floats

__all__ = ["Curve"]

_FLOAT_REACH = 600.0


class Curve:
    """delta(ε) near the tilted mean c: e^(K - λc) sum over s > ε of m(s) e^(-λ(s - c)) (1 - e^(ε - s)).

    With A and B the sums of m(s) e^(-λ(s-c)) and m(s) e^(-(λ+1)(s-c)) from a lattice point on, it is A - e^(ε-c) B.
    """

    def __init__(
        self, losses: Floats, masses: Floats, tilt: float, centre: float, height: float, certain: float
    ) -> None:
        first = int(np.searchsorted(losses, centre - _FLOAT_REACH / (tilt + 1)))  # below, sums would leave the floats
        if first == len(losses):  # the lattice is too coarse for so small a delta: nothing is known
            first, centre, masses, certain = first - 1, float(losses[-1]), np.zeros_like(masses), 1.0
        self.centre, self.height, self.certain = centre, height, certain
        self.losses = losses[first:]
        over = self.losses - centre
        terms = masses[first:] * _exps(over, -tilt)
        self.a = _sums_from(terms)
        self.b = _sums_from(terms * _exps(over, -1.0))
        self.up = 1 + (len(losses) + 1000) * 2.0**-52  # covers the rounding of both sums

    def delta_at(self, epsilon: float) -> float:
        """delta(ε), and 1 below the window."""
        if epsilon < self.losses[0]:
            return 1.0
        return self._delta(epsilon, int(np.searchsorted(self.losses, epsilon, side="right")))

    def _delta(self, epsilon: float, first: int) -> float:
        """delta(ε) where `first` is the first lattice point above ε, with what was lost or rounded."""
        a, b = float(self.a[first]), float(self.b[first])
        found = a * self.up - math.exp(min(epsilon - self.centre, _FLOAT_REACH)) * b
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
    """e^(rate t) for equally spaced t: products of few exponentials."""
    block = math.isqrt(len(t)) + 1
    return np.outer(np.exp(rate * t[::block]), np.exp(rate * (t[:block] - t[0]))).ravel()[: len(t)]


def _sums_from(terms: Floats) -> Floats:
    """The sums from each term on, and the empty one."""
    sums = np.zeros(len(terms) + 1)
    np.cumsum(terms[::-1], out=sums[-2::-1])
    return sums
