"""The columns of a workload matrix: their exact norms, at array speed."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError

__all__ = ["Matrix", "integer_columns", "longest"]

Matrix: TypeAlias = NDArray[Any] | Sequence[Sequence[int | float | Fraction]]


def integer_columns(matrix: Matrix) -> tuple[NDArray[Any], Fraction]:
    """The columns of W as rows of Python integers without a common factor, and the unit that they count."""
    try:
        rows = matrix if isinstance(matrix, np.ndarray) else np.array(matrix, dtype=object)
    except ValueError:
        rows = np.empty(0)
    if rows.ndim != 2 or rows.size == 0:
        raise InputError("A workload must be a matrix: one row for each query, one column for each cell.")
    entries = rows.T.ravel().tolist()
    known = (int, float, Fraction, np.integer, np.floating)
    if not all(issubclass(kind, known) and kind is not bool for kind in set(map(type, entries))):
        raise InputError("A workload must hold ints, floats or Fractions: write 1 for true and 0 for false.")
    try:
        ratios = [(int(v), 1) if isinstance(v, np.integer) else v.as_integer_ratio() for v in entries]
    except (OverflowError, ValueError):
        raise InputError("A workload must hold finite numbers: replace every NaN and infinity.") from None
    unit = math.lcm(*{q for _, q in ratios})
    wholes = [p * (unit // q) for p, q in ratios]
    factor = math.gcd(*wholes) or 1
    columns = np.array([w // factor for w in wholes], dtype=object).reshape(rows.shape[::-1])
    return columns, Fraction(factor, unit)


def longest(columns: NDArray[Any], p: int, replace: bool) -> int:
    """The largest sum of |c|^p over columns c, or over differences c of two; p = 0 counts the entries that are not 0.

    Floats hold whole numbers below 2^53, and their sums, exactly. For larger ones floats only choose candidates: with
    entries of at most 1 a float sum is off by less than (k + 8)^2 2^-49, and every difference that is the longest
    within that error is measured again in whole numbers.
    """
    (m, k), top = columns.shape, int(abs(columns).max())
    columns = np.vstack([columns, np.zeros((1, k), dtype=object)])  # a column is its difference from zero
    if p == 0:  # only equality matters, so number the values
        numbers = {value: i for i, value in enumerate(set(columns.ravel().tolist()))}
        columns = np.array([[numbers[value] for value in row] for row in columns])
    exact = p == 0 or k * (2 * top) ** p < 2**53
    near = (columns if exact else columns / top).astype(float)
    slack, lead, best = (k + 8) ** 2 / 2**48, 0.0, 0
    for j in range(1, m) if replace else [m]:
        lengths = _lengths(near[:j] - near[j], p)
        lead = max(lead, float(lengths.max()))
        if not exact:
            close = np.flatnonzero(lengths >= lead - slack)
            best = max([best, *_lengths(columns[close] - columns[j], p).tolist()])
    return int(lead) if exact else best


def _lengths(differences: NDArray[Any], p: int) -> NDArray[Any]:
    powers = differences != 0 if p == 0 else abs(differences) if p == 1 else differences**2
    return np.asarray(powers.sum(axis=1))
