"""The functions of a row, once more: how random ones are written, and what they mean in plain Python."""

import calendar
import datetime
import math
import re
from fractions import Fraction

from hypothesis import strategies as st

from noisette.query.expression import Literal
from noisette.query.logarithm import logarithm

WHOLE = st.sampled_from([0, 1, 2, 3, 50])
PATTERNS = ["a", "^[^a-c]", "(É|a)+b?$", "^.{2,3}$", r"\W\w", "[%'\\\\]", "^$", "(a|b)*'", r"\s|\d{2,}"]
UNITS = ["year", "quarter", "month", "week", "day"]
FORMATS = ["%Y", "%Y-%m", "%Y-%m-%d", "%m", "day %d", "x"]
TEXTS = st.sampled_from(["a", "'", "É", " ", "bb"])


def _constants(*strategies):
    return lambda draw, some: [*some("text"), *(Literal(draw(each)) for each in strategies)]


def _moment(*strategies):
    def arguments(draw, some):
        return [*some(draw(st.sampled_from(["date", "timestamp"]))), *(Literal(draw(each)) for each in strategies)]

    return arguments


def _of(family, *strategies):
    return lambda draw, some: [*some(family), *(Literal(draw(each)) for each in strategies)]


def _unit_first(draw, some):
    return [Literal(draw(st.sampled_from(UNITS))), *some(draw(st.sampled_from(["date", "timestamp"])))]


def _any_of(*families):
    return lambda draw, some: some(draw(st.sampled_from(families)))


ARGUMENTS = {
    "substring": _constants(st.sampled_from([1, 2, 5]), WHOLE),
    "right": _constants(WHOLE),
    "length": _of("text"),
    "concat": lambda draw, some: some("text", 2, 3),
    "replace": _constants(TEXTS, st.sampled_from(["", "ab", "É"])),
    "split_part": _constants(TEXTS, st.sampled_from([1, 2, 9])),
    "matches": _constants(st.sampled_from(PATTERNS)),
    "as_text": _any_of("number", "boolean", "date"),
    "try_integer": _of("text"),
    "try_real": _of("text"),
    "try_date": _of("text"),
    "week": _moment(),
    "day_of_year": _moment(),
    "weekday_name": _moment(),
    "month_name": _moment(),
    "minute": _of("timestamp"),
    "second": _of("timestamp"),
    "date_trunc": _unit_first,
    "add_months": _moment(st.sampled_from([1, -1, 12, 120_000, -120_000, 11])),
    "add_days": _moment(st.sampled_from([1, -1, 3_660_000, -3_660_000])),
    "add_seconds": _of("timestamp", st.sampled_from([1, -3600, 10**11, -(10**11)])),
    "day_number": _moment(),
    "as_date": _moment(),
    "as_timestamp": _moment(),
    "strftime": _moment(st.sampled_from(FORMATS)),
    "modulo": lambda draw, some: some("number", 2, 2),
    "round": _of("number", st.sampled_from([0, 1, 2, -1])),
    "sqrt": _of("number"),
    "ln": _of("number"),
    "log2": _of("number"),
    "log10": _of("number"),
}
"""For each function: its arguments, from `draw` of hypothesis and `some` random expressions of a family."""

MAKES = {
    "number": [
        *("length", "week", "day_of_year", "minute", "second", "day_number", "try_integer", "try_real"),
        *("modulo", "round", "sqrt", "ln", "log2", "log10"),
    ],
    "text": [
        "substring",
        "right",
        "concat",
        "replace",
        "split_part",
        "as_text",
        "strftime",
        "weekday_name",
        "month_name",
    ],
    "boolean": ["matches"],
    "date": ["date_trunc", "add_months", "add_days", "as_date", "try_date"],
    "timestamp": ["date_trunc", "add_months", "add_days", "add_seconds", "as_timestamp"],
}


def _trunc(unit, at):
    months = {"year": 12, "quarter": 3, "month": 1}
    at = datetime.datetime.combine(at, datetime.time()) if type(at) is datetime.datetime else at
    if unit in months:
        return at.replace(month=(at.month - 1) // months[unit] * months[unit] + 1, day=1)
    return at if unit == "day" else at - datetime.timedelta(at.weekday())


def _months(at, by):
    year, month = divmod(at.year * 12 + at.month - 1 + int(by), 12)
    if not 1 <= year <= 9999:
        return type(at).min if by < 0 else type(at).max
    return at.replace(year=year, month=month + 1, day=min(at.day, calendar.monthrange(year, month + 1)[1]))


def _plus(unit):
    def moved(at, by):
        try:
            return at + datetime.timedelta(**{unit: int(by)})
        except OverflowError:
            return type(at).min if by < 0 else type(at).max

    return moved


def _date(text):
    try:
        return datetime.datetime.strptime(text.strip(" "), "%Y-%m-%d").date()
    except ValueError:
        return None


def _rounded(x, digits):
    grid = Fraction(10) ** -int(digits)
    steps = abs(Fraction(x)) / grid + Fraction(1, 2)
    return math.floor(steps) * grid * (1 if x >= 0 else -1)


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def _python(pattern):
    return pattern.replace("$", r"\Z")


MEANINGS = {
    "substring": lambda t, a, n: "".join(letter for i, letter in enumerate(t, 1) if a <= i < a + n),
    "right": lambda t, n: t[::-1][: int(n)][::-1],
    "length": lambda t: Fraction(len(t)),
    "concat": lambda *texts: "".join(texts),
    "replace": lambda t, old, new: new.join(t.split(old)),
    "split_part": lambda t, mark, n: dict(enumerate(t.split(mark), 1)).get(n, ""),
    "matches": lambda t, pattern: re.search(_python(pattern), t, re.DOTALL | re.ASCII) is not None,
    "as_text": _text,
    "try_integer": lambda t: Fraction(t) if re.fullmatch(r" *[+-]?[0-9]{1,15} *", t) else None,
    "try_real": lambda t: float(t) if re.fullmatch(r" *[+-]?[0-9]{1,15}(\.[0-9]{1,15})? *", t) else None,
    "try_date": _date,
    "week": lambda d: Fraction(d.isocalendar()[1]),
    "day_of_year": lambda d: Fraction(int(d.strftime("%j"))),
    "weekday_name": lambda d: f"{d:%A}",
    "month_name": lambda d: f"{d:%B}",
    "minute": lambda d: Fraction(d.minute),
    "second": lambda d: Fraction(d.second),
    "date_trunc": _trunc,
    "add_months": _months,
    "add_days": _plus("days"),
    "add_seconds": _plus("seconds"),
    "day_number": lambda d: Fraction(d.toordinal() - 1),
    "as_date": lambda d: d.date() if type(d) is datetime.datetime else d,
    "as_timestamp": lambda d: d if type(d) is datetime.datetime else datetime.datetime.combine(d, datetime.time()),
    "strftime": lambda d, form: (
        form.replace("%Y", f"{d.year:04}").replace("%m", d.isoformat()[5:7]).replace("%d", d.isoformat()[8:10])
    ),
    "modulo": lambda x, n: None if n == 0 else Fraction(math.fmod(int(x), int(n)) if abs(x) < 2**53 else 0),
    "round": _rounded,
    "sqrt": lambda x: math.sqrt(float(x)) if x >= 0 else None,
    "ln": lambda x: Fraction(logarithm(float(x), "ln")) if float(x) > 0 else None,
    "log2": lambda x: Fraction(logarithm(float(x), "log2")) if float(x) > 0 else None,
    "log10": lambda x: Fraction(logarithm(float(x), "log10")) if float(x) > 0 else None,
}
"""For each function: what it means, of values that are not NULL."""
