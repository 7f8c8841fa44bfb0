"""What is known of an aggregate over the rows of one unit, as a sub-query with GROUP BY gives it."""

from dataclasses import replace
from fractions import Fraction

from noisette.errors import InputError
from noisette.query.expression import Call, Expression
from noisette.query.kind import Kind
from noisette.query.operations import kind_of, near_zero_in
from noisette.query.plan import Aggregate
from noisette.query.shape import Shape

__all__ = ["unit_aggregate"]


def unit_aggregate(aggregate: Aggregate, shape: Shape) -> Kind:
    """What is known of an aggregate over the rows of one unit, however many they are."""
    counted = Kind("integer", Fraction(0), None, Fraction(1), nullable=False)
    if aggregate.function == "rows":
        return counted
    if aggregate.of is None:
        raise InputError("A sub-query per unit can count rows, or take COUNT, SUM, AVG, MIN or MAX of a column.")
    if isinstance(aggregate.of, Call) and aggregate.of.operation == "pair":
        raise InputError("Within a sub-query per unit use COUNT, SUM, AVG, MIN or MAX.")
    kind = kind_of(aggregate.of, shape.columns)
    match aggregate.function, aggregate.at:
        case "count", _:
            return counted
        case "quantile", 0 | 1:
            return replace(kind, nullable=True)
        case "sum", _:
            return _summed(_bounded_number(aggregate.of, shape))
        case "mean", _:
            return replace(_bounded_number(aggregate.of, shape), type="real", grid=None, keys=None, nullable=True)
        case _:
            raise InputError("Within a sub-query per unit use COUNT, SUM, AVG, MIN or MAX.")


def _bounded_number(of: Expression, shape: Shape) -> Kind:
    kind = kind_of(of, shape.columns)
    if not kind.number:
        raise InputError("Only numbers can be added up.")
    if not kind.bounded:
        raise InputError(
            near_zero_in(of, shape.columns)
            or "Declare bounds for what is added up, or write LEAST(GREATEST(x, low), high)."
        )
    return kind


def _summed(kind: Kind) -> Kind:
    """The sum of any number of rows: at least 0 if none is negative, with no upper bound unless none is positive."""
    least, most = kind.ends
    low, high = Fraction(0) if least >= 0 else None, Fraction(0) if most <= 0 else None
    return Kind(kind.type, low, high, kind.grid, nullable=True)
