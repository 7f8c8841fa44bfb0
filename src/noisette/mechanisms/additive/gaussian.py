"""The Gaussian mechanism: discrete Gaussian noise on a grid, calibrated by its own delta or by zCDP.

At l2 distance d it is ((d + grid)^2 / (2 sigma^2))-zCDP, in any dimension.   [Canonne-Kamath-Steinke 2020, Theorem 4]
Its delta(epsilon) is the best of three bounds that hold (proof note: docs/proofs/gaussian.md):
 1. for whole numbers (`grid=1`) it is the exact sum over the integers, for the worst vector by which they may move
    (CKS20, Theorem 7, for one number);
 2. for any answer it is at most the analytic curve of continuous noise (Balle-Wang 2018) plus what separates discrete
    from rounded continuous noise, (1 + e^epsilon) n / (8 s^2) for n coordinates with s = sigma / step;
 3. what zCDP implies.
The classical sqrt(2 ln(1.25/delta))/epsilon is never used: it is loose below epsilon 1 and false far above.

When: many numbers that one person can move together, composed releases, or wherever a delta is acceptable; from about
nine composed counts on it needs less noise than Laplace.
Textbook: Smith, noise for an l2 sensitivity, which must be Gaussian: with Laplace noise the loss is sqrt(d) epsilon.
"""

import math
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, default, frozen, readable, set_fields
from noisette.exact.number import Number, floor_log2, fraction, nearest_float, positive
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_up, sqrt_up
from noisette.laws import DiscreteGaussian
from noisette.mechanisms import calibration as base
from noisette.mechanisms.additive.lattice import OnLattice, drawable, release_integers, release_reals
from noisette.mechanisms.contract import Distance
from noisette.privacy import ZCDP, Approx, Promise, Pure
from noisette.privacy.convert import gaussian_delta, gaussian_distance, zcdp_delta
from noisette.privacy.guarantee import once
from noisette.privacy.pld.lattice_gaussian import LatticeVector
from noisette.privacy.pld.loss import LatticeNormal, Loss, Normal
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Gaussian"]

_GRID_BITS = 36  # finer than for Laplace noise: what separates discrete from continuous noise falls with its square
_NEAR = Fraction(1, 2**40)  # a total variation that may be added to delta instead of falling back on zCDP
_ROOM = [Fraction(0), *(Fraction(1, 10**k) for k in range(10, 6, -1))]  # composition counts a fine lattice less finely
_SUMMABLE = 2**16  # up to this sigma (in grid units) the loss of one number has its atoms listed
_NARROW = Fraction(1, 2**64)  # noise that is hardly ever drawn
_LONGEST = 2**12  # steps of one number, of which each divisor is looked at


@frozen
class Gaussian(OnLattice):
    """Real numbers plus Gaussian noise on a fine grid; with `grid=1`, whole numbers plus whole noise.

    >>> m = Gaussian(10)
    >>> round(m.interval(0.95), 3), round(float(m.guarantee(1).rho), 6), m.delta_at(1) < 1e-15
    (19.6, 0.005, True)
    """

    __repr__ = readable
    sized_by = "sigma"
    own_curve = True
    sigma: Positive
    _: KW_ONLY
    grid: base.Grid = default(None)
    norm: ClassVar[float] = 2

    def __post_init__(self) -> None:
        set_fields(self, grid=base.read_grid(self.grid, self.sigma, bits=_GRID_BITS))

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, grid: Number | None = None) -> "Gaussian":
        """Return the least noise that keeps an (epsilon, delta) or zCDP guarantee, rounded up."""
        base.agreed(guarantee, sensitivity)
        size = base.read_sensitivity(sensitivity, cls.norm)
        match guarantee:
            case Pure() | Approx(delta=0):
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
            return DiscreteGaussian(drawable(self.sigma / step, self.grid, shape) ** 2).sample(shape, rng)

        return release_integers(x, noise) if self.grid == 1 else release_reals(x, self.grid, self.norm, noise)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return ZCDP((distance + grid)^2 / (2 sigma^2)); with grid = 1, ZCDP(distance^2 / (2 sigma^2))."""
        d, neighbours = base.read_distance(distance, self.norm)
        square = self._squared(distance, d)
        return ZCDP(square / (2 * self.sigma**2), neighbours=neighbours, losses=once(self._loss(distance, square)))

    def _loss(self, distance: Distance, square: Fraction) -> Loss | None:
        """What is known beyond zCDP: the loss of one whole number, or that of continuous noise and how near it is."""
        if not square:
            return None
        moved = self._moved(distance, square)
        if moved and moved.most == 1 and self.sigma <= _SUMMABLE:
            return LatticeNormal(moved.s2, moved.largest)
        if moved and moved.listed:
            return moved
        variation = self._cells(square) * (self.grid / self.sigma) ** 2 / 8
        return Normal(sqrt_up(square) / self.sigma, variation) if variation <= _NEAR else None

    def _cells(self, square: Fraction) -> Fraction:
        """In how many places, weighed by their steps, answers differ (proof note)."""
        return square if self.grid == 1 else Fraction(1)

    def _squared(self, distance: Distance, d: Fraction) -> Fraction:
        if self.grid == 1 and isinstance(distance, Sensitivity):
            return distance.l2_squared
        return (d + base.slack(self.grid)) ** 2 if d else d

    def delta_at(self, epsilon: Number, distance: Distance = 1) -> float:
        """Return the smallest delta known for which (epsilon, delta)-DP holds at that distance, rounded up."""
        e = fraction(epsilon, "epsilon")
        d, _ = base.read_distance(distance, self.norm)
        if e < 0:
            raise InputError("epsilon must be at least 0.")
        if not d:
            return 0.0
        square = self._squared(distance, d)
        bounds = [zcdp_delta(square / (2 * self.sigma**2), e), self._smooth_delta(e, square)]
        if moved := self._moved(distance, square):
            bounds.append(moved.delta_at(e))
        return min(bounds)

    def _moved(self, distance: Distance, square: Fraction) -> LatticeVector | None:
        """The vectors by which whole numbers move at that distance, if what they lose is known."""
        whole = math.floor(square)
        largest, most = math.isqrt(whole), whole
        if isinstance(distance, Sensitivity):
            largest, most = min(largest, math.floor(distance.linf)), min(most, distance.l0, math.floor(distance.l1))
        if self.grid != 1 or not 0 < largest <= _LONGEST or self.sigma < _NARROW:
            return None
        vectors = LatticeVector(self.sigma**2, min(whole, most * largest**2), largest, most)
        return vectors if vectors.known else None

    def _smooth_delta(self, e: Fraction, square: Fraction) -> float:
        """The analytic curve plus the total variation between rounded and discrete Gaussians (proof note)."""
        variation = self._cells(square) * (self.grid / self.sigma) ** 2 / 8
        if e >= -floor_log2(variation):  # e^e > 2^e: the sum exceeds 1, and e^e has as many digits as e is large
            return 1.0
        extra = (1 + exp_up(e)) * variation
        smooth = Fraction(gaussian_delta(sqrt_up(square) / self.sigma, e))
        return min(1.0, nearest_float(smooth + extra, up=True))

    def epsilon_at(self, delta: Number, distance: Distance = 1) -> float:
        """Return the smallest epsilon known for which (epsilon, delta)-DP holds at that distance, rounded up."""
        target = positive(delta, "delta")
        if Fraction(self.delta_at(0, distance)) <= target:
            return 0.0
        low, high = 0.0, min(10.0**6, self.guarantee(distance).epsilon_at(target))
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if Fraction(self.delta_at(middle, distance)) <= target else (middle, high)
        return high


def _least_sigma(promise: Approx, sensitivity: Distance, size: Fraction, step: Fraction) -> Gaussian:
    """Search for the least sigma whose delta(epsilon) keeps the promise."""

    def made(sigma: Fraction) -> Gaussian:
        return Gaussian(sigma, grid=step)

    @cache
    def delta(sigma: Fraction) -> float:
        return made(sigma).delta_at(promise.epsilon, sensitivity)

    near = (size + base.slack(step)) / Fraction(gaussian_distance(promise.epsilon, promise.delta))
    high = size * (1 << max(0, floor_log2(near / size) + 1))
    while delta(high) > promise.delta:
        high *= 2
    low = high / 2
    while low > step and delta(low) <= promise.delta:
        low, high = low / 2, low
    high, _ = base.halved(delta, promise.delta, high, low, times=40, monotone=step != 1 and low >= step, near=near)
    return next((m for room in _ROOM if (m := made(high * (1 + room))).guarantee(sensitivity) <= promise), made(high))


examples = [Gaussian(1, grid=1), Gaussian(4, grid=1), Gaussian("1/2", grid="1/16"), Gaussian(2, grid="1/10")]
