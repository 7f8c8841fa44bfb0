"""Expressions over one row as SQL evaluates them: typed syntax trees, never pasted text.

Whatever the rows hold, nothing here can fail, and every result keeps what `operations.kind_of` promises. Numbers are
calculated in doubles, which do not overflow into errors; where a grid is not a binary fraction, each result is rounded
back to it. Integers that are only compared or picked stay integers. A stored column is cleaned once, by `normalised`
in `stored`; all expressions see clean values under quoted names.

    missing: conditions of which one holds just where the value is NULL, written from the columns themselves, so that
    LEAST and GREATEST can give NULL for NULL without writing their arguments twice
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from noisette.engines.sql.functions import FUNCTIONS
from noisette.engines.sql.stored import normalised
from noisette.engines.sql.syntax import (
    any_of,
    binary,
    chain,
    choose,
    clamped,
    column,
    constant,
    greatest,
    is_null,
    least,
    number,
    positive_zero,
    rounded,
    scaled,
    snapped,
    try_cast,
)
from noisette.engines.sql.written import Writer, Written
from noisette.exact.number import floor_log2
from noisette.query.expression import Call, Expression, Literal, Name, Operation
from noisette.query.intervals import exact, half_away, step_bounds
from noisette.query.kind import Kind
from noisette.query.number_rules import partial
from noisette.query.operations import kind_of, kind_of_call, kind_of_leaf
from noisette.query.rules import case_parts

__all__ = ["WRITERS", "normalised", "to_engine", "to_steps"]


def to_engine(expression: Expression, scope: Mapping[str, Kind]) -> exp.Expr:
    """The expression over columns named as in `scope`; integers with bounds come as BIGINT, reals as DOUBLE.

    >>> age = Kind("integer", Fraction(0), Fraction(120))
    >>> to_engine(Call("at_least", (Name("p.age"), Literal(18))), {"p.age": age}).sql("duckdb")
    '("p.age" >= 18)'
    """
    kind = kind_of(expression, scope)
    written = _write(expression, scope)
    if kind.type == "integer" and kind.bounded and isinstance(expression, Call):
        return try_cast(written.sql, "BIGINT")
    return written.as_double() if kind.type == "real" else written.sql


def to_steps(expression: Expression, kind: Kind, grid: Fraction, scope: Mapping[str, Kind]) -> exp.Expr:
    """The whole number of grid steps nearest to a value, within those of `kind` (`intervals.step_bounds`), as BIGINT.

    Halves are rounded away from 0, NULL stays NULL. Integers in steps of 1 are clamped without doubles.

    >>> age = Kind("integer", Fraction(0), Fraction(120))
    >>> to_steps(Name("age"), age, Fraction(1), {"age": age}).sql("duckdb")
    '"age"'
    >>> half = Kind("integer", Fraction(0), Fraction(60))
    >>> to_steps(Name("age"), half, Fraction(1), {"age": age}).sql("duckdb")
    'CASE WHEN "age" < 0 THEN 0 WHEN "age" > 60 THEN 60 ELSE TRY_CAST("age" AS BIGINT) END'
    """
    low, high = step_bounds(kind, grid)
    own = kind_of(expression, scope)
    if own.type == "integer" and grid == 1:
        steps = whole = to_engine(expression, scope)
    else:
        steps = scaled(_write(expression, scope).as_double(), 1 / grid)
        whole = rounded(steps)
    if _already_within(own, low, high, grid):
        return whole if own.type == "integer" and grid == 1 else try_cast(whole, "BIGINT")
    return clamped(steps, number(low), number(high), try_cast(whole, "BIGINT"))


def _already_within(own: Kind, low: int, high: int, grid: Fraction) -> bool:
    """Whether an expression's own bounds see to it: scaled by a power of two, doubles keep their order exactly."""
    if own.low is None or own.high is None or floor_log2(grid) != -floor_log2(1 / grid):
        return False
    return low <= half_away(own.low / grid) and half_away(own.high / grid) <= high


def _write(expression: Expression, scope: Mapping[str, Kind]) -> Written:
    match expression:
        case Name(name):
            kind = kind_of_leaf(expression, scope)
            return Written(column(name), kind, (is_null(column(name)),) if kind.nullable else (), kind.type == "real")
        case Literal(value):
            kind = kind_of_leaf(expression, scope)
            return Written(constant(value), kind, (exp.true(),) if value is None else (), kind.type == "real")
        case Call(operation, arguments):
            parts = [_write(argument, scope) for argument in arguments]
            kind = kind_of_call(expression, tuple(part.kind for part in parts))
            sql = WRITERS[operation](parts, kind)
            missing = _missing(operation, parts, sql) if kind.nullable else ()
            mixed = operation in PICKING and any(part.double for part in parts)
            return Written(sql, kind, missing, operation in DOUBLES or kind.type == "real" or mixed)


# One writer for each operation


def _arithmetic(node: type[exp.Binary]) -> Writer:
    def write(parts: Sequence[Written], kind: Kind) -> exp.Expr:
        sql = binary(node, parts[0].as_double(), parts[1].as_double())
        if kind.grid is not None and not all(exact(part.kind) for part in parts):
            return snapped(sql, kind.grid)
        return sql if node in (exp.Add, exp.Sub) else positive_zero(sql)

    return write


def _divided(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    """A divisor of 0 is NULL, and so is the quotient."""
    if not partial("divide", [part.kind for part in parts]):
        return _arithmetic(exp.Div)(parts, kind)
    divisor = exp.Nullif(this=parts[1].as_double().copy(), expression=number(0.0))
    return _arithmetic(exp.Div)([parts[0], replace(parts[1], sql=divisor, double=True)], kind)


def _rounding(node: type[exp.Func]) -> Writer:
    def write(parts: Sequence[Written], kind: Kind) -> exp.Expr:
        return positive_zero(node(this=parts[0].as_double().copy()))

    return write


def _picking(pick: Callable[..., exp.Expr]) -> Writer:
    def write(parts: Sequence[Written], kind: Kind) -> exp.Expr:
        sql = pick(*(part.sql for part in parts))
        missing = _together(parts)
        return choose((any_of(missing), exp.null()), otherwise=sql) if missing else sql

    return write


def _infix(node: type[exp.Binary]) -> Writer:
    return lambda parts, kind: binary(node, parts[0].sql, parts[1].sql)


def _connecting(node: type[exp.Binary]) -> Writer:
    return lambda parts, kind: chain(node, [part.sql for part in parts])


def _in(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    return exp.Paren(this=exp.In(this=parts[0].sql.copy(), expressions=[part.sql.copy() for part in parts[1:]]))


def _case(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    conditions, values = case_parts(parts)
    branches = [(c.sql, v.sql) for c, v in zip(conditions, values[:-1], strict=True)]
    return choose(*branches, otherwise=values[-1].sql)


def _coalesce(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    return exp.Coalesce(this=parts[0].sql.copy(), expressions=[part.sql.copy() for part in parts[1:]])


WRITERS: Mapping[Operation, Writer] = {
    "add": _arithmetic(exp.Add),
    "subtract": _arithmetic(exp.Sub),
    "multiply": _arithmetic(exp.Mul),
    "divide": _divided,
    "negate": lambda parts, kind: binary(exp.Sub, number(0.0), parts[0].as_double()),
    "abs": _rounding(exp.Abs),
    "floor": _rounding(exp.Floor),
    "ceil": _rounding(exp.Ceil),
    "least": _picking(least),
    "greatest": _picking(greatest),
    "equal": _infix(exp.EQ),
    "unequal": _infix(exp.NEQ),
    "less": _infix(exp.LT),
    "at_most": _infix(exp.LTE),
    "more": _infix(exp.GT),
    "at_least": _infix(exp.GTE),
    "and": _connecting(exp.And),
    "or": _connecting(exp.Or),
    "not": lambda parts, kind: exp.Paren(this=exp.Not(this=parts[0].sql.copy())),
    "is_null": lambda parts, kind: is_null(parts[0].sql),
    "in": _in,
    "like": _infix(exp.Like),
    "case": _case,
    "coalesce": _coalesce,
    **FUNCTIONS,
}

DOUBLES = ("add", "subtract", "multiply", "divide", "negate", "abs", "floor", "ceil", "round")
"""These come as DOUBLE, even where they are whole numbers."""

PICKING = ("least", "greatest", "case", "coalesce")
"""These come as DOUBLE where one of their values does."""


# Where a value is NULL


def _missing(operation: Operation, parts: Sequence[Written], sql: exp.Expr) -> tuple[exp.Expr, ...]:
    match operation:
        case "case":
            conditions, values = case_parts(parts)
            branches = [(c.sql, _somewhere(v)) for c, v in zip(conditions, values[:-1], strict=True)]
            return (choose(*branches, otherwise=_somewhere(values[-1])),)
        case "coalesce":
            return (chain(exp.And, [_somewhere(part) for part in parts]),)
        case "and" | "or":
            return (is_null(sql),)
        case "modulo" | "try_integer" | "try_real" | "try_date":
            return (is_null(sql),)
        case _ if partial(operation, [part.kind for part in parts]):
            return (*_together(parts), _undefined(operation, parts))
        case _:
            return _together(parts)


def _undefined(operation: Operation, parts: Sequence[Written]) -> exp.Expr:
    """Whether an operation has no value of numbers that are not NULL."""
    node, part = {"divide": (exp.EQ, parts[-1]), "sqrt": (exp.LT, parts[0])}.get(operation, (exp.LTE, parts[0]))
    return binary(node, part.sql, number(0))


def _somewhere(part: Written) -> exp.Expr:
    return any_of(part.missing) if part.missing else exp.false()


def _together(parts: Sequence[Written]) -> tuple[exp.Expr, ...]:
    return tuple(dict.fromkeys(condition for part in parts for condition in part.missing))
