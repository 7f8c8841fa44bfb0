"""The exponential mechanism over a huge domain where almost all scores are 0; only the others take time.

Candidate i of 0 .. N-1 is released with probability proportional to e^(q_i/scale), where q_i = 0 for all that are not
listed: these are one candidate of weight N - m, m as many as are listed, and one of them is drawn evenly if it wins. It
does not matter whether a candidate with score 0 is listed. If a person moves the scores within a range r,

    epsilon = r / scale,   rho = epsilon^2/8 of zCDP,

and no smaller epsilon holds; see `Exponential`, whose law it is.   [McSherry-Talwar 2007; Cesar-Rogers 2021]
With probability at least 1 - e^-t the released score is above max q - scale (ln N + t): 2^64 candidates cost 44 scales.
How long a release takes depends on how many candidates are listed.

When: the candidates are too many to enumerate and one is to be released, with a pure epsilon or zCDP. Where a
delta is at hand, `Choosing`, `Keep` and `Threshold` err by less.
Textbook: Cormode and the lecture notes, the exponential mechanism, on domains of any size.

Vocabulary: `size` N as a number of candidates · `others` the candidates that are not listed · see `Exponential`.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import KW_ONLY, frozen
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.samplers import Bounds, odds_real
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.selection.exponential import ChoiceScale, Exponential, Monotone
from noisette.privacy import Promise

__all__ = ["SparseExponential", "SparseScores", "read_sparse_scores"]

_LARGEST = 1 << 960
_ENUMERATED = 4096
_BEHIND = 12  # scales: what is so far behind hardly moves the others


# Sparse scores: a mapping {candidate: score}, or a pair (candidates, scores) of sequences of equal length, of which
# arrays are the fast way. Candidates are 0 .. size-1, each listed at most once; all others have score 0. No error here
# quotes a candidate or a score.


_MOST = 2**62
_FORM = "Pass the scores as a mapping {candidate: score}, or as two sequences of equal length: candidates and scores."


@frozen
class SparseScores:
    """Candidates and their scores, in the order given; `ordered` has the candidates in ascending order."""

    candidates: NDArray[Any]
    scores: NDArray[np.int64]
    ordered: NDArray[Any]

    def __len__(self) -> int:
        return len(self.candidates)

    def of(self, candidate: Any) -> int:
        """Return a candidate's score.

        >>> read_sparse_scores({5: 3}, 2**64).of(5), read_sparse_scores({5: 3}, 2**64).of(6)
        (3, 0)
        """
        return int(self.scores[self.candidates == candidate].sum())

    def unlisted(self, rank: int) -> int:
        """Return the rank-th candidate that is absent from the list.

        >>> [read_sparse_scores({0: 7, 2: 1}, 5).unlisted(rank) for rank in range(3)]
        [1, 3, 4]
        """
        return rank + bisect_right(range(len(self)), rank, key=lambda j: int(self.ordered[j]) - j)


def read_sparse_scores(x: Any, size: int) -> SparseScores:
    """Read the scores of some of the candidates 0 .. size-1.

    >>> read_sparse_scores({3: 1, 2**63: -4}, 2**64).scores.tolist()
    [1, -4]
    """
    if isinstance(x, Mapping):
        x = list(x.keys()), list(x.values())
    if not isinstance(x, tuple | list) or len(x) != 2 or not all(map(_is_sequence, x)):
        raise InputError(_FORM)
    if len(x[0]) != len(x[1]):
        raise InputError(_FORM)
    if not len(x[0]):
        return SparseScores(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    if len(x[0]) >= choice.LARGEST:
        raise InputError(f"Fewer than {choice.LARGEST:,} candidates can be listed: leave out those with score 0.")
    candidates, scores = _candidates(x[0], size), _scores(x[1])
    return SparseScores(candidates, scores, _ordered(candidates))


def _is_sequence(part: Any) -> bool:
    return isinstance(part, list | tuple | range) or (isinstance(part, np.ndarray) and part.ndim == 1)


def _candidates(given: Any, size: int) -> NDArray[Any]:
    numbers = _numbers(given)
    if int(numbers.min()) < 0 or int(numbers.max()) >= size:
        raise InputError("Candidates must be whole numbers from 0 to below the number of candidates.")
    return numbers


def _scores(given: Any) -> NDArray[np.int64]:
    numbers = _numbers(given)
    if int(numbers.min()) <= -_MOST or int(numbers.max()) >= _MOST:
        raise InputError("The scores must lie between -2^62 and 2^62: use a coarser unit.")
    return numbers.astype(np.int64, copy=False)


def _numbers(given: Any) -> NDArray[Any]:
    """Whole numbers as they are: left to itself, numpy would turn some of a list into floats."""
    if isinstance(given, np.ndarray):
        return given if type(given) is np.ndarray and given.dtype == np.uint64 else integer_answer(given)
    if set(map(type, given)) != {int}:
        return integer_answer(np.fromiter(given, object))
    low, high = min(given), max(given)
    kind = np.int64 if low >= -(2**63) and high < 2**63 else np.uint64 if low >= 0 and high < 2**64 else object
    return np.array(given, kind)


def _ordered(candidates: NDArray[Any]) -> NDArray[Any]:
    if (candidates[1:] > candidates[:-1]).all():
        return candidates
    ordered = np.sort(candidates)
    if (ordered[1:] == ordered[:-1]).any():
        raise InputError("Each candidate must be listed once: add up what belongs to the same candidate.")
    return ordered


@frozen
class SparseExponential(Mechanism):
    """One of the candidates 0 .. candidates-1, given the whole scores of those whose score is not 0.

    >>> from noisette import Pure
    >>> m = SparseExponential.calibrated(Pure(1), candidates=2**64)
    >>> m.scale, m.guarantee(1), m.interval(0.95)
    (Fraction(2, 1), Pure('1'), 94.0)
    >>> m({2**63: 200, 17: 90}), round(m.chance(2**63, {2**63: 100, 17: 90}), 4)
    (9223372036854775808, 0.9898)
    """

    kind = Output.OUTCOME
    tightness = 0.999  # no smaller epsilon holds; the pairs fall short of it by e^-12 or so
    scale: ChoiceScale
    _: KW_ONLY
    candidates: Annotated[int, partial(whole, least=2)]
    monotone: Monotone = False

    def __post_init__(self) -> None:
        if self.candidates > _LARGEST:
            raise InputError("candidates must be at most 2^960: choose among fewer.")

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, candidates: int, monotone: bool = False
    ) -> Self:
        """Return the least scale that keeps the guarantee, for scores that move by at most the sensitivity each.

        Under replace scores move in both directions, whatever `monotone` says of added and removed records.
        """
        plain = Exponential.calibrated(guarantee, sensitivity, candidates=2, monotone=monotone)
        return cls(plain.scale, candidates=candidates, monotone=monotone)

    @property
    def _plain(self) -> Exponential:
        """The best candidate against all others, as if these were one."""
        return Exponential(self.scale, candidates=2, monotone=self.monotone, measure=(1, self.candidates - 1))

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(range / scale) for scores that move by at most `distance` each, with the rho of that range."""
        return self._plain.guarantee(distance)

    def __call__(self, scores: Any, rng: Random = SYSTEM) -> int:
        """Release a candidate."""
        listed = read_sparse_scores(scores, self.candidates)
        others, q = self._grouped(listed)
        y = self._exponents(others, q)
        best = int(np.argmin(y))

        def size(i: int) -> int:
            return 1 if i < len(listed) else others

        def weight(i: int) -> Bounds:
            return odds_real((int(q[i]) - int(q[best])) / self.scale, Fraction(size(i), size(best)))

        chosen = choice.choose(y - y[best], weight, rng)
        return int(listed.candidates[chosen]) if chosen < len(listed) else listed.unlisted(rng.below(others))

    def _grouped(self, listed: SparseScores) -> tuple[int, NDArray[np.int64]]:
        """How many are not listed, and the scores with theirs at the end, if there are any."""
        others = self.candidates - len(listed)
        return others, np.append(listed.scores, 0) if others else listed.scores

    def _exponents(self, others: int, q: NDArray[np.int64]) -> NDArray[np.float64]:
        """The y, up to a constant, for which a candidate, or all others together, have a weight of e^-y."""
        y = (q.max() - q) * float(1 / self.scale)
        if others:
            y[-1] -= math.log(others)
        return np.asarray(y)

    # What it releases, and what to expect

    def chance(self, candidate: int, scores: Any) -> float:
        """Return the probability that a candidate is released, in any domain."""
        return self._chances(read_sparse_scores(scores, self.candidates), [candidate])[candidate]

    def outcomes(self, x: Any) -> dict[int, float]:
        """Return the probabilities of all candidates, if they are not too many."""
        if self.candidates > _ENUMERATED:
            raise InputError(f"Laws are computed for at most {_ENUMERATED:,} candidates: ask for the chance of one.")
        return self._chances(read_sparse_scores(x, self.candidates), range(self.candidates))

    def _chances(self, listed: SparseScores, wanted: Sequence[int]) -> dict[int, float]:
        others, q = self._grouped(listed)
        y = self._exponents(others, q)
        weights = np.exp(y.min() - y)
        shares = weights / math.fsum(weights)
        known = dict(zip(listed.candidates.tolist(), shares.tolist(), strict=False))
        return {i: known.get(i, float(shares[-1]) / max(others, 1)) for i in wanted}

    def error(self, y: int, x: Any) -> float:
        """Return by how much the score of a candidate is below the best."""
        listed = read_sparse_scores(x, self.candidates)
        return float(self._grouped(listed)[1].max() - listed.of(y))

    def interval(self, level: float = 0.95) -> float:
        """Return the smallest whole t for which the score is within t of the best with that probability, at worst."""
        return self._plain.interval(level)

    # For audits

    def pairs(self) -> Sequence[tuple[dict[int, int], dict[int, int], int]]:
        """One candidate is far ahead and falls back (unless scores are monotone), another one gains."""
        even = math.ceil(self.scale * Fraction(1 + math.log(self.candidates)))
        ahead, less = even + math.ceil(_BEHIND * self.scale), even - math.ceil(self.scale)
        return [
            *(({0: ahead}, {0: ahead if self.monotone else ahead - d, 1: d}, d) for d in (1, 2)),
            ({0: even, 1: less}, {0: even + 1, 1: less}, 1),
        ]


examples = [
    SparseExponential(2, candidates=4),
    SparseExponential("1/3", candidates=3, monotone=True),
    SparseExponential(40, candidates=300),
    SparseExponential("5/2", candidates=2),
]
