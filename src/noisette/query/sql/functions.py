"""Functions of SQL as operations of a plan: which parts of a node are read, and what is made of them.

Sugar stays here: LEFT is a SUBSTRING, ILIKE compares lower letters, DATE_DIFF is a difference of numbers of days,
months or years, WIDTH_BUCKET a CASE, POWER a product. So engines know few operations, and sugar means the same on all.
"""

import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from noisette.errors import InputError
from noisette.query import moments, pattern, texts
from noisette.query.expression import Call, Expression, Literal, Operation
from noisette.query.kind import Type
from noisette.query.operations import kind_of
from noisette.query.sql.names import Scope, alike
from noisette.query.text_rules import FARTHEST
from noisette.query.written_size import repeated

__all__ = ["DATE_PARTS", "FUNCTIONS", "Build", "calculated", "date_part", "interval", "type_of"]

Build: TypeAlias = Callable[[list[Expression], Scope], Expression]


def type_of(value: Expression, scope: Scope) -> Type | None:
    """The type of a value; None of NULL."""
    return None if value == Literal(None) else kind_of(value, scope.columns).type


def plain(operation: Operation) -> Build:
    """An operation on its arguments as they are."""
    return lambda given, scope: Call(operation, tuple(given))


# Dates

DATE_PARTS: dict[str, Build] = {
    "year": plain("year"),
    "quarter": plain("quarter"),
    "month": plain("month"),
    "week": plain("week"),
    "weekofyear": plain("week"),
    "day": plain("day"),
    "dayofmonth": plain("day"),
    "doy": plain("day_of_year"),
    "dayofyear": plain("day_of_year"),
    "isodow": plain("weekday"),
    "dow": lambda given, scope: Call("modulo", (Call("weekday", tuple(given)), Literal(7))),
    "dayofweek": lambda given, scope: DATE_PARTS["dow"](given, scope),
    "hour": plain("hour"),
    "minute": plain("minute"),
    "second": plain("second"),
}


def date_part(name: str, of: Expression, scope: Scope) -> Expression:
    """A part of a date by its name."""
    if name.lower() not in DATE_PARTS:
        raise InputError(
            "This part of a date is not answered: use year, quarter, month, week, day, doy, dow, isodow, hour, minute "
            "or second."
        )
    return DATE_PARTS[name.lower()]([of], scope)


_STEPS: dict[str, tuple[Operation, int]] = {
    "year": ("add_months", 12),
    "quarter": ("add_months", 3),
    "month": ("add_months", 1),
    "week": ("add_days", 7),
    "day": ("add_days", 1),
    "hour": ("add_seconds", 3600),
    "minute": ("add_seconds", 60),
    "second": ("add_seconds", 1),
}
_LATER: dict[Operation, Callable[[datetime.date, int], datetime.date]] = {
    "add_months": moments.months_later,
    "add_days": moments.days_later,
    "add_seconds": moments.seconds_later,
}


def interval(node: exp.Interval, sign: int, at: Expression, scope: Scope) -> Expression:
    """A moment that is an interval later, or earlier."""
    amount, unit = str(node.this.this if isinstance(node.this, exp.Literal) else ""), node.args.get("unit")
    name = unit.name.lower().removesuffix("s") if isinstance(unit, exp.Var) else ""
    digits = amount.removeprefix("-")
    if name not in _STEPS or not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        raise InputError("An interval is a number of units: write INTERVAL 3 MONTH, or days, hours, weeks or years.")
    operation, steps = _STEPS[name]
    return _later(operation, at, sign * int(amount) * steps, scope)


def _later(operation: Operation, at: Expression, by: int, scope: Scope) -> Expression:
    made = Call(operation, (at, Literal(by)))
    kind_of(made, scope.columns)
    if isinstance(at, Literal) and isinstance(at.value, datetime.date):
        return Literal(_LATER[operation](at.value, by))
    return made


def calculated(operation: Operation, left: Expression, right: Expression, scope: Scope) -> Expression:
    """A sum or a difference: of numbers, of a date and days, or of two dates, in days."""
    left, right = alike((left, right), scope.columns)
    types = [type_of(value, scope) for value in (left, right)]
    if operation == "subtract" and types == ["date", "date"]:
        return _difference("day", right, left, scope)
    match types, right:
        case ["date", "integer"], Literal(int() as days):
            return _later("add_days", left, days if operation == "add" else -days, scope)
        case ["date" | "timestamp", _], _:
            raise InputError("Dates take intervals: write d + INTERVAL 3 DAY, or DATE_DIFF('day', a, b) of two.")
        case _:
            return Call(operation, (left, right))


def _difference(unit: str, start: Expression, end: Expression, scope: Scope) -> Expression:
    """How many boundaries of a unit lie between two moments."""
    start, end = alike((start, end), scope.columns)
    first = _count(unit, start)
    return _count(unit, end) if first == Literal(0) else Call("subtract", (_count(unit, end), first))


def _count(unit: str, at: Expression) -> Expression:
    """The number of a moment's year, month, week, day or hour since the year 0 or 1."""
    match unit:
        case "year":
            return Call("least", (Call("greatest", (Call("year", (at,)), Literal(1))), Literal(9999)))
        case "quarter" | "month":
            parts = Literal(4 if unit == "quarter" else 12)
            return Call("add", (Call("multiply", (_count("year", at), parts)), Call(unit, (at,))))
        case "day" if isinstance(at, Literal) and isinstance(at.value, datetime.date):
            return Literal(moments.day_number(at.value))
        case "day":
            return Call("day_number", (at,))
        case "week":
            return Call("floor", (Call("divide", (_count("day", at), Literal(7))),))
        case _:
            larger = moments.UNITS[moments.UNITS.index(unit) - 1]
            each = Literal(24 if unit == "hour" else 60)
            return Call("add", (Call("multiply", (_count(larger, at), each)), Call(unit, (at,))))  # type: ignore[arg-type]


def _date_diff(given: list[Expression], scope: Scope) -> Expression:
    unit, start, end = given
    if not isinstance(unit, Literal) or unit.value not in moments.UNITS:
        raise InputError(
            "DATE_DIFF counts years, quarters, months, weeks, days or hours: write DATE_DIFF('day', a, b)."
        )
    return _difference(str(unit.value), start, end, scope)


# Texts


def _substring(given: list[Expression], scope: Scope) -> Expression:
    return Call("substring", (*given, Literal(FARTHEST)) if len(given) == 2 else tuple(given))


def _left(given: list[Expression], scope: Scope) -> Expression:
    return Call("substring", (given[0], Literal(1), *given[1:]))


def _joined(given: list[Expression], scope: Scope) -> Expression:
    """Texts, and what can be written as one, after each other."""
    return Call("concat", tuple(_texted(value, scope) for value in given))


def _texted(value: Expression, scope: Scope) -> Expression:
    return Call("as_text", (value,)) if type_of(value, scope) in ("integer", "boolean", "date") else value


def _concat(given: list[Expression], scope: Scope) -> Expression:
    """The same, where NULL counts as no text."""
    parts = [_texted(value, scope) for value in given if value != Literal(None)]
    filled = [
        Call("coalesce", (part, Literal(""))) if kind_of(part, scope.columns).nullable else part for part in parts
    ]
    return Call("concat", tuple(filled)) if len(filled) != 1 else filled[0]


def _constant_text(value: Expression, name: str) -> str:
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise InputError(f"{name} takes a pattern written as a constant: write x LIKE 'a%'.")
    return value.value


def _ilike(given: list[Expression], scope: Scope) -> Expression:
    low = texts.letter_by_letter(str.lower)(_constant_text(given[1], "ILIKE"))
    return Call("like", (Call("lower", (given[0],)), Literal(low)))


def _matching(name: str, form: Callable[[str], str]) -> Build:
    def build(given: list[Expression], scope: Scope) -> Expression:
        return Call("matches", (given[0], Literal(form(_constant_text(given[1], name)))))

    return build


def _whole_text(text: str) -> str:
    return f"^(?:{text})$"


# Numbers


def _round(given: list[Expression], scope: Scope) -> Expression:
    return Call("round", (given[0], given[1] if len(given) > 1 else Literal(0)))


def _sign(given: list[Expression], scope: Scope) -> Expression:
    x, zero = repeated(given[0], 3), Literal(0)
    more, less, same = (Call(sign, (x, zero)) for sign in ("more", "less", "equal"))
    return Call("case", (more, Literal(1), less, Literal(-1), same, zero, Literal(None)))


def _log(given: list[Expression], scope: Scope) -> Expression:
    bases: dict[object, Operation] = {2: "log2", 10: "log10"}
    base = given[0].value if len(given) == 2 and isinstance(given[0], Literal) else 10
    if base not in bases:
        raise InputError("Logarithms have the base e, 2 or 10: write LN(x), LOG2(x) or LOG10(x).")
    return Call(bases[base], (repeated(given[-1], 14),))


def _power(given: list[Expression], scope: Scope) -> Expression:
    match given[1]:
        case Literal(int() as times) if 1 <= times <= 8 and not isinstance(times, bool):
            value = repeated(given[0], times)
            value = found = Call("abs", (value,)) if times % 2 == 0 else value  # never negative
            for _ in range(times - 1):
                found = Call("multiply", (found, value))
            return found
        case Literal(Fraction() as root) if root == Fraction(1, 2):
            return Call("sqrt", (given[0],))
        case _:
            raise InputError("POWER takes a constant from 1 to 8, or 0.5: write POWER(x, 2) or SQRT(x).")


def _width_bucket(given: list[Expression], scope: Scope) -> Expression:
    x, low, high, count = given
    match low, high, count:
        case Literal(int() | Fraction() as a), Literal(int() | Fraction() as b), Literal(int() as n) if (
            a < b and 1 <= n <= 10_000
        ):
            repeated(x, 3)
            inside = Call("least", (Call("greatest", (x, low)), high))
            steps = Call("divide", (Call("subtract", (inside, low)), Literal(Fraction(b - a) / n)))
            bucket = Call("add", (Call("least", (Call("floor", (steps,)), Literal(n - 1))), Literal(1)))
            below, above = Call("less", (x, low)), Call("at_least", (x, high))
            return Call("case", (below, Literal(0), above, Literal(n + 1), bucket))
        case _:
            raise InputError("WIDTH_BUCKET takes constants, the lower end first: write WIDTH_BUCKET(age, 0, 100, 10).")


def _differ(given: list[Expression], scope: Scope) -> Expression:
    """Whether two values differ, where NULL is a value like others."""
    left, right = alike((given[0], given[1]), scope.columns)
    for value in (left, right):
        repeated(value, 2)
        if value == Literal(None):
            raise InputError("Compare with NULL by IS NULL: write x IS NOT NULL.")
    missing = Call("unequal", (Call("is_null", (left,)), Call("is_null", (right,))))
    return Call("coalesce", (Call("unequal", (left, right)), missing))


FUNCTIONS: dict[type[exp.Expr], tuple[tuple[str, ...], Build]] = {
    exp.Lower: (("this",), plain("lower")),
    exp.Upper: (("this",), plain("upper")),
    exp.Trim: (("this",), plain("trim")),
    exp.Substring: (("this", "start", "length"), _substring),
    exp.Left: (("this", "expression"), _left),
    exp.Right: (("this", "expression"), plain("right")),
    exp.Length: (("this",), plain("length")),
    exp.DPipe: (("this", "expression"), _joined),
    exp.Concat: (("expressions",), _concat),
    exp.Replace: (("this", "expression", "replacement"), plain("replace")),
    exp.SplitPart: (("this", "delimiter", "part_index"), plain("split_part")),
    exp.ILike: (("this", "expression"), _ilike),
    exp.RegexpLike: (("this", "expression"), _matching("REGEXP_MATCHES", str)),
    exp.RegexpFullMatch: (("this", "expression"), _matching("REGEXP_FULL_MATCH", _whole_text)),
    exp.SimilarTo: (("this", "expression"), _matching("SIMILAR TO", _whole_text)),
    exp.StartsWith: (("this", "expression"), _matching("STARTS_WITH", lambda text: f"^{pattern.escaped(text)}")),
    exp.EndsWith: (("this", "expression"), _matching("ENDS_WITH", lambda text: f"{pattern.escaped(text)}$")),
    exp.Contains: (("this", "expression"), _matching("CONTAINS", pattern.escaped)),
    exp.TimestampTrunc: (("unit", "this"), plain("date_trunc")),
    exp.DateDiff: (("unit", "expression", "this"), _date_diff),
    exp.TimeToStr: (("this", "format"), plain("strftime")),
    exp.Year: (("this",), DATE_PARTS["year"]),
    exp.Quarter: (("this",), DATE_PARTS["quarter"]),
    exp.Month: (("this",), DATE_PARTS["month"]),
    exp.Week: (("this",), DATE_PARTS["week"]),
    exp.WeekOfYear: (("this",), DATE_PARTS["week"]),
    exp.Day: (("this",), DATE_PARTS["day"]),
    exp.DayOfMonth: (("this",), DATE_PARTS["day"]),
    exp.DayOfYear: (("this",), DATE_PARTS["doy"]),
    exp.DayOfWeek: (("this",), DATE_PARTS["dow"]),
    exp.DayOfWeekIso: (("this",), DATE_PARTS["isodow"]),
    exp.Hour: (("this",), DATE_PARTS["hour"]),
    exp.Minute: (("this",), DATE_PARTS["minute"]),
    exp.Second: (("this",), DATE_PARTS["second"]),
    exp.Dayname: (("this",), plain("weekday_name")),
    exp.Monthname: (("this",), plain("month_name")),
    exp.Sign: (("this",), _sign),
    exp.Mod: (("this", "expression"), plain("modulo")),
    exp.Round: (("this", "decimals"), _round),
    exp.Sqrt: (("this",), plain("sqrt")),
    exp.Ln: (("this",), lambda given, scope: Call("ln", (repeated(given[0], 14),))),
    exp.Log: (("this", "expression"), _log),
    exp.Pow: (("this", "expression"), _power),
    exp.WidthBucket: (("this", "min_value", "max_value", "num_buckets"), _width_bucket),
    exp.NullSafeNEQ: (("this", "expression"), _differ),
    exp.NullSafeEQ: (("this", "expression"), lambda given, scope: Call("not", (_differ(given, scope),))),
}
"""For each class of node: its parts in the order of the operation, and what is made of them."""
