"""Running sums with Gaussian noise and a handful of numbers of state, however long the stream is.

Vocabulary: `buffers` u_i, and `sums` F, as whole numbers in units of 2^-bits · `z` the noise of a step · `r` a little
Laplace noise, of scale 1/32, by which sums are rounded · `T` the horizon, `m` keys.

    F <- F + x + z - sum_i inflow_i u_i,    u_i <- beta_i u_i + z,    released: F + r, rounded to a whole number

Where sums fade by a factor g in each step, F <- g F + ….

Without rounding, F is the running sum plus B z with B C = prefix sums, a function of C x + z: the Gaussian mechanism on
C x (`buffers`), for streams that are chosen as one goes, too.   [Denisov-McMahan-Rush-Smith-Thakurta 2022]

**Rounding is charged.** z is a discrete Gaussian on multiples of 2^-bits. Each product is rounded by less than a unit,
and b and a_i are at most 1: so F is off by less than T (2 n + 2) units for n buffers (one more where sums fade), which
`bits` keeps below 2^-62.
The noise r is a multiple of 2^-58: moving F by so little moves the chance of any released number by a factor of
e^(2^-53) at most. For all m T numbers and both of two neighbours that is the guarantee of Laplace noise on numbers that
move by 4 m T steps of 2^-58 in all, an epsilon of m T 2^-51: 2e-11 for a year of days and a hundred keys.
(docs/proofs/streams.md)
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import sqrt_down, sqrt_up
from noisette.exact.vector import discrete_gaussian, discrete_laplace
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Promise, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.process import Origin
from noisette.releases.streams.buffers import SCALE, Buffers, best_buffers
from noisette.releases.streams.contract import STREAM, Floats, read_horizon, read_keys, read_step
from noisette.releases.streams.lanes import Lanes, Numbers, read, texts
from noisette.releases.streams.participation import ONCE, Participation

__all__ = ["BufferedCounter", "fine_gaussian"]

_DIGIT, _LOW = 54, 1 << 114  # bits that each further draw adds, and its variance: eight units of the digit above
_TOP = 32  # bits after the point of the first draw, at most
_FINE, _ROUNDING = 58, Geometric(1 << 53)  # bits after the point of the noise by which sums are rounded, and that noise
_LARGEST = 1 << 54  # sigma: draws of a hundred deviations have 62 bits
_OWN = 1 / 12 + 2 / 1024  # the variance of rounding


@dataclass(frozen=True)
class BufferedCounter:
    """Sums of at most `many` keys after each of `horizon` steps; one unit moves weighted sums by `moved`, in l2.

    >>> counter = BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=365, many=2)
    >>> len(counter.buffers.gaps), counter.guarantee() <= Approx(1, "1e-9")
    (3, True)
    >>> running = counter.begin(2)
    >>> released = running.step([5, 7])
    >>> released.shape, running.steps
    ((2,), 1)
    """

    sigma: Fraction
    moved: Sensitivity
    buffers: Buffers
    horizon: int
    many: int = 1
    who: Participation = ONCE

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        horizon: int,
        who: Participation | None = None,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        many: int = 1,
        buffers: int | None = None,
        half_life: int | None = None,
    ) -> "BufferedCounter":
        """The least noise that keeps a promise, unless it is pure; in `half_life` steps sums fade by half."""
        promise = as_promise(spend)
        if promise.is_pure:
            raise InputError('Buffers need Gaussian noise: spend such as Approx(1, "1e-9"), or count with a tree.')
        made, keys, one = _buffers(read_horizon(horizon), buffers, half_life), whole(many, "many"), who or ONCE
        moved = _moved(made.square(horizon, one), one.replaced(neighbours), horizon, neighbours)
        for bits in (16, 12, 8, 4, 1):  # of the promise, for rounding and for what is rounded when losses are added up
            least = Gaussian.calibrated(_less(promise, 1 - Fraction(1, 2**bits)), moved).sigma
            if least > _LARGEST:
                raise InputError("This promise is too small for numbers that large: spend more, or use a coarser grid.")
            counter = cls(least, moved, made, horizon, keys, one)
            if counter.guarantee() <= promise.restated(neighbours):
                return counter
        raise InputError("This promise is too small for a stream that long: spend more, or use fewer steps or keys.")

    def guarantee(self) -> Guarantee:
        """What holds for one unit over all steps together: the Gaussian's, and what rounding adds."""
        costs: list[Guarantee] = [noise.guarantee(moved) for noise, moved in self.parts]
        return reduce(add, costs)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The Gaussian mechanism on the weighted sums, and the noise by which they are rounded."""
        steps = 4 * self.many * self.horizon
        rounded = Sensitivity(steps, steps, 1, steps, neighbours=self.moved.neighbours)
        return [(Gaussian(self.sigma), self.moved), (_ROUNDING, rounded)]

    @property
    def bits(self) -> int:
        """How many bits after the point are kept."""
        return 62 + (self.horizon * (2 * len(self.buffers.gaps) + 2 + (self.buffers.fade > 0))).bit_length()

    def begin(self, many: int = 1) -> "Running":
        """Sums of that many keys."""
        nothing = self._lanes(read_keys(many, self.many)).of(np.zeros(many, np.int64))
        return Running(self, self._lanes(many), 0, [nothing] * len(self.buffers.gaps), nothing)

    def resume(self, state: dict[str, Any]) -> "Running":
        """Go on from a state, with the noise and the buffers that it was begun with."""
        sigma, gaps, inflows, fade = state["made"]
        made = replace(self, sigma=Fraction(sigma), buffers=Buffers(tuple(gaps), tuple(inflows), fade))
        buffers, sums = [read(one) for one in state["buffers"]], read(state["sums"])
        return Running(made, made._lanes(int(state["many"])), int(state["steps"]), buffers, sums)

    def joined(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        """The state of the keys of two states behind each other, after the same steps of the same counter."""
        high = self._lanes(1).width * int(one["many"])

        def both(low: list[Any], above: list[Any]) -> list[str]:
            first, second = read(low), read(above)
            assert first.bias == second.bias
            return texts(Numbers(first.packed + (second.packed << high), first.bias))

        buffers = [both(*pair) for pair in zip(one["buffers"], other["buffers"], strict=True)]
        many = int(one["many"]) + int(other["many"])
        return {**one, "many": many, "buffers": buffers, "sums": both(one["sums"], other["sums"])}

    @property
    def _room(self) -> int:
        """A bound of all numbers of a state, as a power of two: sums below 2^62, and buffers however long they add up.

        A draw beyond 2^10 deviations has a chance of e^-500000.
        """
        slowest = (1 << SCALE) // min(self.buffers.gaps, default=1 << SCALE)
        noise = int(self.sigma).bit_length() + 11 + slowest.bit_length()
        return self.bits + max(62, noise) + 1

    def _lanes(self, many: int) -> Lanes:
        return Lanes(many, -(-(self._room + SCALE + 8) // 32) * 32)

    # The error

    def deviations(self, steps: Any) -> Floats:
        """The standard deviation of the sum after each of these steps, rounding included."""
        return np.sqrt(float(self.sigma) ** 2 * self.buffers.noise(steps) + _OWN)

    def between(self, first: Any, last: Any) -> Floats:
        """The standard deviation of the sum after step `last` minus that after step `first`."""
        return np.sqrt(float(self.sigma) ** 2 * self.buffers.apart(first, last) + 2 * _OWN)


class Running:
    """Sums so far."""

    def __init__(
        self, counter: BufferedCounter, lanes: Lanes, steps: int, buffers: list[Numbers], sums: Numbers
    ) -> None:
        self._counter, self._lanes, self.steps, self._buffers, self._sums = counter, lanes, steps, buffers, sums
        self._origin = Origin()

    def step(self, x: Any, rng: Random = SYSTEM) -> NDArray[np.int64]:
        """Release the sums after one more step, in which x came."""
        lanes, made = self._lanes, self._counter
        came = read_step(x, lanes.many, self.steps, made.horizon, self._origin)
        largest = (1 << 61) >> made.horizon.bit_length()
        z, bias = fine_gaussian(made.sigma, made.bits, lanes, rng), 1 << made._room
        taken, kept = lanes.of(np.zeros(lanes.many, np.int64)), []
        for u, gap, flow in zip(self._buffers, made.buffers.gaps, made.buffers.inflows, strict=True):
            taken = lanes.plus(taken, lanes.dropped(lanes.times(u, flow), SCALE))
            held = lanes.dropped(lanes.times(u, (1 << SCALE) - gap), SCALE)
            kept.append(lanes.biased(lanes.plus(held, z), bias))
        left = self._sums
        if made.buffers.fade:
            left = lanes.dropped(lanes.times(left, (1 << SCALE) - made.buffers.fade), SCALE)
        new = lanes.times(lanes.of(np.clip(came, -largest, largest)), 1 << made.bits)
        sums = lanes.biased(lanes.minus(lanes.plus(left, new, z), taken), bias)
        self._buffers, self._sums, self.steps = kept, sums, self.steps + 1
        return self._rounded(rng)

    def _rounded(self, rng: Random) -> NDArray[np.int64]:
        lanes, bits = self._lanes, self._counter.bits
        r = lanes.of(np.asarray(discrete_laplace(_ROUNDING.scale, lanes.many, rng=rng)))
        half = Numbers(lanes.all(1 << (bits - 1)), 0)
        return lanes.numbers(lanes.dropped(lanes.plus(self._sums, lanes.times(r, 1 << (bits - _FINE)), half), bits))

    def state(self) -> dict[str, Any]:
        """All that `resume` needs, as JSON has it."""
        self._origin.check(STREAM)
        made = self._counter.buffers
        return {
            "made": [str(self._counter.sigma), list(made.gaps), list(made.inflows), made.fade],
            "many": self._lanes.many,
            "steps": self.steps,
            "buffers": [texts(one) for one in self._buffers],
            "sums": texts(self._sums),
        }


def fine_gaussian(sigma: Fraction, bits: int, lanes: Lanes, rng: Random = SYSTEM) -> Numbers:
    """Gaussian noise in units of 2^-bits, in lanes.

    A first draw has units of 2^-32, or larger ones if sigma is beyond a million, and each further one fills in 54 bits
    with noise of eight units of the digit above. For q a + b with independent discrete Gaussians, P(q a + b = x) is
    that of one with the sum of the variances, up to the factor 1 + e with |e| <= 4 exp(-2 pi^2 t^2),
    1/t^2 = 1/sigma_a^2 + q^2/sigma_b^2, by Poisson summation: here t is above 5, and e below 1e-213. The noise is a
    little wider than sigma.

    >>> lanes = Lanes(4, 224)
    >>> z = lanes.numbers(lanes.dropped(fine_gaussian(Fraction(10), 80, lanes), 80))
    >>> bool((abs(z) < 200).all())
    True
    """
    have = max(0, min(_TOP, 55 - int(sigma).bit_length()))
    wide = max(Fraction(8), sigma * (1 << have))
    found = lanes.of(np.asarray(discrete_gaussian(wide**2, lanes.many, rng=rng)))
    while have < bits:
        low = lanes.of(np.asarray(discrete_gaussian(_LOW, lanes.many, rng=rng)))
        found, have = lanes.plus(lanes.times(found, 1 << _DIGIT), low), have + _DIGIT
    return lanes.dropped(found, have - bits) if have > bits else found


def _buffers(horizon: int, many: int | None, half_life: int | None) -> Buffers:
    """The best buffers; those of sums that fade are the best of as many steps as matter, faded."""
    if half_life is None:
        return best_buffers(horizon, many)
    import mpmath

    with mpmath.workdps(40):
        fade = int((1 - mpmath.mpf(2) ** (-mpmath.mpf(1) / whole(half_life, "half_life"))) * 2**SCALE)
    return best_buffers(min(horizon, 4 * half_life), many).faded(fade)


def _less(promise: Promise, part: Fraction) -> Promise:
    """A part of a promise."""
    if isinstance(promise, ZCDP):
        return ZCDP(promise.rho * part, neighbours=promise.neighbours)
    return Approx(promise.epsilon * part, promise.delta * part, neighbours=promise.neighbours)


def _moved(square: float, replaced: Fraction, horizon: int, neighbours: Neighbours) -> Sensitivity:
    """The move of one unit; under replace another one comes, and the square grows by a factor."""
    squared = Fraction(square) * replaced
    l1 = sqrt_up(squared * horizon)
    return Sensitivity(l1, squared, sqrt_down(squared), horizon, neighbours=neighbours)  # squares are rounded up by far
