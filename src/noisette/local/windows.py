"""The window law on a lattice: a report lies in a window around the value e^epsilon times as likely as elsewhere.

Inputs are 0 .. steps, outputs 0 .. steps + width - 1. The window of input i holds the outputs i .. i + width - 1. Each
of them has probability e/Z, every other output 1/Z, with Z = width e + steps the same for all inputs. So the largest
ratio is e = e^epsilon exactly, where two windows differ. It is the discrete form of the piecewise mechanism and of the
square wave; with one step and a window of one output it is randomized response.

Vocabulary: `e` e^epsilon · `start` an input, at which its window starts · `Z` the sum of the weights.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from noisette.exact import samplers, vector
from noisette.exact.frozen import KW_ONLY, Exact, Whole, frozen
from noisette.exact.random import Random
from noisette.local.contract import odds

__all__ = ["Window", "window_sums"]

Floats = NDArray[np.float64]


def window_sums(weights: Floats, width: int) -> Floats:
    """Return the sum of each window of `width` neighbours, without the ends where it does not fit.

    >>> window_sums(np.array([1.0, 2.0, 3.0, 4.0]), 2).tolist()
    [3.0, 5.0, 7.0]
    """
    running = np.concatenate([[0.0], np.cumsum(weights)])
    return np.asarray(running[width:] - running[:-width])


@frozen
class Window:
    """The law for an epsilon, a number of steps and a width of the windows.

    >>> law = Window(Fraction(1), steps=3, width=2)
    >>> law.outputs, round(float(law.likelihood(0, 0) / law.likelihood(0, 3)), 6)
    (5, 2.718282)
    """

    epsilon: Exact
    _: KW_ONLY
    steps: Whole
    width: Whole

    @property
    def outputs(self) -> int:
        """How many outputs there are."""
        return self.steps + self.width

    @property
    def total(self) -> Fraction:
        """Z = width e + steps."""
        return self.width * odds(self.epsilon) + self.steps

    @property
    def _outside(self) -> Fraction:
        """How many outputs lie outside a window for each one inside."""
        return Fraction(self.steps, self.width)

    def likelihood(self, output: int, start: int) -> Fraction:
        """P(output | start)."""
        return (odds(self.epsilon) if start <= output < start + self.width else Fraction(1)) / self.total

    def draw(self, start: int, rng: Random) -> int:
        """Draw one output."""
        if samplers.logistic(self.epsilon, self._outside, rng):
            return start + rng.below(self.width)
        drawn = rng.below(self.steps)
        return drawn + self.width * (drawn >= start)

    def draws(self, starts: NDArray[np.int64], rng: Random) -> NDArray[np.int64]:
        """Draw an output for each input, with the law of `draw`."""
        inside = vector.logistic(self.epsilon, len(starts), weight=self._outside, rng=rng)
        near = starts + vector.uniform(self.width, len(starts), rng=rng)
        drawn = vector.uniform(self.steps, len(starts), rng=rng)
        return np.where(inside, near, drawn + self.width * (drawn >= starts))

    def expected(self, scores: Floats) -> Floats:
        """Return the expectation of a score of the output, for each input."""
        e, total = float(odds(self.epsilon)), float(self.total)
        return np.asarray(((e - 1) * window_sums(scores, self.width) + scores.sum()) / total)

    def mixed(self, shares: Floats) -> Floats:
        """Return the probability of each output, where the inputs have these shares."""
        e, total = float(odds(self.epsilon)), float(self.total)
        near = window_sums(np.pad(shares, self.width - 1), self.width)
        return np.asarray(((e - 1) * near + shares.sum()) / total)

    def unbiased(self) -> tuple[Fraction, Fraction]:
        """Return (a, b) such that a + b output has expectation `start`: the expectation of outputs is linear in it."""
        e, w, m = odds(self.epsilon), self.width, self.outputs
        slope = (e - 1) * w / self.total
        return -((e - 1) * w * (w - 1) / 2 + Fraction(m * (m - 1), 2)) / self.total / slope, 1 / slope
