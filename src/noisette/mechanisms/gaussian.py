"""The Gaussian mechanism: discrete Gaussian noise on a grid, calibrated by its own delta or by zCDP.

At l2 distance d it is ((d + grid)^2 / (2 sigma^2))-zCDP, in any dimension.   [Canonne-Kamath-Steinke 2020, Theorem 4]
Its delta(epsilon) is the best of three bounds that hold (proof note: docs/proofs/gaussian.md):
 1. for one whole number it is the exact sum over the integers (CKS20, Theorem 7);
 2. for any answer it is at most the analytic curve of continuous noise (Balle-Wang 2018) plus what separates discrete
    from rounded continuous noise, (1 + e^epsilon) n / (8 s^2) for n coordinates with s = sigma / step;
 3. what zCDP implies.
The classical sqrt(2 ln(1.25/delta))/epsilon is never used: it is loose below epsilon 1 and false far above.

When: many numbers that one person can move together, composed releases, or wherever a delta is acceptable; from about
nine composed counts on it needs less noise than Laplace.
Textbook: Smith, Laplace and its l2 variants (erratum E1).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, nearest_float, positive
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_up, sqrt_up
from noisette.laws import DiscreteGaussian
from noisette.mechanisms import mechanism as base
from noisette.mechanisms.answers import release_integers, release_reals
from noisette.mechanisms.lattice import OnLattice
from noisette.mechanisms.mechanism import Distance
from noisette.privacy import ZCDP, Approx, Promise, Pure
from noisette.privacy.convert import gaussian_delta, zcdp_delta
from noisette.privacy.guarantee import once
from noisette.privacy.loss import LatticeNormal, Loss, Normal
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Gaussian"]

_GRID_BITS = 36  # finer than for Laplace noise: what separates discrete from continuous noise falls with its square
_NEAR = Fraction(1, 2**40)  # a total variation that may be added to delta instead of falling back on zCDP
_ROOM = [Fraction(0), *(Fraction(1, 10**k) for k in range(10, 6, -1))]  # composition counts a fine lattice less finely
_SUMMABLE = 2**16  # up to this sigma (in grid units) delta is summed over the integers


@dataclass(frozen=True)
class Gaussian(OnLattice):
    """Real numbers plus Gaussian noise on a fine grid; with `grid=1`, whole numbers plus whole noise.

    >>> m = Gaussian(10)
    >>> round(m.interval(0.95), 3), round(float(m.guarantee(1).rho), 6), m.delta(1) < 1e-15
    (19.6, 0.005, True)
    """

    sigma: Fraction
    grid: Fraction
    norm: ClassVar[float] = 2

    def __init__(self, sigma: Number, *, grid: Number | None = None) -> None:
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))
        object.__setattr__(self, "grid", base.read_grid(grid, self.sigma, bits=_GRID_BITS))

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, grid: Number | None = None) -> "Gaussian":
        """Return the least noise that keeps an (epsilon, delta) or zCDP guarantee, rounded up."""
        base.agreed(guarantee, sensitivity)
        size = base.read_sensitivity(sensitivity, cls.norm)
        match guarantee:
            case Pure() | Approx(delta0=0):
                raise InputError("Gaussian noise keeps no pure guarantee: ask for Approx(epsilon, delta) or ZCDP(rho).")
            case ZCDP():
                rho = positive(guarantee.rho, "rho")
                step = base.read_grid(grid, size, bits=_GRID_BITS)
                return cls(sqrt_up((size + base.slack(step)) ** 2 / (2 * rho)), grid=step)
            case Approx():
                step = base.read_grid(grid, size, bits=_GRID_BITS)
                return _least_sigma(guarantee, sensitivity, size, step)

    @property
    def law(self) -> DiscreteGaussian:
        """The law of the noise on a single number, in grid units."""
        return DiscreteGaussian((self.sigma / self.grid) ** 2)

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Any:
        """Release a private version of one number or an array of them."""

        def noise(step: Fraction, shape: tuple[int, ...] | None) -> Any:
            return DiscreteGaussian((self.sigma / step) ** 2).sample(shape, rng)

        return release_integers(x, noise) if self.grid == 1 else release_reals(x, self.grid, self.norm, noise)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return ZCDP((distance + grid)^2 / (2 sigma^2)); with grid = 1, ZCDP(distance^2 / (2 sigma^2))."""
        d, neighbours = base.read_distance(distance, self.norm)
        square = self._squared(distance, d)
        return ZCDP(square / (2 * self.sigma**2), neighbours=neighbours, ledger=once(self._loss(distance, square)))

    def _loss(self, distance: Distance, square: Fraction) -> Loss | None:
        """What is known beyond zCDP: the loss of one whole number, or that of continuous noise and how near it is."""
        if not square:
            return None
        if (shift := self._single_shift(distance, square)) and self.sigma <= _SUMMABLE:
            return LatticeNormal(self.sigma**2, shift)
        variation = self._cells(square) * (self.grid / self.sigma) ** 2 / 8
        return Normal(sqrt_up(square) / self.sigma, variation) if variation <= _NEAR else None

    def _cells(self, square: Fraction) -> Fraction:
        """In how many places, weighed by their steps, answers differ (proof note)."""
        return square if self.grid == 1 else Fraction(1)

    def _squared(self, distance: Distance, d: Fraction) -> Fraction:
        if self.grid == 1 and isinstance(distance, Sensitivity):
            return distance.l2_squared
        return (d + base.slack(self.grid)) ** 2 if d else d

    def delta(self, epsilon: Number, distance: Distance = 1) -> float:
        """Return the smallest delta known for which (epsilon, delta)-DP holds at that distance, rounded up."""
        e = fraction(epsilon, "epsilon")
        d, _ = base.read_distance(distance, self.norm)
        if e < 0:
            raise InputError("epsilon must be at least 0.")
        if not d:
            return 0.0
        square = self._squared(distance, d)
        bounds = [zcdp_delta(square / (2 * self.sigma**2), e), self._smooth_delta(e, square)]
        if (shift := self._single_shift(distance, square)) and self.sigma <= _SUMMABLE:
            bounds.append(_summed_delta(self.sigma**2, shift, e))
        return min(bounds)

    def _single_shift(self, distance: Distance, square: Fraction) -> int | None:
        """How far a single whole number moves, if the distance says that only one does."""
        if self.grid != 1:
            return None
        if isinstance(distance, Sensitivity) and distance.l0 == 1:
            return math.floor(distance.linf)
        return 1 if 1 <= square < 2 else None

    def _smooth_delta(self, e: Fraction, square: Fraction) -> float:
        """The analytic curve plus the total variation between rounded and discrete Gaussians (proof note)."""
        extra = (1 + exp_up(e)) * self._cells(square) * (self.grid / self.sigma) ** 2 / 8
        smooth = Fraction(gaussian_delta(sqrt_up(square) / self.sigma, e))
        return min(1.0, nearest_float(smooth + extra, up=True))

    def epsilon(self, delta: Number, distance: Distance = 1) -> float:
        """Return the smallest epsilon known for which (epsilon, delta)-DP holds at that distance, rounded up."""
        target = positive(delta, "delta")
        if Fraction(self.delta(0, distance)) <= target:
            return 0.0
        low, high = 0.0, min(10.0**6, self.guarantee(distance).epsilon(target))
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if Fraction(self.delta(middle, distance)) <= target else (middle, high)
        return high


def _summed_delta(s2: Fraction, shift: int, e: Fraction) -> float:
    """sum over y of (P(y) - e^e P(y + shift))_+, rounded up: the exact delta(e) for one whole number.

    P(y + k)/P(y) = e^(-(2ky + k^2)/(2 s2)), so the positive terms are those with y > e s2/k - k/2.
    [Canonne-Kamath-Steinke 2020, Theorem 7]
    """
    if not shift:
        return 0.0
    first = math.floor(e * s2 / shift - Fraction(shift, 2)) + 1
    reach = math.ceil(40 * math.sqrt(s2)) + 40
    y = np.arange(max(first, -reach), max(first, 0) + reach)
    loss = ((2 * shift * y + shift * shift) / float(2 * s2)) - float(e)
    terms = DiscreteGaussian(s2).pmf(y) * -np.expm1(-np.maximum(loss, 0))
    return min(1.0, math.fsum(terms) * (1 + 1e-9) + 1e-300)


def _least_sigma(promise: Approx, sensitivity: Distance, size: Fraction, step: Fraction) -> Gaussian:
    """Bisect for the least sigma whose delta(epsilon) keeps the promise."""

    def made(sigma: Fraction) -> Gaussian:
        return Gaussian(sigma, grid=step)

    def keeps(sigma: Fraction) -> bool:
        return Fraction(made(sigma).delta(promise.eps, sensitivity)) <= promise.delta0

    high = size
    while not keeps(high):
        high *= 2
    low = high / 2
    while low > step and keeps(low):
        low, high = low / 2, low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return next((m for room in _ROOM if (m := made(high * (1 + room))).guarantee(sensitivity) <= promise), made(high))


examples = [Gaussian(1, grid=1), Gaussian(4, grid=1), Gaussian("1/2", grid="1/16"), Gaussian(2, grid="1/10")]
