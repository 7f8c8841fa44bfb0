"""The first k Fourier coefficients of a line: for counts that are smooth, such as those of a period of time.

Vocabulary: `n` cells · `k` coefficients kept · `B` the real orthonormal basis 1, cos, sin, cos 2, sin 2, … over n
cells · `tail` the length |B x| of the coefficients that are left out.

Noise is added to k numbers, and the rest of the counts is taken to be 0: the error is the tail and the noise in k
numbers.   [Rastogi-Nath 2010, who leave the norm of the transform open: an unnormalised one moves sqrt n times as far].
Here the coefficients are real, rounded to multiples of 2^-20 (of 1/sqrt n) in public; norms are exact. An estimate is
biased by what it leaves out. `variances` states its noise and no more.

EFPA chooses k by the data.   [Acs-Castelluccia-Chen 2012]. The score of k is minus (tail + length of the noise in k
numbers). The noise is public, and the tail is a norm: it moves at most as far as B x, whatever is left out, by the
triangle inequality. So one exponential mechanism chooses k, and the rest of epsilon measures the k coefficients, their
phases too: published code adds noise to magnitudes only and releases the phases as they are, which is not private.
Proofs: docs/proofs/linear-strategies.md
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Exponential
from noisette.mechanisms.calibration import pure_epsilon
from noisette.privacy import ZCDP, Guarantee, Neighbours, Pure, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW, Estimate, Linear
from noisette.releases.strategies.matrix import MOST_ENTRIES, Matrix

__all__ = ["ChosenFourier", "fourier"]

Counts: TypeAlias = NDArray[np.int64]

_UNIT = 1 << 20
_CHOICE = Fraction(1, 5)  # of epsilon, for k
_STEPS = 1 << 10  # of the score, for one row


@lru_cache(maxsize=64)
def fourier(cells: int, k: int) -> Matrix:
    """The first k real Fourier coefficients, in units of 2^-20/sqrt(n).

    >>> made = fourier(64, 5)
    >>> (moved,) = made.sensitivities(Contribution(1, 1, 1), Neighbours.ADD_REMOVE)
    >>> made, round(float(moved.l1) / (2**20 * 8), 4)
    (Matrix(5 Fourier coefficients: 5 numbers of 64 cells), 0.6094)
    """
    whole(k, "k")
    if whole(cells, "cells") * k > MOST_ENTRIES or k > cells:
        raise InputError(
            f"k must be at most cells, and cells times k at most {MOST_ENTRIES:,}: keep fewer coefficients."
        )
    return Matrix(_basis(cells, k), name=f"{k} Fourier coefficients")


def _basis(cells: int, k: int) -> Counts:
    """sqrt(n) B in units of 2^-20, rounded: the angles are reduced to one turn in whole numbers before."""
    order = np.arange(1, k + 1) // 2
    turns = (order[:, None] * np.arange(cells) % cells) / cells
    waves = np.where((np.arange(k) % 2 == 1)[:, None], np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns))
    length = np.where((order == 0) | (2 * order == cells), 1.0, math.sqrt(2))
    waves[0] = 1.0
    found: Counts = np.rint(_UNIT * length[:, None] * waves).astype(np.int64)
    return found


@dataclass(frozen=True)
class ChosenFourier:
    """Counts from k Fourier coefficients, where k is chosen by the data with a fifth of the promise; the rest measures.

    >>> made = ChosenFourier(1, 64, most=20)
    >>> made.guarantee()
    Pure('1', neighbours=ADD_REMOVE)
    >>> made(np.full(64, 1000)).x.shape
    (64,)
    """

    spend: Spend
    cells: int
    most: int
    """The largest k: candidates are 1, 2, … most."""
    part: Contribution = ONE_ROW
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        if whole(self.most, "most") < 2 or self.most > self.cells:
            raise InputError("most must be between 2 and cells: it is the largest number of coefficients to choose.")

    @cached_property
    def promise(self) -> Pure | ZCDP:
        """What is kept: an epsilon, or a rho and then Gaussian noise."""
        promise = as_promise(self.spend)
        return promise if isinstance(promise, ZCDP) else Pure(pure_epsilon(promise))

    @cached_property
    def coefficients(self) -> Matrix:
        """All coefficients that may be kept; the tail is counted up to there."""
        return fourier(self.cells, self.most)

    @cached_property
    def _length(self) -> Fraction:
        """How far one unit moves the coefficients together, in their unit: no tail moves further."""
        return self.coefficients.sensitivities(self.part, self.neighbours)[0].l2

    @property
    def _step(self) -> int:
        return max(1, math.floor(self._length / _STEPS))

    @property
    def moved(self) -> int:
        """How far one unit moves a score: |floor(a) - floor(b)| is at most |a - b|, rounded up."""
        return math.ceil(self._length / self._step)

    @property
    def score(self) -> Sensitivity:
        """How far one unit moves the scores of all candidates."""
        far, many = self.moved, self.most
        return Sensitivity(far * many, far**2 * many, far, many, neighbours=self.neighbours)

    @property
    def choice(self) -> Exponential:
        """The mechanism that chooses k."""
        if isinstance(self.promise, Pure):
            return Exponential(2 * self.moved / (_CHOICE * self.promise.epsilon), candidates=self.most)
        return Exponential.calibrated(self.promise.share(_CHOICE), self.score, candidates=self.most)

    def scores(self, x: Any) -> Counts:
        """Minus (tail + length of the noise) for k = 1, 2, … in steps, exactly rounded down."""
        squares = np.asarray(self.coefficients.measure(np.asarray(x, np.int64))[0]).astype(object) ** 2
        tails = np.append(np.cumsum(squares[::-1])[::-1][1:], 0)
        lengths = np.array([math.isqrt(tail) // self._step for tail in tails], np.int64)
        return -(lengths + self._noise)

    @cached_property
    def _noise(self) -> Counts:
        """The length of the noise in k coefficients for k = 1, 2, … in steps: public."""
        rows, k = np.abs(self.coefficients.rows), np.arange(1, self.most + 1)
        if isinstance(self.promise, Pure):
            far = np.cumsum(rows, axis=0).max(axis=1)
            one = math.sqrt(2) / float((1 - _CHOICE) * self.promise.epsilon)
        else:
            far = np.sqrt(np.cumsum(rows.astype(float) ** 2, axis=0).max(axis=1))
            one = 1 / math.sqrt(2 * float((1 - _CHOICE) * self.promise.rho))
        return np.asarray(np.sqrt(k) * self.part.total * far * one / self._step).astype(np.int64)

    def measuring(self, k: int) -> Linear:
        """The release of the first k coefficients."""
        rest = self.promise.share(1 - _CHOICE)
        return Linear.calibrated(rest, fourier(self.cells, k), part=self.part, neighbours=self.neighbours)

    def guarantee(self) -> Guarantee:
        """What choosing and measuring promise together: the sum, whatever k is."""
        return self.choice.guarantee(self.score) + self.measuring(self.most).guarantee()

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Estimate:
        """Choose k, then release the counts of all cells from k coefficients."""
        counts = np.asarray(x)
        if counts.shape != (self.cells,) or counts.dtype.kind not in "iu":
            raise InputError(f"There must be one whole number for each of the {self.cells:,} cells.")
        k = 1 + self.choice(self.scores(counts), rng)
        return self.measuring(k)(counts, rng)
