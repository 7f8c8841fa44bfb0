"""Locations: the planar Laplace law on a public lattice, whose promise weakens with distance.

The earth near a place is a plane with coordinates in metres. A client rounds its place to the nearest point x of a
lattice with a given step, and reports the lattice point y with probability proportional to e^(-epsilon |y - x|), where
|.| is the distance in metres. The lattice is infinite, so the sum of the weights is the same for every x. By the
triangle inequality two places x and x' give any report with probabilities at most e^(epsilon |x - x'|) apart, exactly
and without the factor 2 of a bounded region.   [lattice form of Andres-Bordenabe-Chatzikokolakis-Palamidessi 2013]

This is **not** local differential privacy: places far apart can be distinguished. With epsilon = ln(4)/200 per metre,
places within 200 m look alike up to a factor of 4, and those 2 km apart up to 4^10. `MetricPrivacy` says so, and
compares with no other guarantee.

Places lie within `reach` metres of the origin, to the east and to the north. Reports that are more than 80/epsilon
farther out are moved to the edge, so that they fit a record. That is post-processing, and its probability is below
1e-30. So in each direction the mean of the reports is an unbiased estimate of the mean of the rounded places. Its
variance is at most 3/epsilon^2 for each report, and P(|error| >= t) <= 2 exp(-n t^2/(2 (3/epsilon^2 + t/epsilon))):
for a coordinate of the continuous law E e^(s x) = (1 - s^2/epsilon^2)^(-3/2), and the lattice has no more than that
by Poisson summation (docs/proofs/local.md).

Exact draws: propose two independent discrete Laplace numbers with 7/10 of the rate r (7/10 < 1/sqrt 2), and accept with
e^(-r (|z| - 7/10 (|a| + |b|))), a coin that is compared with a uniform number as closely as the draw needs. About 77 %
are accepted.

When: a service needs roughly where somebody is. For maps of many people use a frequency oracle over cells.
Textbook: lecture on mobility, geo-indistinguishability.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError, PrivacyError
from noisette.exact import samplers, vector
from noisette.exact.frozen import KW_ONLY, Positive, default, frozen
from noisette.exact.number import Number, fraction, level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds, sqrt_bounds, sqrt_up
from noisette.local.contract import Aggregate, Collectable, checked_reports
from noisette.local.intervals import bars, bernstein

__all__ = ["MeanPlace", "MetricPrivacy", "PlanarLaplace"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_FARTHER, _MOST = 80, 1 << 32  # times 1/epsilon; steps, so that sums of a billion reports fit into 64 bits
_PROPOSED = Fraction(7, 10)  # below 1/sqrt(2)


@frozen
class MetricPrivacy:
    """Any report has probabilities at most e^(epsilon |x - x'|) apart for two lattice points x and x', |.| in metres.

    >>> promise = MetricPrivacy("0.01", step=10)
    >>> float(promise.between(100))                         # places on the lattice, 100 m apart
    1.0
    """

    epsilon: Positive
    _: KW_ONLY
    step: Positive

    def between(self, metres: Number, *, on_lattice: bool = True) -> Fraction:
        """Return the epsilon between two places at this distance, rounded up; rounding to the lattice adds to it."""
        distance = fraction(metres, "metres")
        if distance < 0:
            raise InputError("metres must be at least 0.")
        return self.epsilon * (distance + (0 if on_lattice else self.step * sqrt_up(Fraction(2))))

    def _refused(self, other: object) -> Any:
        raise PrivacyError(
            "Metric privacy is no differential privacy: its epsilon is per metre, so it has no comparison."
        )

    __le__ = __lt__ = __ge__ = __gt__ = __add__ = __radd__ = _refused

    def __mul__(self, k: int) -> "MetricPrivacy":
        """Return the promise of k reports of one person: the epsilons add up."""
        return MetricPrivacy(self.epsilon * k, step=self.step)


@frozen
class PlanarLaplace(Collectable):
    """Values are places (east, north) in metres; reports are lattice points (i, j), at (i, j) times `step` metres.

    >>> m = PlanarLaplace("0.01", step=10)                  # per metre
    >>> m.guarantee()
    MetricPrivacy(epsilon=Fraction(1, 100), step=Fraction(10, 1))
    >>> round(m.error(0.95)), len(m.client((120.0, -35.5)))    # 95 % of reports are within 474 m and a step
    (481, 2)
    >>> m.estimate(m.clients([(120.0, 80.0)] * 10_000)).mean.round(-2).tolist()
    [100.0, 100.0]
    """

    epsilon: Positive
    _: KW_ONLY
    step: Positive
    reach: Positive = default(10**8)

    def __post_init__(self) -> None:
        if not Fraction(1, 10**6) <= self.rate <= 20:
            raise InputError("epsilon times step must lie between 1e-6 and 20: a step of 1/(10 epsilon) is fine.")
        if not self.step <= self.reach <= 10**8:
            raise InputError("reach must be at least one step and at most 1e8 metres.")
        if self.edge > _MOST:
            raise InputError("reach must be at most 2^32 steps: declare a smaller reach, or a larger step.")

    @property
    def edge(self) -> int:
        """The largest coordinate of a report, in steps."""
        return math.ceil((self.reach + _FARTHER / self.epsilon) / self.step)

    @property
    def layout(self) -> tuple[range, ...]:
        """Two coordinates in steps."""
        return (range(-self.edge, self.edge + 1),) * 2

    @property
    def cells(self) -> int:
        """A sum for each coordinate."""
        return 2

    @property
    def rate(self) -> Fraction:
        """The epsilon of one step."""
        return self.epsilon * self.step

    def guarantee(self) -> MetricPrivacy:
        """Return what each report promises; it is no differential privacy."""
        return MetricPrivacy(self.epsilon, step=self.step)

    def nearest(self, places: Any) -> Ints:
        """Return the lattice points next to places in metres."""
        try:
            array = np.asarray(places, float).reshape(np.shape(places) if len(places) else (0, 2))
        except (TypeError, ValueError, OverflowError):
            array = np.zeros(1)
        if array.ndim != 2 or array.shape[1] != 2 or np.isnan(array).any():
            raise InputError("Each place must be a pair of numbers, metres to the east and to the north.")
        if not (np.abs(array) <= float(self.reach)).all():
            raise InputError("A place lies beyond the reach: clip it, or declare a larger reach.")
        return np.rint(array / float(self.step)).astype(np.int64)

    def client(self, value: Any, rng: Random = SYSTEM) -> tuple[int, int]:
        """Return a lattice point near a place."""
        [start] = self.nearest([value]).tolist()
        east, north = samplers.retry(attempt, self.rate, rng)
        return self._within(start[0] + east), self._within(start[1] + north)

    def _within(self, steps: int) -> int:
        return max(-self.edge, min(steps, self.edge))

    def clients(self, values: Any, rng: Random = SYSTEM) -> Ints:
        """Return the lattice points of many people, a row each, with the law of `client`."""
        start = self.nearest(values)
        moved, todo = np.zeros_like(start), np.arange(len(start))
        while todo.size:
            drawn = np.asarray(vector.discrete_laplace(1 / (_PROPOSED * self.rate), (todo.size, 2), rng=rng))
            kept = _accepted(self.rate, drawn, rng)
            moved[todo[kept]] = drawn[kept]
            todo = todo[~kept]
        return np.asarray(np.clip(start + moved, -self.edge, self.edge))

    def weight(self, report: Any, value: Any) -> float:
        """Return e^(-epsilon |y - x|) for a report and a place; weights of one place sum to the same for all places."""
        [x] = self.nearest([value])
        return math.exp(-float(self.rate) * math.dist(report, x.tolist()))

    def places(self, reports: Any) -> NDArray[np.float64]:
        """Return reports in metres; their mean is an unbiased estimate of the mean of the rounded places."""
        return np.asarray(checked_reports(self, reports, *self.layout) * float(self.step))

    def counted(self, reports: NDArray[Any]) -> Ints:
        """Add up both coordinates."""
        return np.asarray(checked_reports(self, reports, *self.layout).sum(axis=0))

    def estimated(self, aggregate: Aggregate) -> "MeanPlace":
        """Return the mean of the reports, in metres."""
        mean = aggregate.counts.astype(float) / aggregate.people * float(self.step)
        return MeanPlace(self, np.asarray(mean), aggregate)

    def variance(self, people: int = 1) -> float:
        """Return the largest variance of the mean in each direction, in square metres: 3/epsilon^2 for each report."""
        return 3 / float(self.epsilon) ** 2 / whole(people, "people")

    def error(self, level: float = 0.95) -> float:
        """Return the metres that a report is from its place at most, with that probability up to one step's diagonal.

        In the plane the distance r has P(r > R) = (1 + epsilon R) e^(-epsilon R).
        """
        from scipy.special import lambertw

        radius = -(float(lambertw((level_of(level) - 1) / math.e, -1).real) + 1) / float(self.epsilon)
        return radius + float(self.step) * math.sqrt(0.5)


@dataclass(frozen=True, eq=False)
class MeanPlace:
    """An estimate of the mean place, (east, north) in metres; unbiased for places that are rounded to the lattice."""

    protocol: PlanarLaplace
    mean: Floats
    aggregate: Aggregate

    def variance(self) -> float:
        """Return the largest variance in each direction, over the coins."""
        return self.protocol.variance(self.aggregate.people)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return (low, high) for each direction; each contains its mean with at least that probability, for any n."""
        scale, step = 1 / float(self.protocol.epsilon), float(self.protocol.step)
        half = bernstein(3 * scale**2, 3 * scale, self.aggregate.people, level) + step / 2  # and places were rounded
        return self.mean - half, self.mean + half

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a row for each direction, in metres."""
        return bars("direction", ("east", "north"), "mean", self.mean, *self.interval(level))


def attempt(rate: Fraction, rng: Random) -> tuple[int, int] | None:
    """Draw (a, b) with probability proportional to e^(-rate |(a, b)|), as one attempt."""
    scale = 1 / (_PROPOSED * rate)
    a, b = samplers.discrete_laplace(scale, rng), samplers.discrete_laplace(scale, rng)
    return (a, b) if samplers.bernoulli_real(_acceptance(rate, a, b), rng) else None


def _acceptance(rate: Fraction, a: int, b: int) -> samplers.Bounds:
    """Enclose e^(-rate (|z| - 7/10 (|a| + |b|)))."""
    square, proposed = Fraction(a * a + b * b), _PROPOSED * (abs(a) + abs(b))

    def bounds(bits: int) -> tuple[int, int]:
        fine = bits + 16 + rate.numerator.bit_length()
        low, high = sqrt_bounds(square, fine)
        least = exp_bounds(-rate * (Fraction(high, 1 << fine) - proposed), bits)[0]
        return least, exp_bounds(-rate * (Fraction(low, 1 << fine) - proposed), bits)[1]

    return bounds


def _accepted(rate: Fraction, drawn: Ints, rng: Random) -> NDArray[np.bool_]:
    """Draw the coin of `attempt` for each row: 64 bits against a float, and exactly where they are closer than 1e-9."""
    uniform = rng.words(len(drawn), np.uint64)
    a, b = np.abs(drawn).astype(float).T
    chances = np.exp(-float(rate) * (np.hypot(a, b) - float(_PROPOSED) * (a + b)))
    near = uniform.astype(float) / 2.0**64
    kept = np.asarray(near < chances)
    for i in np.flatnonzero(np.abs(near - chances) < 1e-9 * (1 + float(rate) * (a + b))):
        exact = _acceptance(rate, *map(int, drawn[i]))
        kept[i] = samplers.bernoulli_real(exact, rng, prefix=int(uniform[i]), known=64)
    return kept
