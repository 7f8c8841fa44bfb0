"""Functions of texts, dates and numbers as SQL evaluates them: for no value can one of them fail.

`query.texts`, `query.moments`, `query.pattern` and `query.logarithm` say what they mean. Texts are cut before they are
joined, so that none grows without bound. Dates that would lie beyond the years 1 to 9999 are the first or the last day.
"""

import datetime
from collections.abc import Mapping, Sequence

from sqlglot import exp

from noisette.engines.sql.syntax import (
    binary,
    chain,
    choose,
    clamped,
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
from noisette.query import pattern, texts
from noisette.query.expression import Operation
from noisette.query.kind import Kind, Type
from noisette.query.logarithm import GRID, ROOTS, SCALE, TERMS
from noisette.query.moments import NAMES
from noisette.query.number_rules import partial, steps_to

__all__ = ["FUNCTIONS", "read_text"]


# Texts


def _function(node: type[exp.Func], *more: exp.Expr) -> Writer:
    extra = {"expression": more[0]} if more else {}
    return lambda parts, kind: node(this=parts[0].sql.copy(), **{name: arg.copy() for name, arg in extra.items()})


def _substring(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    text, start, length = (part.sql.copy() for part in parts)
    return exp.Substring(this=text, start=start, length=length)


def _short(text: exp.Expr) -> exp.Expr:
    return exp.Substring(this=text.copy(), start=number(1), length=number(texts.LONGEST))


def _concat(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    return _short(chain(exp.DPipe, [_short(part.sql) for part in parts]))


def _replace(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    text, old, new = (part.sql.copy() for part in parts)
    return _short(exp.Replace(this=_short(text), expression=old, replacement=new))


def _split_part(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    text, mark, place = (part.sql.copy() for part in parts)
    return exp.SplitPart(this=text, delimiter=mark, part_index=place)


def _matches(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    return _found(parts[0].sql, str(parts[1].constant))


def _found(text: exp.Expr, form: str) -> exp.Expr:
    return exp.RegexpLike(this=text.copy(), expression=exp.Literal.string(pattern.to_re2(form)))


def _as_text(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    part = parts[0]
    return exp.cast(part.as_integer() if part.kind.type == "integer" else part.sql, "VARCHAR")


def _reading(form: str, to: str) -> Writer:
    """A text as another type, where it has a form that all engines read alike; blanks around it do not matter."""

    def write(parts: Sequence[Written], kind: Kind) -> exp.Expr:
        return read_text(exp.Trim(this=parts[0].sql.copy(), expression=exp.Literal.string(" ")), form, to)

    return write


def read_text(text: exp.Expr, form: str, to: str) -> exp.Expr:
    """A text of some form as another type; NULL if it has another form."""
    return choose((_found(text, form), try_cast(text, to)), otherwise=exp.null())


def _try_date(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    read = _reading(texts.DATE, "DATE")(parts, kind)  # the year 0 is before the first date of others
    return choose((exp.GTE(this=read.copy(), expression=constant(datetime.date.min)), read), otherwise=exp.null())


# Dates


def _moment(part: Written) -> exp.Expr:
    """A moment within the years 1 to 9999: a timestamp that is read as a date, or the other way, may lie beyond.

    LEAST and GREATEST see to it, since an engine may turn a comparison with a cast into one that fails.
    """
    if part.kind.bounded:
        return part.sql
    first, last = (constant(end) for end in _ENDS[part.kind.type])
    return choose((is_null(part.sql), exp.null()), otherwise=least(greatest(part.sql, first), last))


_ENDS: dict[Type, tuple[datetime.date, datetime.date]] = {
    "date": (datetime.date.min, datetime.date.max),
    "timestamp": (datetime.datetime.min, datetime.datetime.max),
}


def _part(name: str) -> Writer:
    return lambda parts, kind: exp.Extract(this=exp.var(name), expression=_moment(parts[0]).copy())


def _named(part: str, names: Sequence[str]) -> Writer:
    """The name that a number stands for; of NULL, NULL."""

    def write(parts: Sequence[Written], kind: Kind) -> exp.Expr:
        found = _part(part)(parts, kind)
        each = ((binary(exp.EQ, found, number(n)), constant(name)) for n, name in enumerate(names, 1))
        return choose(*each, otherwise=exp.null())

    return write


def _typed(sql: exp.Expr, type: Type) -> exp.Expr:
    return exp.cast(sql, type.upper())


def _date_trunc(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    unit, at = str(parts[0].constant), _moment(parts[1])
    return _typed(exp.TimestampTrunc(this=at.copy(), unit=exp.var(unit.upper())), kind.type)


def _later(unit: str) -> Writer:
    def write(parts: Sequence[Written], kind: Kind) -> exp.Expr:
        by = exp.Interval(this=exp.Literal.string(str(parts[1].constant)), unit=exp.var(unit))
        moved = _typed(binary(exp.Add, _moment(parts[0]), by), kind.type)
        first, last = (constant(end) for end in _ENDS[kind.type])
        return clamped(moved, first, last, moved)

    return write


def _day_number(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    day = _moment(parts[0]) if parts[0].kind.type == "date" else _typed(_moment(parts[0]), "date")
    return binary(exp.Sub, day, constant(datetime.date.min))


def _strftime(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    return exp.Anonymous(this="strftime", expressions=[_moment(parts[0]).copy(), parts[1].sql.copy()])


# Numbers


def _modulo(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    """A remainder by 0 is NULL, and the sign of the divisor does not matter."""
    size = exp.Nullif(this=exp.Abs(this=parts[1].as_integer().copy()), expression=number(0))
    return binary(exp.Mod, parts[0].as_integer(), size)


def _round(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    """In whole steps of the number's own grid where it has one, so that halves are exactly halves."""
    own, value = parts[0].kind, parts[0].as_double()
    if kind.grid == own.grid or kind.grid is None:
        return value.copy()
    if (steps := steps_to(own, kind.grid)) is None:
        return snapped(value, kind.grid)
    fine, several = steps
    whole = rounded(scaled(value, 1 / fine))
    return positive_zero(scaled(rounded(binary(exp.Div, whole, number(float(several)))), kind.grid))


def _sqrt(parts: Sequence[Written], kind: Kind) -> exp.Expr:
    """No negative number comes near the root, where an engine might fail; it is NULL before."""
    value = parts[0].as_double()
    if partial("sqrt", [parts[0].kind]):
        value = choose((exp.LT(this=value.copy(), expression=number(0.0)), exp.null()), otherwise=value)
    return exp.Sqrt(this=value.copy())


def _logarithm(base: str) -> Writer:
    """Negative numbers become 0, and 0 NULL; GREATEST makes 0 of NULL as well."""

    def write(parts: Sequence[Written], kind: Kind) -> exp.Expr:
        root = parts[0].as_double()
        if partial("ln", [parts[0].kind]):
            root = exp.Nullif(this=greatest(root, number(0.0)), expression=number(0.0))
        for _ in range(ROOTS):
            root = exp.Sqrt(this=root.copy())
        s = binary(exp.Div, binary(exp.Sub, root, number(1.0)), binary(exp.Add, root, number(1.0)))
        square, series = binary(exp.Mul, s, s), number(0.0)
        for term in TERMS:
            series = binary(exp.Mul, binary(exp.Add, series, number(term)), square)
        first = binary(exp.Mul, binary(exp.Add, number(1.0), series), s)
        return snapped(binary(exp.Mul, first, number(SCALE[base])), GRID)

    return write


FUNCTIONS: Mapping[Operation, Writer] = {
    "modulo": _modulo,
    "round": _round,
    "sqrt": _sqrt,
    "ln": _logarithm("ln"),
    "log2": _logarithm("log2"),
    "log10": _logarithm("log10"),
    "lower": _function(exp.Lower),
    "upper": _function(exp.Upper),
    "trim": _function(exp.Trim, exp.Literal.string(" ")),
    "substring": _substring,
    "right": lambda parts, kind: exp.Right(this=parts[0].sql.copy(), expression=parts[1].sql.copy()),
    "length": _function(exp.Length),
    "concat": _concat,
    "replace": _replace,
    "split_part": _split_part,
    "matches": _matches,
    "as_text": _as_text,
    "try_integer": _reading(texts.INTEGER, "BIGINT"),
    "try_real": _reading(texts.REAL, "DOUBLE"),
    "try_date": _try_date,
    "year": _part("year"),
    "quarter": _part("quarter"),
    "month": _part("month"),
    "week": _part("week"),
    "day": _part("day"),
    "day_of_year": _part("doy"),
    "weekday": _part("isodow"),
    "hour": _part("hour"),
    "minute": _part("minute"),
    "second": _part("second"),
    "weekday_name": _named("isodow", NAMES["weekday"]),
    "month_name": _named("month", NAMES["month"]),
    "date_trunc": _date_trunc,
    "add_months": _later("MONTH"),
    "add_days": _later("DAY"),
    "add_seconds": _later("SECOND"),
    "day_number": _day_number,
    "as_date": lambda parts, kind: _typed(_moment(parts[0]), "date"),
    "as_timestamp": lambda parts, kind: _typed(_moment(parts[0]), "timestamp"),
    "strftime": _strftime,
}
"""How each function is written."""
