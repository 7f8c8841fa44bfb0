"""How a mechanism of each kind is asked: with a number, an array, a vector, a table or scores, and on which lattice."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from noisette.audit.finding import Effort
from noisette.mechanisms.additive.lattice import lattice_step
from noisette.mechanisms.contract import Output

__all__ = ["ENUMERATED", "Subject", "scaled"]

Subject: TypeAlias = Any
"""A mechanism, with whatever its kind has beyond the common contract."""

ENUMERATED = frozenset(Output) - {Output.OUTCOME}
"""The kinds whose law is a pmf."""


def is_vector(m: Subject) -> bool:
    """Tell whether one call answers for one vector: its numbers are not independent."""
    return bool(m.kind is Output.VECTOR)


def is_whole(m: Subject) -> bool:
    """Tell whether it releases whole numbers."""
    return bool(m.kind not in (Output.NUMBERS, Output.VECTOR) or m.grid == 1)


def step(m: Subject, count: int = 1) -> Fraction:
    """Return the step of the lattice that an answer of `count` numbers is released on.

    >>> from noisette.mechanisms import Laplace
    >>> step(Laplace(1, grid="1/8")), step(Laplace(1, grid="1/8"), 4)
    (Fraction(1, 8), Fraction(1, 32))
    """
    if is_whole(m):
        return Fraction(1)
    return Fraction(m.step) if is_vector(m) else lattice_step(m.grid, count, m.norm)


def is_dyadic(size: Fraction) -> bool:
    """Tell whether a step is a power of two, for which arrays are released fast."""
    return math.log2(size.numerator).is_integer() and math.log2(size.denominator).is_integer()


def for_count(m: Subject, count: int) -> Subject:
    """Return the mechanism whose single numbers have the law of one number out of `count`."""
    return m if step(m, count) == step(m) or is_vector(m) else replace(m, grid=step(m, count))


def plain(m: Subject, x: Any) -> Any:
    """Turn an answer of `pairs()` into what a user would pass: ints, floats, or lists of them."""
    if isinstance(x, Sequence):
        return [plain(m, v) for v in x]
    return int(x) if is_whole(m) else float(x)


def drawn(m: Subject, x: Any) -> Any:
    """Return the answer to draw releases of: x itself, or a table or scores whose law shows the size of the noise."""
    match m.kind:
        case Output.TABLE:
            return [math.ceil(4 * math.sqrt(m.variance()) / m.cells)] * m.cells
        case Output.CHOICE:
            return [math.ceil(m.scale) * i for i in range(m.candidates)]
        case _:
            return plain(m, x)


def origin(m: Subject) -> Any:
    """Return an answer of numbers or of a vector that lies on every lattice."""
    return [0] * m.dimension if is_vector(m) else 0


def array_size(m: Subject, effort: Effort) -> int:
    """Return how many releases an effort draws from the mechanism for one check."""
    match m.kind:
        case Output.VECTOR:
            return effort.vector
        case Output.TABLE | Output.CHOICE:
            return effort.single
        case _:
            return effort.array if is_dyadic(step(m)) else effort.slow_array


def many(m: Subject, x: Any, count: int) -> Any:
    """Draw `count` releases of x: with one call for an array, or one call for each vector or choice."""
    match m.kind:
        case Output.VECTOR | Output.CHOICE:
            return one_by_one(m, x, count)
        case Output.TABLE:
            return np.asarray(m(np.tile(x, (count, 1))))
        case _:
            return np.asarray(m(np.full(count, x)))


def one_by_one(m: Subject, x: Any, count: int) -> Any:
    """Draw `count` releases of x with as many calls."""
    return np.array([m(x) for _ in range(count)])


def scaled(m: Subject, factor: Fraction) -> Subject:
    """Return an honest mechanism of the same kind with noise of another size."""
    size = getattr(m, m.sized_by)
    return replace(m, **{m.sized_by: size / factor if m.sized_by == "epsilon" else size * factor})
