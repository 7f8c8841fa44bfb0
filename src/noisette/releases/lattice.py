"""Sums over some of the axes of a table, each measured with noise of its own, made consistent by least squares.

A margin s is the table summed over all axes that are not in s. It splits into residuals R_A, one for each set A of its
axes: the margin A less its means along each axis of A. The residual of A can be had from every margin s that has the
axes of A; from s its errors have the covariance sigma_s^2 n_(s-A) P_A, with P_A the projection on such tables and
n_(s-A) the number of cells that are added up. So least squares averages them, weighted by the inverse, and

    margin t = sum over A in t of R_A / n_(t-A),     variance of a cell = sum of v_A prod_A (1 - 1/n_k) / n_(t-A)^2

with v_A the inverse of the sum of weights. Residuals of different A are uncorrelated, and this is the unbiased linear
estimate of least variance; margins that were measured or not add up to each other.
[Gauss-Markov; the residuals are those of Xiao-He-Zhang-Kifer 2023]

Vocabulary: `axes` of a margin, ascending · `shape` of the whole table.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Axes", "consistent", "rolled_up", "variances"]

Axes: TypeAlias = tuple[int, ...]
Floats: TypeAlias = NDArray[np.float64]

_CUT = 2**62  # where sums are cut
_LOW = 31  # bits


def consistent(
    shape: Sequence[int], measured: Mapping[Axes, Floats], variance: Mapping[Axes, float], t: Axes
) -> Floats:
    """The margin t by least squares, from noisy margins (arrays with one dimension for each axis).

    >>> parts, whole = np.array([10.0, 20.0, 30.0]), np.array(66.0)
    >>> consistent((3,), {(0,): parts, (): whole}, {(0,): 1.0, (): 1.0}, (0,)).tolist()
    [11.5, 21.5, 31.5]
    """
    with_t = [s for s in measured if set(t) <= set(s)]
    if len(with_t) == len(measured) == 1:  # sums of whole numbers stay whole
        [s] = with_t
        return np.asarray(measured[s].sum(axis=tuple(i for i, k in enumerate(s) if k not in t)))
    found = np.zeros([shape[k] for k in t])
    for a in _subsets(t):
        weights = _weights(shape, variance, a)
        total = sum(weights.values())
        mean = sum(_residual(measured[s], s, a) * (w / total) for s, w in weights.items())
        wide = np.expand_dims(np.asarray(mean), tuple(i for i, k in enumerate(t) if k not in a))
        found = found + wide / _cells(shape, t, a)
    return np.asarray(found)


def variances(shape: Sequence[int], variance: Mapping[Axes, float], t: Axes) -> float:
    """The variance of each cell of the margin t.

    >>> round(variances((3,), {(0,): 1.0, (): 1.0}, (0,)), 4), variances((3,), {(0,): 1.0}, ())
    (0.75, 3.0)
    """
    found = 0.0
    for a in _subsets(t):
        spread = math.prod(1 - 1 / shape[k] for k in a)
        found += spread / sum(_weights(shape, variance, a).values()) / _cells(shape, t, a) ** 2
    return found


def _subsets(axes: Axes) -> Iterator[Axes]:
    return (some for size in range(len(axes) + 1) for some in combinations(axes, size))


def _cells(shape: Sequence[int], s: Axes, a: Axes) -> int:
    """How many cells of the margin s are added up to one of a."""
    return math.prod(shape[k] for k in s if k not in a)


def _weights(shape: Sequence[int], variance: Mapping[Axes, float], a: Axes) -> dict[Axes, float]:
    return {s: 1 / (v * _cells(shape, s, a)) for s, v in variance.items() if set(a) <= set(s)}


def _residual(margin: Floats, s: Axes, a: Axes) -> Floats:
    """The margin a of a margin s, less its means along each axis."""
    found = margin.sum(axis=tuple(i for i, k in enumerate(s) if k not in a))
    for axis in range(len(a)):
        found = found - found.mean(axis=axis, keepdims=True)
    return np.asarray(found)


# Exact sums


def rolled_up(numbers: NDArray[np.int64], shape: Sequence[int], axes: Axes) -> NDArray[np.int64]:
    """Whole numbers of all cells, in order, added up exactly to those of a margin; cut at +-2^62 as engines do.

    What follows the cells (the steps of a histogram) stays. A cut sum moves by no more than the sum itself.

    >>> rolled_up(np.array([1, 2, 3, 4, 5, 6]), (2, 3), (0,)).tolist()
    [6, 15]
    >>> rolled_up(np.array([2**62, 2**62, -(2**62)]), (3,), ()).tolist(), 2**62
    ([4611686018427387904], 4611686018427387904)
    """
    rest = numbers.shape[1:]
    table = numbers.reshape(*shape, *rest)
    others = tuple(k for k in range(len(shape)) if k not in axes)
    low = (table & (2**_LOW - 1)).sum(axis=others)
    high = (table >> _LOW).sum(axis=others) + (low >> _LOW)  # each exactly one number of base 2^31
    low = low & (2**_LOW - 1)
    most = 1 << (62 - _LOW)
    made = np.clip(high, -most, most - 1) * 2**_LOW + low
    made = np.where(high >= most, _CUT, np.where(high < -most, -_CUT, made))
    return np.asarray(made, np.int64).reshape(math.prod(shape[k] for k in axes), *rest)
