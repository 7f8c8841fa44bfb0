"""Aggregates: each is one record of `AGGREGATES`, with its measures, its formula and how SQL calls it.

    rows, count, units              one measure
    distinct                        one measure, of declared keys alone where there are any
    sum                             steps of x
    mean                            c + sum of (x - c) / n, c the middle of the bounds: half the sensitivity of a
                                    sum; n is noised as well, since it is private too
    variance                        mean of (x - c)^2 less the square of the mean of (x - c)
    quantile                        a histogram, released by the exponential mechanism
    covariance, correlation, ...    sums of x - c, of y - c, of their product and of their squares, over the rows in
                                    which both are not NULL (`pairs`); these have two values, pair(x, y)

Vocabulary: `c` the middle of the bounds · `n` the rows in which x is not NULL · `s1`, `s2` sums of x - c and of
(x - c)^2 - m2, with m2 the middle of what a square can be.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from noisette.errors import InputError
from noisette.query.estimate import Estimate
from noisette.query.expression import Call, Expression, Literal
from noisette.query.intervals import step_bounds
from noisette.query.kind import Kind
from noisette.query.known import MANY
from noisette.query.measure import Contribution, Measure
from noisette.query.operations import kind_of
from noisette.query.pairs import both_present, correlation, covariance, determination, intercept, slope
from noisette.query.plan import Aggregate
from noisette.query.shape import Shape
from noisette.query.sums import (
    bounded_number,
    centred,
    half_width,
    histogram,
    kind_in,
    middle,
    present,
    products,
    squares,
    step,
    summed,
)

__all__ = [
    "AGGREGATES",
    "ANYTHING",
    "Definition",
    "Span",
    "estimate",
    "kinds_of",
    "measures_of",
    "of_kind",
    "of_pairs",
    "possible_values",
    "values_of",
    "vouching",
]

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


def vouching(aggregate: Aggregate, shape: Shape) -> Measure | None:
    """The number of rows that an aggregate's error bar rests on; None where it holds for any number of them."""
    if aggregate.of is None:
        return None
    return AGGREGATES[aggregate.function].vouching(aggregate.of, shape)


def estimate(
    aggregate: Aggregate, shape: Shape, part: Contribution, measured: Callable[[Measure], Estimate]
) -> Estimate:
    """An aggregate of each group, from its noised measures in natural units (steps times grid)."""
    needed = [measured(measure) for measure in measures_of(aggregate, shape, part)]
    if aggregate.of is None or len(needed) == 1:
        return needed[0]
    return AGGREGATES[aggregate.function].formula(needed, *kinds_of(aggregate.of, shape.columns))


def values_of(of: Expression) -> tuple[Expression, ...]:
    """What an aggregate is of: one value of a row, or two."""
    return of.arguments if isinstance(of, Call) and of.operation == "pair" else (of,)


def kinds_of(of: Expression, columns: Mapping[str, Kind]) -> tuple[Kind, ...]:
    """What is known of each of these values."""
    return tuple(kind_of(value, columns) for value in values_of(of))


def of_pairs(aggregate: Aggregate) -> bool:
    """Whether an aggregate has two values of each row."""
    return aggregate.function in AGGREGATES and AGGREGATES[aggregate.function].of_pairs


def possible_values(aggregate: Aggregate, columns: Mapping[str, Kind]) -> Span:
    """The ends between which an aggregate of a column lies without noise."""
    assert aggregate.of is not None
    return AGGREGATES[aggregate.function].span(*kinds_of(aggregate.of, columns))


# Measures


def _declared(x: Expression, shape: Shape) -> Expression:
    """The value where it is one of the declared keys, else NULL: what is no group of its own is not counted either."""
    kind = kind_in(x, shape)
    if kind.keys is None or kind.type == "boolean" or len(kind.keys) > MANY:
        return x
    return Call("case", (Call("in", (x, *map(Literal, kind.keys))), x, Literal(None)))


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
    low, high = step_bounds(kind, step(kind))
    return 0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf


# The table


@dataclass(frozen=True)
class Definition:
    """An aggregate of x, or of a pair: what is measured, the number made of it, and what that number can be.

    `measures` of x in a relation · `formula`: the number, from the noised measures and the kind of x · `span` of the
    number without noise, from the kind of x · `sql`: how SQL calls it, as sqlglot names its nodes · `of_pairs`: it has
    two values, and both kinds go to `formula` and `span` · `vouching`: the number of rows that its error bar rests on.
    """

    measures: Callable[[Expression, Shape], tuple[Measure, ...]]
    span: Callable[..., Span]
    sql: tuple[str, ...] = ()
    formula: Callable[..., Estimate] = lambda needed, *_: needed[0]
    of_pairs: bool = False
    vouching: Callable[[Expression, Shape], Measure | None] = lambda *_: None


def _spread(x: Expression, shape: Shape) -> tuple[Measure, ...]:
    return centred(x, shape), squares(x, shape), present(x, shape)


def _moments(*names: str) -> Callable[[Expression, Shape], tuple[Measure, ...]]:
    """The measures of a pair that a formula names, over the rows in which both values are not NULL."""

    def measures(of: Expression, shape: Shape) -> tuple[Measure, ...]:
        first, second = values_of(of)
        x, y = both_present(first, second, shape)
        known = {"x": centred(x, shape), "y": centred(y, shape), "xy": products(x, y, shape)}
        known |= {"xx": squares(x, shape), "yy": squares(y, shape), "n": present(x, shape)}
        return tuple(known[name] for name in names)

    return measures


def _pairs(of: Expression, shape: Shape) -> Measure:
    """The rows in which both values are not NULL."""
    (n,) = _moments("n")(of, shape)
    return n


def _largest_covariance(a: Kind, b: Kind) -> Span:
    most = float(half_width(a) * half_width(b))
    return -most, most


AGGREGATES: dict[str, Definition] = {
    "count": Definition(lambda x, shape: (present(x, shape),), lambda _: (0.0, math.inf)),
    "distinct": Definition(lambda x, shape: (Measure("distinct", _declared(x, shape)),), _different),
    "sum": Definition(lambda x, shape: (summed(x, bounded_number(x, shape)),), _one_sign, ("Sum",)),
    "mean": Definition(
        lambda x, shape: (centred(x, shape), present(x, shape)), of_kind, ("Avg",), _mean, vouching=present
    ),
    "variance": Definition(
        _spread,
        lambda kind: (0.0, float(half_width(kind)) ** 2),
        ("Variance", "VariancePop"),
        _variance,
        vouching=present,
    ),
    "deviation": Definition(
        _spread,
        lambda kind: (0.0, float(half_width(kind))),
        ("Stddev", "StddevPop", "StddevSamp"),
        lambda needed, kind: _variance(needed, kind).root(),
        vouching=present,
    ),
    "quantile": Definition(lambda x, shape: (histogram(x, bounded_number(x, shape)),), of_kind, vouching=present),
    "covariance": Definition(
        _moments("x", "y", "xy", "n"), _largest_covariance, ("CovarPop", "CovarSamp"), covariance, True, _pairs
    ),
    "correlation": Definition(
        _moments("x", "y", "xy", "xx", "yy", "n"), lambda a, b: (-1.0, 1.0), ("Corr",), correlation, True, _pairs
    ),
    "determination": Definition(
        _moments("x", "y", "xy", "xx", "yy", "n"), lambda a, b: (0.0, 1.0), ("RegrR2",), determination, True, _pairs
    ),
    "slope": Definition(
        _moments("x", "y", "xy", "yy", "n"), lambda a, b: ANYTHING, ("RegrSlope",), slope, True, _pairs
    ),
    "intercept": Definition(
        _moments("x", "y", "xy", "yy", "n"), lambda a, b: ANYTHING, ("RegrIntercept",), intercept, True, _pairs
    ),
    "pairs": Definition(_moments("n"), lambda a, b: (0.0, math.inf), ("RegrCount",), of_pairs=True),
}
"""The aggregates of one or two columns; `rows` and `units` have none. Slopes are of the first over the second."""
