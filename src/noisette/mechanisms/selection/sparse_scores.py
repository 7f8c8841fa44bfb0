"""Scores of a few candidates out of very many: how they are read, and which candidates they leave out.

The scores are a mapping {candidate: score}, or a pair (candidates, scores) of sequences of equal length: arrays are the
fast way. Candidates are 0 .. size-1, each listed at most once; those that are not listed have score 0. No error here
quotes a candidate or a score.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import choice
from noisette.mechanisms.additive.answers import integer_answer

__all__ = ["Listed", "read_listed"]

_MOST = 2**62
_FORM = "Pass the scores as a mapping {candidate: score}, or as two sequences of equal length: candidates and scores."


@dataclass(frozen=True)
class Listed:
    """Candidates and their scores, in the order given; `ordered` has the candidates in ascending order."""

    candidates: NDArray[Any]
    scores: NDArray[np.int64]
    ordered: NDArray[Any]

    def __len__(self) -> int:
        return len(self.candidates)

    def of(self, candidate: Any) -> int:
        """Return a candidate's score.

        >>> read_listed({5: 3}, 2**64).of(5), read_listed({5: 3}, 2**64).of(6)
        (3, 0)
        """
        return int(self.scores[self.candidates == candidate].sum())

    def unlisted(self, rank: int) -> int:
        """Return the candidate that is not listed with so many such candidates below it.

        >>> [read_listed({0: 7, 2: 1}, 5).unlisted(rank) for rank in range(3)]
        [1, 3, 4]
        """
        return rank + bisect_right(range(len(self)), rank, key=lambda j: int(self.ordered[j]) - j)


def read_listed(x: Any, size: int) -> Listed:
    """Read the scores of some of the candidates 0 .. size-1.

    >>> read_listed({3: 1, 2**63: -4}, 2**64).scores.tolist()
    [1, -4]
    """
    if isinstance(x, Mapping):
        x = list(x.keys()), list(x.values())
    if not isinstance(x, tuple | list) or len(x) != 2 or not all(map(_is_sequence, x)):
        raise InputError(_FORM)
    if len(x[0]) != len(x[1]):
        raise InputError(_FORM)
    if not len(x[0]):
        return Listed(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    if len(x[0]) >= choice.LARGEST:
        raise InputError(f"Fewer than {choice.LARGEST:,} candidates can be listed: leave out those with score 0.")
    candidates, scores = _candidates(x[0], size), _scores(x[1])
    return Listed(candidates, scores, _ordered(candidates))


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
