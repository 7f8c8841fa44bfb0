"""Answers on a lattice: how true answers are read, rounded to a public grid and given integer noise, exactly.

Real answers are rounded to the nearest multiple of a public step before noise is added. Rounding moves two answers at
most one step further apart in each coordinate, so an answer of n numbers uses a step that is finer by n (l1) or sqrt(n)
(l2): in all, rounding never costs more than one `grid`, whatever the shape.   |r(a) - r(b)| <= |a - b| + 1 for any
rounding r to nearest integers.

No error here quotes an answer.
"""

import math
import numbers
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.integers import Integers, added
from noisette.exact.vector import LARGEST_SCALE
from noisette.laws.law import Law, half_width
from noisette.mechanisms.calibration import slack
from noisette.mechanisms.contract import Mechanism, Output

__all__ = [
    "Answer",
    "OnLattice",
    "drawable",
    "integer_answer",
    "lattice_pairs",
    "lattice_point",
    "real_answer",
    "release_integers",
    "release_reals",
]

Answer: TypeAlias = Any
Noise: TypeAlias = Callable[[Fraction, tuple[int, ...] | None], int | Integers]
"""(step, shape) -> integer noise in units of the step; one integer for shape None."""

_EXACT = 2.0**62
_LARGEST = 1e300


def _array(x: Answer) -> NDArray[Any]:
    if isinstance(x, np.ma.MaskedArray) or _holds_truth_values(x):
        raise InputError("The answer must consist of numbers: replace truth values and masked entries first.")
    try:
        array = np.asarray(x)
    except (ValueError, TypeError):
        raise InputError("The answer must be a number or an array of numbers, with rows of equal length.") from None
    if array.size == 0:
        raise InputError("The answer is empty: pass at least one number.")
    if array.dtype == object and all(isinstance(v, numbers.Real | Decimal) for v in array.flat):
        if not any(isinstance(v, bool | np.bool_) for v in array.flat):
            return array
    elif array.dtype.kind in "iuf":
        return array
    raise InputError("The answer must consist of numbers: turn truth values and texts into numbers first.")


def _holds_truth_values(x: Answer) -> bool:
    """Tell whether a list has a truth value among its numbers, which numpy would take for 0 or 1."""
    return isinstance(x, bool) or (isinstance(x, list | tuple) and any(map(_holds_truth_values, x)))


def integer_answer(x: Answer) -> Integers:
    """Read whole numbers (of an integer type); anything else is refused.

    >>> integer_answer([1, 2, 3])
    array([1, 2, 3])
    """
    array = _array(x)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.dtype == object and all(isinstance(v, numbers.Integral) for v in array.flat):
        return array
    if array.dtype.kind == "u":
        return array.astype(np.int64) if array.max() < 2**63 else array.astype(object)
    raise InputError("The answer must be whole numbers of an integer type: use Laplace or Gaussian for real answers.")


def real_answer(x: Answer) -> NDArray[Any]:
    """Read finite real numbers as floats, or as exact Python numbers where floats would not hold them."""
    array = _array(x)
    if array.dtype == object or (array.dtype.kind in "iu" and np.abs(array.astype(float)).max() >= 2**53):
        return _objects([_exact(v) for v in array.astype(object).flat], array.shape)
    floats = array.astype(float)
    if not (np.abs(floats) <= _LARGEST).all():
        raise InputError("The answer must be finite, below 1e300: replace NaN and infinite values before asking.")
    return floats


def _objects(values: list[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def _exact(value: Any) -> Fraction:
    if not isinstance(value, numbers.Rational | Decimal):
        value = float(value)
    finite = value.is_finite() if isinstance(value, Decimal) else not isinstance(value, float) or math.isfinite(value)
    if not finite or abs(value) > _LARGEST:
        raise InputError("The answer must be finite, below 1e300: replace NaN and infinite values before asking.")
    return Fraction(value)


def lattice_step(grid: Fraction, count: int, norm: float) -> Fraction:
    """Return the step for an answer of `count` numbers: grid / 2^k, so fine that rounding costs at most one grid.

    >>> [str(lattice_step(Fraction(1, 4), 3, norm)) for norm in (1, 2, math.inf)]
    ['1/16', '1/8', '1/4']
    """
    if norm == math.inf:
        return grid
    halvings = (count - 1).bit_length()
    return grid / (1 << (halvings if norm == 1 else (halvings + 1) // 2))


def drawable(size: Fraction, grid: Fraction, shape: tuple[int, ...] | None) -> Fraction:
    """Return the noise's size in lattice steps; refuse what is too fine for the sampler, in the caller's terms.

    >>> drawable(Fraction(2) ** 61, Fraction(1, 2**30), (10, 10**6))
    Traceback (most recent call last):
        ...
    noisette.errors.InputError: The grid is too fine for an answer of 10,000,000 numbers with so much noise:
    release it in parts, or choose a coarser grid than 1/1073741824.
    """
    if size > LARGEST_SCALE:
        raise InputError(
            f"The grid is too fine for an answer of {math.prod(shape or ()):,} numbers with so much noise: "
            f"release it in parts, or choose a coarser grid than {grid}."
        )
    return size


def _power_of_two(step: Fraction) -> int | None:
    """k if step = 2^k."""
    p, q = step.numerator, step.denominator
    return p.bit_length() - q.bit_length() if p & (p - 1) == 0 and q & (q - 1) == 0 else None


def to_lattice(x: NDArray[Any], step: Fraction) -> Integers:
    """Round each number to the nearest multiple of the step; return the multiples."""
    k = _power_of_two(step)
    if x.dtype != object and k is not None:
        with np.errstate(over="ignore"):
            scaled = np.ldexp(x, -k)  # exact: a change of the exponent
        if np.abs(scaled).max() < _EXACT:
            return np.asarray(np.rint(scaled).astype(np.int64))
    return _objects([round(Fraction(v) / step) for v in x.flat], x.shape)


def from_lattice(y: Integers, step: Fraction) -> NDArray[np.float64]:
    """Turn multiples of the step into floats; rounding them is post-processing."""
    k = _power_of_two(step)
    if y.dtype != object and k is not None:
        return np.asarray(np.ldexp(y.astype(float), k))
    return np.array([float(int(v) * step) for v in y.flat]).reshape(y.shape)


def release_integers(x: Answer, noise: Noise) -> Any:
    """Add integer noise to whole numbers: an int for a single one, an array for an array."""
    if type(x) is int:
        return x + int(noise(Fraction(1), None))
    answer = integer_answer(x)
    y = added(answer, np.asarray(noise(Fraction(1), answer.shape)))
    return y if np.ndim(x) else y.item()


def release_reals(x: Answer, grid: Fraction, norm: float, noise: Noise) -> Any:
    """Round real numbers to the lattice and add noise there: a float for a single one, an array for an array."""
    answer = real_answer(x)
    step = lattice_step(grid, answer.size, norm)
    y = from_lattice(added(to_lattice(answer, step), np.asarray(noise(step, answer.shape))), step)
    return y if np.ndim(x) else float(y)


# What mechanisms with a grid share: integer noise on its multiples


def lattice_point(x: Any, grid: Fraction) -> int:
    """Return the multiple of the grid to which a single number is rounded."""
    return round(Fraction(x) / grid)


def lattice_pairs(grid: Fraction, steps: Sequence[int]) -> list[tuple[Any, Any, Fraction]]:
    """Return answers whose lattice points are `steps` apart although they are hardly one grid less apart themselves."""
    if grid == 1:
        return [(0, n, Fraction(n)) for n in steps]
    hair = grid / 2**40
    return [(grid / 2 - hair, (n - 1) * grid + grid / 2 + hair, (n - 1) * grid + 2 * hair) for n in steps]


class OnLattice(Mechanism):
    """A mechanism with a `grid` and, in its units, the `law` of the noise on a single number."""

    kind = Output.NUMBERS
    grid: Fraction

    @property
    def law(self) -> Law:
        """The law of the noise on a single number, in grid units."""
        raise NotImplementedError

    def pmf(self, y: Any, x: Any) -> Any:
        """P(the single number x is released as y), for one y or an array of them: 0 off the grid."""
        places = np.vectorize(lambda v: float(Fraction(v) / self.grid), [float])(y)
        nearest = np.rint(places)
        on_grid = np.abs(places - nearest) <= 1e-9 * np.maximum(1, np.abs(places))
        return np.where(on_grid, self.law.pmf(nearest - lattice_point(x, self.grid)), 0.0)[()]

    def variance(self) -> float:
        """The noise's variance; rounding adds at most grid^2 / 4."""
        return self.law.variance() * float(self.grid) ** 2

    def interval(self, level: float = 0.95) -> float:
        """Return a t with P(|error| <= t) >= level: the noise's half-width, and half a grid for rounding."""
        return float((half_width(self.law, level) + slack(self.grid) / self.grid / 2) * self.grid)

    def pairs(self) -> Sequence[tuple[Any, Any, Fraction]]:
        """Neighbours that rounding moves one grid further apart."""
        return lattice_pairs(self.grid, [1, 3])

    def support(self, x: Any) -> Any:
        """Lattice points within the noise's 1e-14 quantiles."""
        reach, centre = half_width(self.law, 1 - 1e-14), lattice_point(x, self.grid)
        return np.array([float(k * self.grid) for k in range(centre - reach, centre + reach + 1)])
