"""How a mechanism is asked: single numbers, arrays of independent numbers or vectors, and the lattice it answers on."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from noisette.audit.finding import Effort
from noisette.laws.law import half_width
from noisette.mechanisms import Threshold
from noisette.mechanisms.additive.answers import lattice_step

__all__ = ["Subject"]

Subject: TypeAlias = Any
"""A mechanism, with whatever it has beyond the protocol (grid, dimension, delta)."""


def is_procedure(m: Subject) -> bool:
    """Tell whether its release is not a number: it then states a law of outcomes."""
    return not hasattr(m, "pmf")


def is_vector(m: Subject) -> bool:
    """Tell whether one call answers for one vector: its numbers are not independent."""
    return hasattr(m, "dimension")


def is_table(m: Subject) -> bool:
    """Tell whether one answer is a table of counts."""
    return hasattr(m, "cells")


def is_choice(m: Subject) -> bool:
    """Tell whether one call answers for the scores of candidates, with one of them."""
    return hasattr(m, "candidates")


def is_whole(m: Subject) -> bool:
    """Tell whether it releases whole numbers."""
    return bool(getattr(m, "grid", 1) == 1)


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


def on_default_grid(m: Subject) -> Subject:
    """Return the same mechanism on the grid that it chooses by itself."""
    return replace(m, grid=None)


def plain(m: Subject, x: Any) -> Any:
    """Turn an answer of `pairs()` into what a user would pass: ints, floats, or lists of them."""
    if isinstance(x, Sequence):
        return [plain(m, v) for v in x]
    return int(x) if is_whole(m) else float(x)


def drawn(m: Subject, x: Any) -> Any:
    """Return the answer to draw releases of: x itself, or a table or scores whose law shows the size of the noise."""
    if is_table(m):
        return [math.ceil(4 * math.sqrt(m.variance()) / m.cells)] * m.cells
    if is_choice(m):
        return [math.ceil(m.scale) * i for i in range(m.candidates)]
    return plain(m, x)


def origin(m: Subject) -> Any:
    """Return an answer that lies on every lattice, and so high that no threshold is in its way."""
    if isinstance(m, Threshold):
        return m.threshold + half_width(m.law, 1 - 1e-14)
    if is_vector(m) or is_table(m):
        return [0] * (m.dimension if is_vector(m) else m.cells)
    if is_choice(m):
        return [0] * m.candidates
    return int(np.clip(0, getattr(m, "low", 0), getattr(m, "high", 0)))


def array_size(m: Subject, effort: Effort) -> int:
    """Return how many numbers an effort draws from the mechanism for one check."""
    if is_vector(m) or is_table(m) or is_choice(m):
        return effort.vector if is_vector(m) else effort.single
    return effort.array if is_dyadic(step(m)) else effort.slow_array


def many(m: Subject, x: Any, count: int) -> Any:
    """Draw `count` releases of x: with one call for an array, or one call for each vector or choice."""
    if is_vector(m) or is_choice(m):
        return one_by_one(m, x, count)
    return np.asarray(m(np.tile(x, (count, 1)) if is_table(m) else np.full(count, x)))


def one_by_one(m: Subject, x: Any, count: int) -> Any:
    """Draw `count` releases of x with as many calls."""
    return np.array([m(x) for _ in range(count)])
