"""Sums over the rows of a group, on public grids: what means, spreads and correlations are made of.

Vocabulary: `c` the middle of the bounds · `usual` the middle of what a square can be.
"""

from dataclasses import replace
from fractions import Fraction

from noisette.errors import InputError
from noisette.exact.number import floor_log2
from noisette.query.expression import Call, Expression, Literal
from noisette.query.intervals import step_bounds
from noisette.query.kind import Kind
from noisette.query.measure import Measure
from noisette.query.operations import kind_of, near_zero_in
from noisette.query.shape import Shape

__all__ = [
    "bounded_number",
    "centred",
    "half_width",
    "histogram",
    "kind_in",
    "middle",
    "present",
    "products",
    "squares",
    "step",
    "summed",
]

_STEPS = 30  # bits of a row's value that is summed: finer steps would change nothing that noise does not hide
_MOST_STEPS = 2**40
_CELLS = 4096  # candidates of a quantile


def kind_in(x: Expression, shape: Shape) -> Kind:
    """`kind_of` an expression over the columns of a shape, found once: aggregates ask for it again and again."""
    if x not in shape.kinds:
        shape.kinds[x] = kind_of(x, shape.columns)
    return shape.kinds[x]


def bounded_number(x: Expression, shape: Shape) -> Kind:
    """The kind of a number with bounds; what is added up or ranked must have them."""
    kind = kind_in(x, shape)
    if not kind.number:
        raise InputError("SUM, AVG, VARIANCE, STDDEV and quantiles need a number: COUNT works for anything.")
    if not kind.bounded:
        raise InputError(
            near_zero_in(x, shape.columns)
            or "What is added up or ranked needs bounds: declare them in the policy, buy them with bounds(column, "
            "spend=...) or `noisette buy bounds`, or write LEAST(GREATEST(x, low), high)."
        )
    return kind


def present(x: Expression, shape: Shape) -> Measure:
    """The rows in which x is not NULL."""
    return Measure("count", x) if kind_in(x, shape).nullable else Measure("rows")


def step(kind: Kind, most: int = _MOST_STEPS, bits: int = _STEPS) -> Fraction:
    """The kind's own grid, doubled until its steps are not too many; without a grid, 2^-bits of its size."""
    low, high = kind.ends
    size = max(high - low, abs(low), abs(high))
    if kind.grid is None:
        return Fraction(2) ** (floor_log2(size) - bits) if size else Fraction(1)
    excess = size / kind.grid / most
    return kind.grid if excess <= 1 else kind.grid * (1 << floor_log2(excess) + 1)


def summed(x: Expression, kind: Kind) -> Measure:
    """The steps of x, added up."""
    grid = step(kind)
    return Measure("sum", x, grid, *step_bounds(kind, grid))


def middle(kind: Kind) -> Fraction:
    """The middle of the bounds, from which means and variances are measured."""
    grid = step(kind)
    return round(sum(kind.ends) / 2 / grid) * grid


def centred(x: Expression, shape: Shape) -> Measure:
    """The sum of x - c: half the sensitivity of a sum."""
    c = middle(bounded_number(x, shape))
    less = Call("subtract", (x, Literal(c)))
    return summed(less if c else x, kind_in(less, shape) if c else bounded_number(x, shape))


def squares(x: Expression, shape: Shape) -> Measure:
    """The square of x - c less the middle of what it can be."""
    kind = bounded_number(x, shape)
    half = half_width(kind)
    usual = half**2 / 2
    difference = Call("subtract", (x, Literal(middle(kind))))
    squared = Call("subtract", (Call("multiply", (difference, difference)), Literal(usual)))
    known = replace(kind_in(squared, shape), low=-usual, high=half**2 - usual, grid=None, keys=None)
    return summed(squared, known)


def products(x: Expression, y: Expression, shape: Shape) -> Measure:
    """The sum of (x - c) times the same of y, each within its own half-width of 0; NULL where one of them is."""
    kinds = bounded_number(x, shape), bounded_number(y, shape)
    from_middle = (Call("subtract", (e, Literal(middle(kind)))) for e, kind in zip((x, y), kinds, strict=True))
    product = Call("multiply", tuple(from_middle))
    most = half_width(kinds[0]) * half_width(kinds[1])
    return summed(product, replace(kind_in(product, shape), low=-most, high=most, grid=None, keys=None))


def half_width(kind: Kind) -> Fraction:
    """The furthest that a value can be from the middle of its bounds."""
    (low, high), c = kind.ends, middle(kind)
    return max(high - c, c - low)


def histogram(x: Expression, kind: Kind) -> Measure:
    """How many rows there are at each of a few thousand steps."""
    grid = step(kind, most=_CELLS, bits=_CELLS.bit_length() - 2)
    return Measure("histogram", x, grid, *step_bounds(kind, grid))
