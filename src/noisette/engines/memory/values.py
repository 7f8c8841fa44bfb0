"""What stored values and expressions mean.

A clean integer is an int, a real a float, NULL is None; dates and timestamps are Python's. Reals are IEEE doubles, so
that every engine gets the same bits. `sql.stored` and `sql.expressions` write the same meaning as SQL.
"""

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from noisette.engines.contract import CLEAN, FLOATS, TEXTS, base_type
from noisette.query import formats, moments, pattern, texts
from noisette.query.expression import Call, Expression, Literal, Name, Operation
from noisette.query.intervals import exact
from noisette.query.kind import Kind
from noisette.query.logarithm import logarithm
from noisette.query.number_rules import steps_to
from noisette.query.operations import declared, kind_of, kind_of_call, kind_of_leaf
from noisette.query.rules import case_parts
from noisette.query.variants import widened

__all__ = ["clamped", "clean", "is_inside", "scaled", "steps_of", "value_of"]

Each: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""The value of one row."""

_MOST = 2**63 - 1
_DAY = 86_400_000_000  # microseconds
_EPOCH = datetime.datetime(1970, 1, 1)
_DAYS = [(day - _EPOCH.date()).days for day in (datetime.date.min, datetime.date.max)]
_INFINITE = {"date": 2**31 - 1, "timestamp": 2**63 - 1}


# Stored values


def clean(value: Any, kind: Kind, stored: str) -> Any:
    """The clean value of a stored one (`sql.stored` has the table); dates come as days, timestamps as microseconds.

    >>> pay = Kind("real", Fraction(0), Fraction(9), Fraction(1, 4))
    >>> [clean(x, pay, "DOUBLE") for x in (-0.0, 1.3, math.inf, math.nan)]
    [0.0, 1.25, 9.0, None]
    """
    return _clean(value, declared(kind), stored)


def _clean(value: Any, kind: Kind, stored: str) -> Any:
    """The same of a kind whose bounds and grid are those that values get."""
    base = base_type(stored)
    if value is not None and base in TEXTS and kind.type != "text":
        value, base = _said(value, kind), CLEAN[kind.type]
    if value is None or (base in FLOATS and math.isnan(value)):
        return None if kind.nullable else _substitute(kind)
    match kind.type:
        case "integer":
            return _integer(value, kind)
        case "real":
            low, high = (None if end is None else float(end) for end in (kind.low, kind.high))
            at = clamped(float(value), low, high, None)
            return _snapped(float(value), kind.grid) if at is None else at
        case "date" | "timestamp":
            return _moment(value, kind, base)
        case _:
            return value if kind.recode is None else kind.recode(value)


def is_inside(value: Any, kind: Kind, stored: str) -> bool:
    """Whether a stored value is not beyond the bounds, once it is on the grid; NULL is not.

    >>> pay = Kind("real", Fraction(0), Fraction(9), Fraction(1, 4))
    >>> [is_inside(x, pay, "DOUBLE") for x in (-0.1, 9.12, 9.13, math.inf, math.nan, None)]
    [True, True, False, False, True, True]
    """
    kind = declared(kind)
    found = _clean(value, widened(kind), stored)
    low, high = (None if end is None else _as_clean(end, kind) for end in (kind.low, kind.high))
    return found is None or not ((low is not None and found < low) or (high is not None and found > high))


def _as_clean(end: Fraction, kind: Kind) -> Any:
    """A bound as clean values are."""
    return (float(end) if kind.type == "real" else int(end)) if kind.number else _as_moment(int(end), kind)


def _said(text: str, kind: Kind) -> Any:
    """What a text says as another type, as it would be stored then; None if it does not."""
    read = texts.READERS[kind.type] if kind.format is None else formats.reader(kind.format, time=kind.type != "date")
    value = read(text)
    if isinstance(value, datetime.datetime):
        return (value - _EPOCH) // datetime.timedelta(microseconds=1)
    return (value - _EPOCH.date()).days if isinstance(value, datetime.date) else value


def _substitute(kind: Kind) -> Any:
    """What stands for NULL in a column that is declared to have none."""
    nearest = clamped(Fraction(0), kind.low, kind.high, Fraction(0))
    kinds: dict[str, Any] = {"text": "", "boolean": False, "integer": int(nearest), "real": float(nearest)}
    return kinds[kind.type] if kind.type in kinds else _as_moment(int(nearest), kind)


def _integer(value: Any, kind: Kind) -> int:
    limited = clamped(value, -_MOST, _MOST, value) if abs(value) > _MOST + 1 else value
    whole = min(_half_away(limited), _MOST)
    low, high = (None if end is None else int(end) for end in (kind.low, kind.high))
    coarse = kind.grid is not None and kind.grid > 1
    return int(clamped(whole, low, high, _snapped(float(whole), kind.grid) if coarse else whole))


def _moment(value: int, kind: Kind, base: str) -> Any:
    """A day or a microsecond, which may be stored as the other one."""
    infinite = abs(value) == _INFINITE["date" if base == "DATE" else "timestamp"]
    if not infinite and (base == "DATE") != (kind.type == "date"):
        value = value // _DAY if kind.type == "date" else value * _DAY
    low, high = (None if end is None else int(end) for end in (kind.low, kind.high))
    if infinite and (low if value < 0 else high) is None:
        return None
    first, last = _DAYS if kind.type == "date" else (_DAYS[0] * _DAY, (_DAYS[1] + 1) * _DAY - 1)
    return _as_moment(clamped(value, low, high, clamped(value, first, last, value)), kind)


def _as_moment(at: int, kind: Kind) -> datetime.date:
    if kind.type == "date":
        return _EPOCH.date() + datetime.timedelta(at)
    return _EPOCH + datetime.timedelta(microseconds=at)


# Numbers


def clamped(value: Any, low: Any, high: Any, inside: Any) -> Any:
    """`inside`, or the bound that the value is beyond."""
    if low is not None and value < low:
        return low
    return high if high is not None and value > high else inside


def _half_away(value: Any) -> int:
    """The nearest whole number, halves away from 0."""
    size = int(abs(value))
    size += int(abs(value) - size >= Fraction(1, 2))
    return size if value >= 0 else -size


def scaled(value: float, by: Fraction) -> float:
    """A double times a fraction, by its numerator and then by its denominator."""
    return value * float(by.numerator) / float(by.denominator)


def _snapped(value: float, grid: Fraction | None) -> float:
    """The double nearest to the nearest multiple of a grid; -0.0 becomes 0.0."""
    if grid is None:
        return value + 0.0
    return scaled(float(_half_away(scaled(value, 1 / grid))), grid) + 0.0


def steps_of(expression: Expression, grid: Fraction, low: int, high: int, scope: Mapping[str, Kind]) -> Each:
    """The whole number of grid steps nearest to a value, between two ends."""
    value, kind = value_of(expression, scope), kind_of(expression, scope)
    if kind.type == "integer" and grid == 1:
        return lambda row: None if (x := value(row)) is None else clamped(x, low, high, x)

    def steps(row: Mapping[str, Any]) -> int | None:
        x = value(row)
        if x is None:
            return None
        at = scaled(float(x), 1 / grid)
        return int(clamped(at, low, high, at if math.isinf(at) else _half_away(at)))

    return steps


# Expressions


@dataclass(frozen=True)
class _Meaning:
    of: Each
    kind: Kind


def value_of(expression: Expression, scope: Mapping[str, Kind]) -> Each:
    """The value of an expression for a row: bounded integers as int, reals as float.

    >>> age = Kind("integer", Fraction(0), Fraction(120))
    >>> value_of(Call("divide", (Name("age"), Literal(2))), {"age": age})({"age": 5})
    2.5
    """
    kind, found = kind_of(expression, scope), _meaning(expression, scope)
    to = float if kind.type == "real" else int if kind.type == "integer" and isinstance(expression, Call) else None
    return found.of if to is None else lambda row: None if (x := found.of(row)) is None else to(x)


def _meaning(expression: Expression, scope: Mapping[str, Kind]) -> _Meaning:
    match expression:
        case Name(name):
            return _Meaning(lambda row: row[name], kind_of_leaf(expression, scope))
        case Literal(value):
            constant = float(value) if isinstance(value, Fraction) else value
            return _Meaning(lambda row: constant, kind_of_leaf(expression, scope))
        case Call(operation, arguments):
            parts = [_meaning(argument, scope) for argument in arguments]
            kind = kind_of_call(expression, tuple(part.kind for part in parts))
            if operation in _LOOKING:
                look = _LOOKING[operation]
                return _Meaning(lambda row: look([part.of(row) for part in parts]), kind)
            function = _function(operation, parts, kind)
            return _Meaning(lambda row: _strict(function, [part.of(row) for part in parts]), kind)


def _strict(function: Callable[..., Any], values: list[Any]) -> Any:
    """Of NULL, NULL."""
    return None if None in values else function(*values)


def _function(operation: Operation, parts: Sequence[_Meaning], kind: Kind) -> Callable[..., Any]:
    if operation == "round":
        return _rounding(parts[0].kind, kind)
    return _arithmetic(operation, parts, kind) if operation in _ARITHMETIC else _STRICT[operation]


def _rounding(own: Kind, kind: Kind) -> Callable[[Any, int], float]:
    """In whole steps of the number's own grid where it has one, so that halves are exactly halves."""
    grid = kind.grid
    if grid is None or grid == own.grid:
        return lambda x, digits: float(x)
    if (steps := steps_to(own, grid)) is None:
        return lambda x, digits: _snapped(float(x), grid)
    fine, several = steps
    return lambda x, digits: scaled(float(_half_away(_half_away(scaled(float(x), 1 / fine)) / several)), grid) + 0.0


def _arithmetic(operation: Operation, parts: Sequence[_Meaning], kind: Kind) -> Callable[..., float | None]:
    """In doubles, rounded back to the grid where the parts are not exact; NULL by 0."""
    function, grid = _ARITHMETIC[operation], kind.grid
    snap = None if all(exact(part.kind) for part in parts) else grid

    def calculated(a: Any, b: Any) -> float | None:
        found = function(float(a), float(b))
        return None if found is None else _snapped(found, snap)

    return calculated


def _whole(rounding: Callable[[float], int]) -> Callable[[Any], float]:
    return lambda x: float(x) if math.isinf(x) else float(rounding(float(x))) + 0.0


def _logarithm(base: str) -> Callable[[Any], float | None]:
    return lambda x: logarithm(float(x), base) if x > 0 else None


def _like(text: str, pattern: str) -> bool:
    letters = [{"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern]
    return re.fullmatch("".join(letters), text, re.DOTALL) is not None


def _case(values: list[Any]) -> Any:
    conditions, results = case_parts(values)
    return next((result for condition, result in zip(conditions, results, strict=False) if condition), results[-1])


def _connected(decisive: bool) -> Callable[[list[Any]], bool | None]:
    """AND and OR: one value decides; else NULL if there is one."""
    return lambda values: decisive if decisive in values else None if None in values else not decisive


_ARITHMETIC: dict[Operation, Callable[[float, float], float | None]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b if b else None,
}
_LOOKING: dict[Operation, Callable[[list[Any]], Any]] = {
    "and": _connected(False),
    "or": _connected(True),
    "is_null": lambda values: values[0] is None,
    "case": _case,
    "coalesce": lambda values: next((value for value in values if value is not None), None),
}
_STRICT: dict[Operation, Callable[..., Any]] = {
    "negate": lambda x: 0.0 - float(x),
    "abs": lambda x: abs(float(x)),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "least": min,
    "greatest": max,
    "equal": lambda a, b: a == b,
    "unequal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "at_most": lambda a, b: a <= b,
    "more": lambda a, b: a > b,
    "at_least": lambda a, b: a >= b,
    "not": lambda x: not x,
    "in": lambda x, *others: x in others,
    "like": _like,
    "modulo": lambda x, n: None if n == 0 else int(math.copysign(1, x)) * (abs(int(x)) % abs(int(n))),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else None,
    **{base: _logarithm(base) for base in ("ln", "log2", "log10")},
    "matches": pattern.found,
    "lower": texts.letter_by_letter(str.lower),
    "upper": texts.letter_by_letter(str.upper),
    "trim": lambda text: text.strip(" "),
    "substring": texts.substring,
    "right": texts.right,
    "length": len,
    "concat": texts.joined,
    "replace": texts.replaced,
    "split_part": texts.part,
    "as_text": texts.as_text,
    "try_integer": texts.read_integer,
    "try_real": texts.read_real,
    "try_date": texts.read_date,
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "week": lambda day: day.isocalendar().week,
    "day": lambda day: day.day,
    "day_of_year": lambda day: day.timetuple().tm_yday,
    "weekday": lambda day: day.isoweekday(),
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "second": lambda moment: moment.second,
    "weekday_name": lambda day: moments.NAMES["weekday"][day.weekday()],
    "month_name": lambda day: moments.NAMES["month"][day.month - 1],
    "date_trunc": moments.truncated,
    "add_months": moments.months_later,
    "add_days": moments.days_later,
    "add_seconds": moments.seconds_later,
    "day_number": moments.day_number,
    "as_date": lambda moment: datetime.date(moment.year, moment.month, moment.day),
    "as_timestamp": lambda at: (
        at if isinstance(at, datetime.datetime) else datetime.datetime.combine(at, _EPOCH.time())
    ),
    "strftime": moments.formatted,
}
