"""Running sums by the square root of the prefix sums, for Gaussian noise without a delta: it keeps what came.

Vocabulary: `c` the weights of (1 - z)^(-1/2), rounded down to multiples of 2^-20 in public · `y` C x + noise, in these
units · `b` the series 1/((1 - z) c), by which sums follow from y.

Everything is whole numbers until the noise is added; sums are post-processing and unbiased, as b is made of the rounded
weights. The deviation after step t is sigma sqrt(b_0^2 + … + b_(t-1)^2), sigma in proportion to the longest column. The
weights do not depend on the horizon, so a horizon of 2^40 steps costs noise and nothing else.
[Fichtenberger-Henzinger-Upadhyay 2023; Henzinger-Upadhyay-Upadhyay 2023]

State: all that came and all that was released, two numbers a step and key. `buffered` needs five in all.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact.convolution import transformed
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import sqrt_down, sqrt_up
from noisette.mechanisms import Gaussian
from noisette.privacy import Guarantee, Neighbours, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.process import Origin
from noisette.releases.linear import variance_of
from noisette.releases.streams.buffers import square_root_square
from noisette.releases.streams.contract import STREAM, Floats, read_horizon, read_keys, read_step
from noisette.releases.streams.participation import ONCE, Participation

__all__ = ["SquareRootCounter"]

_UNIT = 1 << 20
_LARGEST = 1 << 31  # what may come in one step
_MOST_KEYS = 1 << 24
_KEPT = 1 << 20  # steps that can be counted in fact: weights and history are kept


@dataclass(frozen=True)
class SquareRootCounter:
    """Sums after each of `horizon` steps, with `noise` on weighted sums in units of 2^-20.

    >>> from noisette.privacy import ZCDP
    >>> counter = SquareRootCounter.calibrated(ZCDP("1/2"), horizon=1024)       # mu = 1
    >>> counter.deviations([1, 1024]).round(3).tolist()
    [1.809, 3.273]
    """

    noise: Gaussian
    moved: Sensitivity
    horizon: int
    who: Participation = ONCE

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        horizon: int,
        who: Participation | None = None,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
    ) -> "SquareRootCounter":
        """The least noise that keeps a promise."""
        one = who or ONCE
        moved = _moved(one, read_horizon(horizon), neighbours)
        return cls(Gaussian.calibrated(as_promise(spend), moved), moved, horizon, one)

    def guarantee(self) -> Guarantee:
        """What holds for one unit over all steps together."""
        return self.noise.guarantee(self.moved)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The Gaussian mechanism on the weighted sums."""
        return [(self.noise, self.moved)]

    def begin(self, many: int = 1) -> "Running":
        """Sums of that many keys."""
        read_keys(many, _MOST_KEYS)
        return Running(self, np.zeros((0, many), np.int64), np.zeros((0, many)))

    def resume(self, state: dict[str, Any]) -> "Running":
        """Go on from a state."""
        many = int(state["many"])
        came, noisy = np.array(state["came"], np.int64), np.array(state["noisy"], float)
        return Running(self, came.reshape(-1, many), noisy.reshape(-1, many))

    # The error

    def deviations(self, steps: Any) -> Floats:
        """The standard deviation of the sum after each of these steps."""
        at = np.asarray(steps, np.int64)
        return np.sqrt(variance_of(self.noise) * np.cumsum(_inverse(int(at.max())) ** 2)[at - 1])

    def between(self, first: Any, last: Any) -> Floats:
        """The standard deviation of the sum after step `last` minus that after step `first`."""
        start, stop = np.broadcast_arrays(np.asarray(first, np.int64), np.asarray(last, np.int64))
        b = _inverse(int(stop.max()))
        found = [np.sum((b[t - s : t] - b[:s]) ** 2) + np.sum(b[: t - s] ** 2) for s, t in np.stack([start, stop], -1)]
        return np.sqrt(variance_of(self.noise) * np.array(found))


class Running:
    """Sums so far."""

    def __init__(self, counter: SquareRootCounter, came: NDArray[np.int64], noisy: Floats) -> None:
        self._counter, self._came, self._noisy = counter, came, noisy
        self._origin = Origin()

    @property
    def steps(self) -> int:
        """How many steps were released."""
        return len(self._came)

    def step(self, x: Any, rng: Random = SYSTEM) -> Floats:
        """Release the sums after one more step, in which x came."""
        came = read_step(x, self._came.shape[1], self.steps, min(self._counter.horizon, _KEPT), self._origin)
        t = self.steps + 1
        history = np.vstack([self._came, np.clip(came, -_LARGEST, _LARGEST)])
        exact = _weights(t)[::-1] @ history  # below 2^20 2^31 sqrt(t): within 64 bits
        noisy = np.vstack([self._noisy, np.asarray(self._counter.noise(exact, rng), float)])
        self._came, self._noisy = history, noisy
        return np.asarray(_inverse(t)[::-1] @ noisy)

    def state(self) -> dict[str, Any]:
        """All that `resume` needs, as JSON has it."""
        self._origin.check(STREAM)
        return {"many": self._came.shape[1], "came": self._came.tolist(), "noisy": self._noisy.tolist()}


def _moved(who: Participation, horizon: int, neighbours: Neighbours) -> Sensitivity:
    """The move of one unit in units of 2^-20; under replace another one comes, and no product of columns is negative.

    Rounding down makes no weight larger, so that what the square root bounds is bounded here.
    """
    n = who.rows(horizon)
    c = _weights(n) / _UNIT

    def tail(start: int, stop: int) -> float:
        return max(0.0, square_root_square(stop) - float(c[:start] @ c[:start]))

    square = Fraction(who.square(c, horizon, tail))
    squared = square * _UNIT**2 * who.replaced(neighbours)
    return Sensitivity(sqrt_up(squared * horizon), squared, sqrt_down(squared), horizon, neighbours=neighbours)


@lru_cache(maxsize=64)
def _series(power: int) -> tuple[NDArray[np.int64], Floats]:
    """Weights and b for 2^power steps; b by Newton's iteration on the series of the rounded weights."""
    n = 1 << power
    k = np.arange(1, n)
    c = np.floor(_UNIT * np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))]) * (1 - 1e-15)).astype(np.int64)
    c[0] = _UNIT
    inverse = np.concatenate([[1.0], np.cumprod((2 * k - 3) / (2 * k))])
    for _ in range(3):
        error = transformed(c / _UNIT, inverse)
        error[0] -= 1
        inverse = inverse - transformed(inverse, error)
    return c, np.cumsum(inverse) / _UNIT


def _weights(steps: int) -> NDArray[np.int64]:
    return _series(max(0, steps - 1).bit_length())[0][:steps]


def _inverse(steps: int) -> Floats:
    return _series(max(0, steps - 1).bit_length())[1][:steps]
