"""Aggregates of one unit's rows, in a sub-query that makes one row of them: counts, extremes, sums and means."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from noisette.engines.sql.expressions import to_engine, to_steps
from noisette.engines.sql.syntax import binary, clamped, number, scaled, try_cast
from noisette.query.intervals import most_steps, sum_grid
from noisette.query.kind import Kind
from noisette.query.operations import declared, kind_of
from noisette.query.plan import Aggregate

__all__ = ["WithinUnit"]


class WithinUnit:
    """An aggregate of one unit's rows: what is computed of each row, and the number made of them.

    A sum is one of whole grid steps, which no order of the rows can change; it stays within 2^52 and within 2^52 steps.
    """

    argument: exp.Expr | None
    result: Callable[[exp.Expr], exp.Expr]

    def __init__(self, aggregate: Aggregate, scope: Mapping[str, Kind]) -> None:
        self.argument = None
        if aggregate.function == "rows" or aggregate.of is None:
            self.result = lambda _: exp.Count(this=exp.Star())
            return
        kind = kind_of(aggregate.of, scope)
        grid = sum_grid(kind)
        match aggregate.function:
            case "count":
                self.result = lambda x: exp.Count(this=x)
            case "quantile":
                self.result = (lambda x: exp.Max(this=x)) if aggregate.at else (lambda x: exp.Min(this=x))
            case "sum":
                self.result = lambda x: _sum(x, kind, grid)
            case _:
                self.result = lambda x: _mean(x, kind, grid)
        summed = aggregate.function in ("sum", "mean")
        self.argument = to_steps(aggregate.of, kind, grid, scope) if summed else to_engine(aggregate.of, scope)


def _sum(steps: exp.Expr, kind: Kind, grid: Fraction) -> exp.Expr:
    total, most = exp.Sum(this=steps), most_steps(kind, grid)
    within = clamped(total, number(-most), number(most), total)
    return try_cast(within, "BIGINT") if kind.type == "integer" else scaled(exp.cast(within, "DOUBLE"), grid)


def _mean(steps: exp.Expr, kind: Kind, grid: Fraction) -> exp.Expr:
    total, count = exp.cast(exp.Sum(this=steps), "DOUBLE"), exp.cast(exp.Count(this=steps.copy()), "DOUBLE")
    mean = scaled(binary(exp.Div, total, count), grid)
    low, high = declared(replace(kind, type="real", grid=None, keys=None)).ends
    return clamped(mean, number(float(low)), number(float(high)), mean)
