"""Aggregates: each is one record of `AGGREGATES`, with its measures, its formula and how SQL calls it.

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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

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

__all__ = ["AGGREGATES", "ANYTHING", "Definition", "Span", "estimate", "half_width", "measures_of", "middle", "of_kind"]

_STEPS = 30  # bits of a row's value that is summed: finer steps would change nothing that noise does not hide
_MOST_STEPS = 2**40
_CELLS = 4096  # candidates of a quantile

Span: TypeAlias = tuple[float, float]
"""The ends between which a number without noise lies, by declarations alone."""

ANYTHING: Span = (-math.inf, math.inf)


def measures_of(aggregate: Aggregate, shape: Shape, part: Contribution) -> tuple[Measure, ...]:
    """What has to be measured for an aggregate."""
    if aggregate.of is not None:
        return AGGREGATES[aggregate.function].measures(aggregate.of, shape)
    if aggregate.function not in ("rows", "units"):
        raise InputError("This aggregate needs a column, such as SUM(age).")
    return (Measure("units" if aggregate.function == "units" and part.rows > 1 else "rows"),)


def estimate(
    aggregate: Aggregate, shape: Shape, part: Contribution, measured: Callable[[Measure], Estimate]
) -> Estimate:
    """An aggregate of each group, from its noised measures in natural units (steps times grid)."""
    needed = [measured(measure) for measure in measures_of(aggregate, shape, part)]
    if aggregate.of is None or len(needed) == 1:
        return needed[0]
    return AGGREGATES[aggregate.function].formula(needed, kind_of(aggregate.of, shape.columns))


# Measures


def _declared(x: Expression, shape: Shape) -> Expression:
    """The value where it is one of the declared keys, else NULL: what is no group of its own is not counted either."""
    kind = kind_of(x, shape.columns)
    if kind.keys is None or kind.type == "boolean" or len(kind.keys) > MANY:
        return x
    return Call("case", (Call("in", (x, *map(Literal, kind.keys))), x, Literal(None)))


def _number(x: Expression, shape: Shape) -> Kind:
    """The kind of a number with bounds; what is added up or ranked must have them."""
    kind = kind_of(x, shape.columns)
    if not kind.number:
        raise InputError("SUM, AVG, VARIANCE, STDDEV and quantiles need a number: COUNT works for anything.")
    if not kind.bounded:
        raise InputError(
            "What is added up or ranked needs bounds: declare them in the policy, buy them with bounds(column, "
            "spend=...) or `noisette buy bounds`, or write LEAST(GREATEST(x, low), high)."
        )
    return kind


def _present(x: Expression, shape: Shape) -> Measure:
    """The rows in which x is not NULL."""
    return Measure("count", x) if kind_of(x, shape.columns).nullable else Measure("rows")


def _step(kind: Kind, most: int = _MOST_STEPS, bits: int = _STEPS) -> Fraction:
    """The kind's own grid, doubled until its steps are not too many; without a grid, 2^-bits of its size."""
    low, high = kind.ends
    size = max(high - low, abs(low), abs(high))
    if kind.grid is None:
        return Fraction(2) ** (floor_log2(size) - bits) if size else Fraction(1)
    excess = size / kind.grid / most
    return kind.grid if excess <= 1 else kind.grid * (1 << floor_log2(excess) + 1)


def _summed(x: Expression, kind: Kind) -> Measure:
    grid = _step(kind)
    return Measure("sum", x, grid, *step_bounds(kind, grid))


def middle(kind: Kind) -> Fraction:
    """The middle of the bounds, from which means and variances are measured."""
    grid = _step(kind)
    return round(sum(kind.ends) / 2 / grid) * grid


def _centred(x: Expression, shape: Shape) -> Measure:
    c = middle(_number(x, shape))
    centred = Call("subtract", (x, Literal(c)))
    return _summed(centred if c else x, kind_of(centred, shape.columns) if c else _number(x, shape))


def _squares(x: Expression, shape: Shape) -> Measure:
    """The square of x - c less the middle of what it can be."""
    kind = _number(x, shape)
    half = half_width(kind)
    usual = half**2 / 2
    difference = Call("subtract", (x, Literal(middle(kind))))
    square = Call("subtract", (Call("multiply", (difference, difference)), Literal(usual)))
    known = replace(kind_of(square, shape.columns), low=-usual, high=half**2 - usual, grid=None, keys=None)
    return _summed(square, known)


def half_width(kind: Kind) -> Fraction:
    """The furthest that a value can be from the middle of its bounds."""
    (low, high), c = kind.ends, middle(kind)
    return max(high - c, c - low)


def _histogram(x: Expression, kind: Kind) -> Measure:
    grid = _step(kind, most=_CELLS, bits=_CELLS.bit_length() - 2)
    return Measure("histogram", x, grid, *step_bounds(kind, grid))


# Formulas


def _mean(needed: Sequence[Estimate], kind: Kind) -> Estimate:
    s1, n = needed
    return (s1.over(n) + Estimate.constant(float(middle(kind)))).within(kind)


def _variance(needed: Sequence[Estimate], kind: Kind) -> Estimate:
    s1, s2, n = needed
    half = float(half_width(kind))
    spread = s2.over(n) + Estimate.constant(half**2 / 2)
    return spread.less_square(s1.over(n)).within(Kind("real", Fraction(0), Fraction(half) ** 2))


# What a number can be


def of_kind(kind: Kind) -> Span:
    """The bounds of a number."""
    if not kind.number:
        return ANYTHING
    return -math.inf if kind.low is None else float(kind.low), math.inf if kind.high is None else float(kind.high)


def _different(kind: Kind) -> Span:
    """At most as many different values as there can be; declared keys are counted alone only if they are few."""
    listed = kind.keys is not None and kind.type != "boolean"
    return 0.0, math.inf if kind.count is None or (listed and kind.count > MANY) else float(kind.count)


def _one_sign(kind: Kind) -> Span:
    low, high = step_bounds(kind, _step(kind))
    return 0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf


# The table


@dataclass(frozen=True)
class Definition:
    """An aggregate of x: what is measured, the number made of it, and what that number can be.

    `measures` of x in a relation · `formula`: the number, from the noised measures and the kind of x · `span` of the
    number without noise, from the kind of x · `sql`: how SQL calls it, as sqlglot names its nodes of one argument.
    """

    measures: Callable[[Expression, Shape], tuple[Measure, ...]]
    span: Callable[[Kind], Span]
    sql: tuple[str, ...] = ()
    formula: Callable[[Sequence[Estimate], Kind], Estimate] = lambda needed, kind: needed[0]


def _spread(x: Expression, shape: Shape) -> tuple[Measure, ...]:
    return _centred(x, shape), _squares(x, shape), _present(x, shape)


AGGREGATES: dict[str, Definition] = {
    "count": Definition(lambda x, shape: (_present(x, shape),), lambda _: (0.0, math.inf)),
    "distinct": Definition(lambda x, shape: (Measure("distinct", _declared(x, shape)),), _different),
    "sum": Definition(lambda x, shape: (_summed(x, _number(x, shape)),), _one_sign, ("Sum",)),
    "mean": Definition(lambda x, shape: (_centred(x, shape), _present(x, shape)), of_kind, ("Avg",), _mean),
    "variance": Definition(
        _spread, lambda kind: (0.0, float(half_width(kind)) ** 2), ("Variance", "VariancePop"), _variance
    ),
    "deviation": Definition(
        _spread,
        lambda kind: (0.0, float(half_width(kind))),
        ("Stddev", "StddevPop", "StddevSamp"),
        lambda needed, kind: _variance(needed, kind).root(),
    ),
    "quantile": Definition(lambda x, shape: (_histogram(x, _number(x, shape)),), of_kind),
}
"""The aggregates of a column; `rows` and `units` have none."""
