"""Covariance, correlation and the line of least squares, from noised sums of two values of each row.

With x and y measured from the middles of their bounds, and means over the rows in which both are not NULL,

    covariance      mean of x y less the product of the means
    correlation     covariance over the root of both variances, within [-1, 1]
    slope           covariance over the variance of the second value: y = intercept + slope x for (y, x)

Error bars. A quotient is bounded by Fieller's theorem, in which numerator and divisor share noise: all m for which
numerator - m divisor is within the half-width of its own error, to first order. What is beyond first order is added:
the product of two noisy means is off by up to the product of their half-widths, the square of one by its square.
Where a variance cannot be told from 0 there is no number.   [Fieller 1954]

Vocabulary: `mx`, `my` means from the middle · `vx`, `vy` variances · `c` covariance.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from noisette.errors import InputError
from noisette.query.estimate import Estimate, Floats, Noises
from noisette.query.expression import Call, Expression, Literal
from noisette.query.kind import Kind
from noisette.query.shape import Shape
from noisette.query.sums import bounded_number, half_width, kind_in, middle

__all__ = ["both_present", "correlation", "covariance", "determination", "intercept", "slope"]


def both_present(x: Expression, y: Expression, shape: Shape) -> tuple[Expression, Expression]:
    """Both values, each NULL where the other one is; a value that cannot vary is refused."""
    for value in (x, y):
        if not half_width(bounded_number(value, shape)):
            raise InputError("A value that is always the same has no covariance: write two columns that can vary.")
    return _where_present(x, y, shape), _where_present(y, x, shape)


def _where_present(x: Expression, other: Expression, shape: Shape) -> Expression:
    if not kind_in(other, shape).nullable or x == other:
        return x
    return Call("case", (Call("is_null", (other,)), Literal(None), x))


# Formulas


def covariance(needed: Sequence[Estimate], a: Kind, b: Kind) -> Estimate:
    """Of the group itself: divided by n."""
    x, y, xy, n = needed
    most = half_width(a) * half_width(b)
    return _covariance(x.over(n), y.over(n), xy.over(n)).within(Kind("real", -most, most))


def _covariance(mx: Estimate, my: Estimate, mxy: Estimate) -> Estimate:
    first = mxy - mx * my

    def bars(noises: Noises) -> tuple[Floats, Floats]:
        low, high = first.interval(noises)
        more = mx.half_width(noises) * my.half_width(noises)
        return low - more, high + more

    return Estimate(first.value, first.slopes, bars)


def _variance(mean: Estimate, squares: Estimate, kind: Kind) -> Estimate:
    half = float(half_width(kind))
    return (squares + Estimate.constant(half**2 / 2)).less_square(mean)


def correlation(needed: Sequence[Estimate], a: Kind, b: Kind) -> Estimate:
    """The covariance over the root of both variances."""
    x, y, xy, xx, yy, n = needed
    mx, my = x.over(n), y.over(n)
    c, vx, vy = _covariance(mx, my, xy.over(n)), _variance(mx, xx.over(n), a), _variance(my, yy.over(n), b)

    def excess(noises: Noises) -> tuple[Floats, Floats]:
        """Beyond first order, and without end where one of the variances may be 0."""
        hx, hy = mx.half_width(noises), my.half_width(noises)
        unknown = (vx.interval(noises)[0] <= 0) | (vy.interval(noises)[0] <= 0)
        root = np.sqrt(np.maximum(vx.value * vy.value, 0))
        return hx * hy, np.where(unknown, np.inf, root * (_beyond(vx, hx, noises) + _beyond(vy, hy, noises)))

    return c.clearly_over((vx * vy).root(), excess).within(Kind("real", Fraction(-1), Fraction(1)))


def _beyond(variance: Estimate, off: Floats, noises: Noises) -> Floats:
    """By which share the root of a variance is off beyond first order, where that variance is clear of 0."""
    known = np.where(variance.value > 0, variance.value, np.inf)
    return np.asarray((variance.half_width(noises) / known) ** 2 / 8 + off**2 / (2 * known))


def determination(needed: Sequence[Estimate], a: Kind, b: Kind) -> Estimate:
    """The square of the correlation: the share of the variance that the line explains."""
    r = correlation(needed, a, b)

    def bars(noises: Noises) -> tuple[Floats, Floats]:
        low, high = (end**2 for end in r.mirrored().interval(noises))
        return low, high

    free = r.free
    assert free is not None
    return Estimate(r.value**2, {name: 2 * r.value * s for name, s in r.slopes.items()}, bars, free)


def slope(needed: Sequence[Estimate], a: Kind, b: Kind) -> Estimate:
    """Of the line for the first value, over the second."""
    top, variance, excess = _line(needed, b)
    return top.clearly_over(variance, excess)


def intercept(needed: Sequence[Estimate], a: Kind, b: Kind) -> Estimate:
    """Of the line for the first value where the second is 0."""
    x, y, _, _, n = needed
    top, variance, excess = _line(needed, b)
    first, second = (value.over(n) + Estimate.constant(float(middle(kind))) for value, kind in ((x, a), (y, b)))

    def wider(noises: Noises) -> tuple[Floats, Floats]:
        more, less = excess(noises)
        each = [
            first.half_width(noises) * variance.half_width(noises),
            second.half_width(noises) * top.half_width(noises),
        ]
        return np.abs(second.value) * more + np.abs(first.value) * less + each[0] + each[1], less

    return (first * variance - second * top).clearly_over(variance, wider)


def _line(needed: Sequence[Estimate], b: Kind) -> tuple[Estimate, Estimate, Callable[[Noises], tuple[Floats, Floats]]]:
    """Numerator and divisor of the slope, and by how much they may be off beyond first order."""
    x, y, xy, yy, n = needed
    mx, my = x.over(n), y.over(n)
    variance = _variance(my, yy.over(n), b)

    def excess(noises: Noises) -> tuple[Floats, Floats]:
        h = my.half_width(noises)
        return mx.half_width(noises) * h, h**2

    return _covariance(mx, my, xy.over(n)), variance, excess
