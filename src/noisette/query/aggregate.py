"""Each aggregate as measures to be noised, and as a formula over the noised ones.

    rows, count, units              one measure
    distinct                        one measure, of declared keys alone where there are any
    sum                             steps of x
    mean                            c + sum of (x - c) / n, c the middle of the bounds: half the sensitivity of a
                                    sum; n is noised as well, since it is private too
    variance                        mean of (x - c)^2 less the square of the mean of (x - c)
    quantile                        a histogram, released by the exponential mechanism

Vocabulary: `c` the middle of the bounds · `n` the rows in which x is not NULL · `s1`, `s2` sums of x - c and of
(x - c)^2 - m2, with m2 the middle of what a square can be.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from noisette.errors import InputError
from noisette.exact.number import floor_log2
from noisette.query.estimate import Estimate
from noisette.query.expression import Call, Expression, Literal
from noisette.query.intervals import step_bounds
from noisette.query.kind import Kind
from noisette.query.measure import Contribution, Measure
from noisette.query.operations import kind_of
from noisette.query.plan import Aggregate
from noisette.query.rules import MANY
from noisette.query.stability import Shape

__all__ = ["estimate", "measures_of", "middle"]

_STEPS = 30  # bits of a row's value that is summed: finer steps would change nothing that noise does not hide
_MOST_STEPS = 2**40
_CELLS = 4096  # candidates of a quantile


def measures_of(aggregate: Aggregate, shape: Shape, part: Contribution) -> tuple[Measure, ...]:
    """What has to be measured for an aggregate."""
    x = aggregate.of
    match aggregate.function:
        case "rows":
            return (Measure("rows"),)
        case "units":
            return (Measure("rows" if part.rows == 1 else "units"),)
        case "distinct":
            return (Measure("distinct", _declared(_given(x), shape)),)
        case "count":
            return (_counted(_given(x), shape),)
        case "sum":
            return (_summed(_given(x), _number(x, shape)),)
        case "mean":
            return (_centred(_given(x), shape), _counted(_given(x), shape))
        case "variance" | "deviation":
            return (_centred(_given(x), shape), _squares(_given(x), shape), _counted(_given(x), shape))
        case "quantile":
            return (_histogram(_given(x), _number(x, shape)),)
        case _:
            assert_never(aggregate.function)


def _declared(x: Expression, shape: Shape) -> Expression:
    """The value where it is one of the declared keys, else NULL: what is no group of its own is not counted either."""
    kind = kind_of(x, shape.columns)
    if kind.keys is None or kind.type == "boolean" or len(kind.keys) > MANY:
        return x
    return Call("case", (Call("in", (x, *map(Literal, kind.keys))), x, Literal(None)))


def _given(x: Expression | None) -> Expression:
    if x is None:
        raise InputError("This aggregate needs a column, such as SUM(age).")
    return x


def _number(x: Expression | None, shape: Shape) -> Kind:
    """The kind of a number with bounds; what is added up or ranked must have them."""
    kind = kind_of(_given(x), shape.columns)
    if not kind.number:
        raise InputError("SUM, AVG, VARIANCE, STDDEV and quantiles need a number: COUNT works for anything.")
    if not kind.bounded:
        raise InputError(
            "What is added up or ranked needs bounds: declare them in the policy, buy them with bounds(column, "
            "spend=...) or `noisette buy bounds`, or write LEAST(GREATEST(x, low), high)."
        )
    return kind


def _counted(x: Expression, shape: Shape) -> Measure:
    return Measure("count", x) if kind_of(x, shape.columns).nullable else Measure("rows")


def _step(kind: Kind, most: int = _MOST_STEPS, bits: int = _STEPS) -> Fraction:
    """The kind's own grid, doubled until its steps are not too many; without a grid, 2^-bits of its size."""
    assert kind.low is not None
    assert kind.high is not None
    size = max(kind.high - kind.low, abs(kind.low), abs(kind.high))
    if kind.grid is None:
        return Fraction(2) ** (floor_log2(size) - bits) if size else Fraction(1)
    excess = size / kind.grid / most
    return kind.grid if excess <= 1 else kind.grid * (1 << floor_log2(excess) + 1)


def _summed(x: Expression, kind: Kind) -> Measure:
    grid = _step(kind)
    return Measure("sum", x, grid, *step_bounds(kind, grid))


def middle(kind: Kind) -> Fraction:
    """The middle of the bounds, from which means and variances are measured."""
    assert kind.low is not None
    assert kind.high is not None
    grid = _step(kind)
    return round((kind.low + kind.high) / 2 / grid) * grid


def _centred(x: Expression, shape: Shape) -> Measure:
    c = middle(_number(x, shape))
    centred = Call("subtract", (x, Literal(c)))
    return _summed(centred if c else x, kind_of(centred, shape.columns) if c else _number(x, shape))


def _squares(x: Expression, shape: Shape) -> Measure:
    """The square of x - c less the middle of what it can be."""
    kind = _number(x, shape)
    half = _reach(kind)
    usual = half**2 / 2
    difference = Call("subtract", (x, Literal(middle(kind))))
    square = Call("subtract", (Call("multiply", (difference, difference)), Literal(usual)))
    known = replace(kind_of(square, shape.columns), low=-usual, high=half**2 - usual, grid=None, keys=None)
    return _summed(square, known)


def _reach(kind: Kind) -> Fraction:
    assert kind.low is not None
    assert kind.high is not None
    c = middle(kind)
    return max(kind.high - c, c - kind.low)


def _histogram(x: Expression, kind: Kind) -> Measure:
    grid = _step(kind, most=_CELLS, bits=_CELLS.bit_length() - 2)
    return Measure("histogram", x, grid, *step_bounds(kind, grid))


# Formulas


def estimate(
    aggregate: Aggregate, shape: Shape, part: Contribution, measured: Callable[[Measure], Estimate]
) -> Estimate:
    """An aggregate of each group, from its noised measures in natural units (steps times grid)."""
    needed = [measured(measure) for measure in measures_of(aggregate, shape, part)]
    match aggregate.function:
        case "rows" | "units" | "distinct" | "count" | "sum" | "quantile":
            return needed[0]
        case "mean":
            s1, n = needed
            kind = _number(aggregate.of, shape)
            return (s1.over(n) + Estimate.constant(float(middle(kind)))).within(kind)
        case "variance" | "deviation":
            s1, s2, n = needed
            half = float(_reach(_number(aggregate.of, shape)))
            spread = s2.over(n) + Estimate.constant(half**2 / 2)
            variance = spread.less_square(s1.over(n)).within(Kind("real", Fraction(0), Fraction(half) ** 2))
            return variance if aggregate.function == "variance" else variance.root()
        case _:
            assert_never(aggregate.function)
