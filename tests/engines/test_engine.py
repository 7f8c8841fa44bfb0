"""Expressions in a real engine: nothing fails, promises hold, and the values are those of a plain evaluator.

The `fault` of an expression is found on a table of awkward rows: NULL, NaN, infinities, the ends of int64, values past
the declared bounds. The evaluator below calculates with Fractions where a grid is known, and with Python's floats
elsewhere, so agreement is exact: bit by bit.
"""

import datetime
import math
import operator
import random
import re
from fractions import Fraction
from typing import get_args

import duckdb
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tests.engines import functions

from noisette.engines.memory.values import value_of as memory_value
from noisette.engines.sql import expressions as engine
from noisette.engines.sql.expressions import WRITERS, normalised, to_engine, to_steps
from noisette.errors import InputError
from noisette.query import intervals
from noisette.query.expression import Call, Literal, Name, Operation
from noisette.query.intervals import step_bounds
from noisette.query.kind import LARGEST, Kind
from noisette.query.operations import DEEPEST, declared, kind_of
from noisette.query.rules import case_parts

F = Fraction
ENGINE = duckdb.connect()
DAY, NOON = datetime.date(2020, 2, 29), datetime.datetime(2020, 2, 29, 12, 34, 56, 789)
FAR = [math.nan, math.inf, -math.inf, None, 0.0, -0.0, 1e308, -5e-324]
WHOLE = [None, 0, 1, -1, 7, 2**63 - 1, -(2**63), 2**53 + 1]

# name: declared kind, stored type, stored values
COLUMNS = {
    "t.i": (Kind("integer", F(-7), F(120)), "BIGINT", [*WHOLE, 119, 30, 29]),
    "t.u": (Kind("integer"), "BIGINT", WHOLE),
    "t.s": (Kind("integer", F(1), F(5), nullable=False), "TINYINT", [None, 0, 3, 4, 127]),
    "t.n": (Kind("integer", F(-20), F(20), F(5)), "HUGEINT", [None, 2**100, -(2**100), 3, -8, 12]),
    "t.r": (Kind("real", F(-3, 2), F(5, 2)), "DOUBLE", [*FAR, 0.1, 1 / 3, -1.25]),
    "t.w": (Kind("real", F(1, 10), F(7, 10), nullable=False), "FLOAT", [*FAR[:-2], 0.1, 0.3]),
    "t.g": (Kind("real", F(-10), F(10), F(1, 10)), "DOUBLE", [*FAR, 0.29, 0.3, -0.35, 9.9999]),
    "t.p": (Kind("real", F(0), F(1000), F(1, 100)), "DECIMAL(9,3)", [None, 0.29, 0.575, 19.99, -5, 99999]),
    "t.h": (Kind("real"), "DOUBLE", [*FAR, 2.5]),
    "t.c": (Kind("text", keys=(" b%", "Éa", "a'b", "z\n\\")), "VARCHAR", [None, " b%", "Éa", "a'b", "z\n\\"]),
    "t.b": (Kind("boolean"), "BOOLEAN", [None, True, False]),
    "t.d": (Kind("date", F(-400), F(18262)), "DATE", [None, "infinity", "-infinity", "1999-12-31", "0044-03-15 (BC)"]),
    "t.e": (Kind("date", nullable=False), "DATE", [None, "infinity", "2020-02-29", "0001-01-01"]),
    "t.m": (Kind("timestamp", F(0), F(10**15)), "TIMESTAMP", [None, "infinity", "1999-12-31 23:59:59.999999"]),
}
SCOPE = {name: kind for name, (kind, _, _) in COLUMNS.items()}


def quoted(name):
    return exp.column(exp.to_identifier(name, quoted=True))


def table(columns, rows):
    """A connection with the rows as they are stored, and a view `clean` of normalised columns."""
    connection = duckdb.connect()
    typed = ", ".join(f'"{name}" {stored}' for name, (_, stored, _) in columns.items())
    connection.execute(f"CREATE TABLE raw ({typed})")
    connection.executemany(f"INSERT INTO raw VALUES ({', '.join('?' * len(columns))})", rows)
    clean = [normalised(quoted(n), kind, stored).as_(n, quoted=True) for n, (kind, stored, _) in columns.items()]
    connection.execute(exp.select(*clean).from_("raw").sql("duckdb").join(["CREATE TABLE clean AS ", ""]))
    return connection


class Rows:
    """Awkward rows in an engine, and the clean values that they become."""

    def __init__(self, columns, count):
        chance = random.Random(1)
        self.connection = table(columns, [[chance.choice(v) for _, _, v in columns.values()] for _ in range(count)])
        found = self.connection.execute("SELECT * FROM clean").fetchall()
        self.clean = [dict(zip(columns, row, strict=True)) for row in found]

    def ask(self, column):
        query = exp.select(column).from_("clean").sql("duckdb")
        return [row[0] for row in self.connection.execute(query).fetchall()]


@pytest.fixture(scope="module")
def rows():
    return Rows(COLUMNS, 100)


# A plain evaluator

COMPARE = {
    "equal": operator.eq, "unequal": operator.ne, "less": operator.lt,
    "at_most": operator.le, "more": operator.gt, "at_least": operator.ge,
}  # fmt: skip
ARITHMETIC = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}
PARTS = {
    "year": lambda d: d.year, "quarter": lambda d: (d.month + 2) // 3, "month": lambda d: d.month,
    "day": lambda d: d.day, "weekday": lambda d: d.isoweekday(), "hour": lambda d: d.hour,
}  # fmt: skip
TEXT = {
    "lower": lambda t: "".join(map(str.lower, t)),
    "upper": lambda t: "".join(map(str.upper, t)),
    "trim": lambda t: t.strip(" "),
}


def evaluator(expression):
    """A function from a clean row to the value: exact on a grid, a float without one."""
    kind = None if expression == Literal(None) else kind_of(expression, SCOPE)
    match expression:
        case Literal(value):
            return lambda row: as_kind(value, kind)
        case Name(name):
            return lambda row: as_kind(row[name], kind)
        case Call(operation, arguments):
            inner = [evaluator(argument) for argument in arguments]
            return lambda row: value_of(operation, [one(row) for one in inner], kind)


def as_kind(value, kind):
    if value is None or not kind.number or (isinstance(value, float) and not math.isfinite(value)):
        return value
    if kind.grid is None:
        return float(value)
    return round(F(value) / kind.grid) * kind.grid


def value_of(operation, values, kind):
    match operation:
        case "and":
            return False if False in values else None if None in values else True
        case "or":
            return True if True in values else None if None in values else False
        case "is_null":
            return values[0] is None
        case "coalesce":
            return next((value for value in values if value is not None), None)
        case "case":
            conditions, results = case_parts(values)
            return next((r for c, r in zip(conditions, results, strict=False) if c), results[-1])
    if None in values:
        return None
    first = values[0]
    if operation in functions.MEANINGS:
        return functions.MEANINGS[operation](*values)
    match operation:
        case "add" | "subtract" | "multiply" | "divide":
            numbers = list(values if kind.grid is not None else map(float, values))
            if operation == "divide" and not float(numbers[1]):
                return None
            return ARITHMETIC[operation](*numbers)
        case "negate":
            return -first
        case "abs":
            return abs(first)
        case "floor" | "ceil":
            whole = math.floor if operation == "floor" else math.ceil
            return F(whole(first)) if math.isfinite(first) else first
        case "least":
            return min(values)
        case "greatest":
            return max(values)
        case "not":
            return not first
        case "in":
            return doubled(first) in list(map(doubled, values[1:]))
        case "like":
            return re.fullmatch(pattern(values[1]), first, re.DOTALL) is not None
    if operation in COMPARE:
        return COMPARE[operation](*(values if all(isinstance(v, F) for v in values) else map(doubled, values)))
    return TEXT[operation](first) if operation in TEXT else F(PARTS[operation](first))


def doubled(value):
    return float(value) if isinstance(value, F) and not isinstance(value, bool) else value


def pattern(like):
    return "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in like)


# What can be wrong with an expression


def same(value, expected):
    if isinstance(expected, F) and not isinstance(value, bool):
        return value in (expected, float(expected))
    return value == expected


def broken(value, kind):
    """What a value has that its kind says it cannot have."""
    if value is None:
        return None if kind.nullable else "NULL"
    if kind.keys is not None and value not in [doubled(key) for key in kind.keys]:
        return "keys"
    if not kind.number or (math.isinf(value) and not kind.bounded):
        return None
    if math.isnan(value) or str(value) == "-0.0":
        return "zero or NaN"
    at = F(value) if kind.grid is None else round(F(value) / kind.grid) * kind.grid
    if value not in (at, float(at)):
        return "grid"
    if (kind.low is not None and at < kind.low) or (kind.high is not None and at > kind.high):
        return "bounds"
    return None


def exactly(number):
    """Whether a double holds it: beyond 2^53 an integer without bounds may be rounded on its way."""
    return number is None or number == float(number)


def fault(expression, rows):
    """The first fault of an expression on the awkward rows, or None."""
    kind = kind_of(expression, SCOPE)
    values = rows.ask(to_engine(expression, SCOPE))
    expect = evaluator(expression)
    for row, value in zip(rows.clean, values, strict=True):
        if broken(value, kind):
            return broken(value, kind)
        if exactly(row["t.u"]) and not same(value, expect(row)):
            return "value"
    return None


MIXED = Call("add", (Name("t.i"), Name("t.i")))  # a DOUBLE where t.i is a BIGINT


@pytest.mark.parametrize(
    "picked",
    [
        Call("least", (Name("t.i"), MIXED)),
        Call("greatest", (Name("t.i"), MIXED)),
        Call("case", (Name("t.b"), Name("t.i"), MIXED)),
        Call("coalesce", (Name("t.i"), MIXED)),
    ],
    ids=lambda call: call.operation,
)
def test_whole_numbers_of_two_types_have_one_text(rows, picked):
    """It is a key: 0.0 beside 0 would be a group of its own, or none."""
    assert fault(Call("as_text", (picked,)), rows) is None


def test_bounds_that_are_too_many_steps_away_are_no_fault_where_fewer_are_asked_for(rows):
    far, near = Call("try_integer", (Name("t.c"),)), Kind("real", F(-3), F(4))
    assert rows.ask(to_steps(far, near, F(1, 8), SCOPE)) == [None] * len(rows.clean)


# Random expressions

CONSTANTS = {
    "number": st.sampled_from([0, 1, -1, 10, 3, 120, F(1, 10), F(-1, 4), F(1, 3), F(5, 2), 7]),
    "text": st.sampled_from(["", "éa", " b%", "a'b"]),
    "boolean": st.booleans(),
    "date": st.just(DAY),
    "timestamp": st.just(NOON),
}
NAMES = {
    "number": ["t.i", "t.u", "t.s", "t.n", "t.r", "t.w", "t.g", "t.p", "t.h"],
    "text": ["t.c"],
    "boolean": ["t.b"],
    "date": ["t.d", "t.e"],
    "timestamp": ["t.m"],
}
MAKES = {
    "number": [*ARITHMETIC, "negate", "abs", "floor", "ceil", "least", "greatest", *PARTS, "case", "coalesce"],
    "text": [*TEXT, "case", "coalesce"],
    "boolean": [*COMPARE, "and", "or", "not", "is_null", "in", "like", "case", "coalesce"],
    "date": ["case", "coalesce"],
    "timestamp": ["case", "coalesce"],
}
FEW = MAKES
MAKES = {family: [*makes, *functions.MAKES[family]] for family, makes in FEW.items()}


@st.composite
def expressions(draw, family=None, depth=4, makes=MAKES):
    family = family or draw(st.sampled_from(["number", "number", "boolean", "text"]))
    leaf = draw(st.sampled_from(NAMES[family]).map(Name) | CONSTANTS[family].map(Literal))
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return leaf

    def some(of, least=1, most=1):
        return [draw(expressions(of, depth - 1, makes)) for _ in range(draw(st.integers(least, most)))]

    operation = draw(st.sampled_from(makes[family]))
    if operation in functions.ARGUMENTS:
        arguments = functions.ARGUMENTS[operation](draw, some)
    elif operation in COMPARE or operation == "is_null":
        of = draw(st.sampled_from(list(NAMES)))
        arguments = some(of, 1, 1) if operation == "is_null" else some(of, 2, 2)
    elif operation in PARTS:
        arguments = some("timestamp" if operation == "hour" else draw(st.sampled_from(["date", "timestamp"])))
    elif operation in ("in", "like"):
        of = "text" if operation == "like" else draw(st.sampled_from(list(NAMES)))
        right = st.sampled_from(["%a%", "_a", "a'_", "%\\", "Éa"]) if operation == "like" else CONSTANTS[of]
        arguments = [*some(of), *(Literal(draw(right)) for _ in range(1 if operation == "like" else 2))]
    elif operation == "case":
        arguments = [*some("boolean"), *some(family), *some(family)]
        if draw(st.booleans()):
            arguments[draw(st.integers(1, 2))] = Literal(None)
    elif operation in ("least", "greatest", "and", "or", "coalesce"):
        arguments = some(family, 2, 3)
    else:
        arguments = some(family, *((2, 2) if operation in ARITHMETIC else (1, 1)))
    made = Call(operation, tuple(arguments))
    try:
        kind_of(made, SCOPE)
    except InputError:
        return leaf
    return made


@pytest.mark.slow
@given(expression=expressions())
@settings(max_examples=40)
def test_any_expression_keeps_its_promises(rows, expression):
    assert fault(expression, rows) is None


@pytest.mark.slow
@given(expression=expressions(depth=5))
def test_any_deep_expression_keeps_its_promises(rows, expression):
    assert fault(expression, rows) is None


@pytest.mark.slow
@given(expression=expressions(depth=3))
@settings(max_examples=60)
def test_the_specification_gives_the_same_bits(rows, expression):
    specified = memory_value(expression, SCOPE)
    for row, value in zip(rows.clean, rows.ask(to_engine(expression, SCOPE)), strict=True):
        if exactly(row["t.u"]):
            assert repr(value) == repr(specified(row))


@pytest.mark.slow
@given(expression=expressions("number"), grid=st.sampled_from([F(1), F(1, 10), F(1, 3), F(1, 8), F(7)]))
@settings(max_examples=15)
def test_steps_are_whole_and_within_bounds(rows, expression, grid):
    kind = kind_of(expression, SCOPE)
    if kind.bounded and math.floor(max(abs(kind.low), abs(kind.high)) / grid + F(1, 2)) > LARGEST:
        with pytest.raises(InputError, match="steps away from 0"):
            step_bounds(kind, grid)
        kind = Kind("real", F(-3), F(4))
    kind = kind if kind.bounded else Kind("real", F(-3), F(4))
    low, high = step_bounds(kind, grid)
    expect = evaluator(expression)
    for row, steps in zip(rows.clean, rows.ask(to_steps(expression, kind, grid, SCOPE)), strict=True):
        value = expect(row)
        if value is None:
            assert steps is None
            continue
        assert isinstance(steps, int)
        assert low <= steps <= high
        if math.isfinite(value):
            at = min(max(F(value) / grid, low), high)
            assert abs(steps - at) <= F(1, 2) + F(1, 10**6)


# Broken twins


def first_fault(rows, wanted):
    found = find(
        expressions("number", depth=3, makes=FEW),
        lambda expression: fault(expression, rows) in wanted,
        settings=settings(max_examples=5000, derandomize=True, database=None, phases=[Phase.generate]),
    )
    return fault(found, rows)


@pytest.mark.slow
def test_an_interval_that_forgets_the_signs_of_factors_is_found(rows, monkeypatch):
    monkeypatch.setattr(intervals, "_products", lambda x, y: tuple(sorted((x[0] * y[0], x[1] * y[1]))))
    assert first_fault(rows, ["bounds"]) == "bounds"


@pytest.mark.slow
def test_arithmetic_that_leaves_its_grid_is_found(rows, monkeypatch):
    monkeypatch.setattr(engine, "snapped", lambda sql, grid: sql)
    assert first_fault(rows, ["grid"]) == "grid"


@pytest.mark.slow
def test_a_least_that_skips_null_is_found(rows, monkeypatch):
    monkeypatch.setattr(engine, "_together", lambda parts: ())
    assert first_fault(rows, ["value"]) == "value"


# Each operation by itself


def test_every_operation_is_written():
    written = set(get_args(Operation)) - {"pair"}  # which has no value: it is what CORR(x, y) is about
    assert set(WRITERS) == written
    assert written == {operation for makes in MAKES.values() for operation in makes}


def value(expression, scope=None, **row):
    """What the engine makes of one clean row."""
    scope = scope or {name: SCOPE[f"t.{name}"] for name in row}
    columns = [exp.alias_(engine.constant(cell), name, quoted=True) for name, cell in row.items()]
    inner = exp.select(*columns).subquery() if columns else None
    query = exp.select(to_engine(expression, scope))
    return ENGINE.execute((query.from_(inner) if inner else query).sql("duckdb")).fetchall()[0][0]


def of(operation, *arguments):
    return Call(operation, tuple(a if isinstance(a, Call | Name | Literal) else Literal(a) for a in arguments))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (of("add", F(1, 10), F(1, 5)), 0.3),
        (of("subtract", 3, 5), -2),
        (of("multiply", F(29, 100), 100), 29.0),
        (of("multiply", 0, -5), 0),
        (of("divide", 1, 3), 1 / 3),
        (of("negate", F(0)), 0.0),
        (of("abs", -7), 7),
        (of("floor", F(-1, 2)), -1),
        (of("ceil", F(-1, 2)), 0),
        (of("least", 3, F(5, 2)), 2.5),
        (of("greatest", 3, 4), 4),
        (of("equal", "a", "a"), True),
        (of("unequal", "a", "A"), True),
        (of("less", "Z", "a"), True),
        (of("at_most", DAY, DAY), True),
        (of("more", NOON, NOON), False),
        (of("at_least", 2**62, 2**62 - 1), True),
        (of("and", True, False), False),
        (of("or", True, False), True),
        (of("not", True), False),
        (of("is_null", 1), False),
        (of("in", 2, 1, F(2)), True),
        (of("in", DAY, DAY), True),
        (of("like", "a\nb", "a_b"), True),
        (of("like", "a%b", "a\\%b"), False),
        (of("like", "a\\xb", "a\\%b"), True),
        (of("like", "A", "a"), False),
        (of("case", False, 1, True, 2, 3), 2),
        (of("case", False, "x", None), None),
        (of("coalesce", None, "x"), "x"),
        (of("lower", "ÉA"), "éa"),
        (of("upper", "éa"), "ÉA"),
        (of("trim", "  a \t "), "a \t"),
        (of("year", DAY), 2020),
        (of("quarter", DAY), 1),
        (of("month", NOON), 2),
        (of("day", NOON), 29),
        (of("weekday", datetime.date(2024, 1, 1)), 1),
        (of("weekday", datetime.date(2024, 1, 7)), 7),
        (of("hour", NOON), 12),
        (of("modulo", -7, 3), -1),
        (of("modulo", 7, -3), 1),
        (of("modulo", 7, 0), None),
        (of("round", F(285, 1000), 2), 0.29),
        (of("round", F(-5, 2), 0), -3),
        (of("round", 15, -1), 20),
        (of("sqrt", 2), math.sqrt(2)),
        (of("ln", 1), 0.0),
        (of("log2", F(1, 8)), -3.0),
        (of("log10", 10**15), 15.0),
        (of("matches", "a\nb", "^a.b$"), True),
        (of("matches", "a\n", "a$"), False),
        (of("matches", "é", "^[^a-z]$"), True),
        (of("substring", "añb😀c", 2, 3), "ñb😀"),
        (of("right", "añ", 1), "ñ"),
        (of("length", "a\u0301😀"), 3),
        (of("concat", "a", "", "é"), "aé"),
        (of("concat", "a" * 900, "b" * 900), "a" * 900 + "b" * 100),
        (of("replace", "aaa", "aa", "b"), "ba"),
        (of("replace", "a" * 2000, "a", "b" * 100), "b" * 1000),
        (of("split_part", "a--b", "-", 3), "b"),
        (of("split_part", "a-b", "-", 3), ""),
        (of("as_text", -5), "-5"),
        (of("as_text", True), "true"),
        (of("as_text", datetime.date.min), "0001-01-01"),
        (of("try_integer", " -007 "), -7),
        (of("try_integer", "1e3"), None),
        (of("try_integer", "9" * 16), None),
        (of("try_real", "1.5"), 1.5),
        (of("try_real", "nan"), None),
        (of("try_date", "2020-02-29"), DAY),
        (of("try_date", "2021-02-29"), None),
        (of("try_date", "0000-01-01"), None),
        (of("week", datetime.date(2021, 1, 3)), 53),
        (of("day_of_year", DAY), 60),
        (of("weekday_name", DAY), "Saturday"),
        (of("month_name", NOON), "February"),
        (of("minute", NOON), 34),
        (of("second", NOON), 56),
        (of("date_trunc", "week", datetime.date(1969, 12, 28)), datetime.date(1969, 12, 22)),
        (of("date_trunc", "minute", NOON), datetime.datetime(2020, 2, 29, 12, 34)),
        (of("add_months", datetime.date(2020, 1, 31), 1), DAY),
        (of("add_months", datetime.date.max, 120_000), datetime.date.max),
        (of("add_days", datetime.date.min, -1), datetime.date.min),
        (of("add_seconds", datetime.datetime.max, 1), datetime.datetime.max),
        (of("day_number", datetime.date.max), 3_652_058),
        (of("as_date", NOON), DAY),
        (of("as_timestamp", DAY), datetime.datetime(2020, 2, 29)),
        (of("strftime", datetime.date(20, 3, 1), "%Y-%m"), "0020-03"),
    ],
)
def test_each_operation(expression, expected):
    found = value(expression)
    assert found == expected
    assert type(found) is type(expected)
    assert str(found) != "-0.0"


def test_least_and_greatest_of_null_are_null():
    clamp = of("least", of("greatest", Name("u"), 0), 120)
    assert value(clamp, u=None) is None
    assert value(of("greatest", of("coalesce", Name("u"), Name("i")), 0), u=None, i=None) is None
    assert value(of("greatest", of("case", Name("b"), Name("i"), 3), 0), b=True, i=None) is None
    assert value(of("greatest", of("case", Name("b"), Name("i"), 3), 0), b=None, i=None) == 3


@pytest.mark.parametrize(
    "text", ["it's", '"', "back\\slash\\'", "new\nline", "50%_", "é\u2028\U0001f330", "\0", "--;", "$$"]
)
def test_text_arrives_as_it_was_written(text):
    assert value(Literal(text)) == text
    assert value(of("equal", text, Name("x")), {"x": Kind("text")}, x=text) is True
    assert value(of("like", text, text)) is True
    assert value(of("in", text, text, "?")) is True


@given(st.fractions(-(2**62), 2**62) | st.floats(-1e18, 1e18).map(F))
def test_numbers_arrive_as_the_nearest_double(number):
    assert value(Literal(number)) == float(number)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_integers_arrive_exactly(number):
    assert value(Literal(number)) == number


@pytest.mark.parametrize("moment", [datetime.date.min, datetime.date.max, datetime.datetime.min, datetime.datetime.max])
def test_the_first_and_the_last_day_arrive(moment):
    assert value(Literal(moment)) == moment


NEAR_ZERO = {"x": Kind("integer", F(-9), F(9))}
PARTIAL = [of("divide", 1, Name("x")), *(of(operation, Name("x")) for operation in ("sqrt", "ln", "log2", "log10"))]


@pytest.mark.parametrize("expression", PARTIAL, ids=lambda e: e.operation)
def test_where_there_is_no_value_it_is_null(expression, monkeypatch):
    """Of 0 or -1, alone and within LEAST; an engine that forgets it gives another value, or fails."""
    without = 0 if expression.operation == "divide" else -1
    cases = [expression, of("least", expression, 5), of("is_null", of("greatest", expression, -5))]
    assert [value(case, NEAR_ZERO, x=without) for case in cases] == [None, None, True]
    assert [value(case, NEAR_ZERO, x=4) is None for case in cases] == [False] * 3
    assert [memory_value(case, NEAR_ZERO)({"x": without}) for case in cases] == [None, None, True]
    monkeypatch.setattr(engine, "partial", lambda operation, kinds: False)
    assert value(cases[1], NEAR_ZERO, x=without) is not None  # LEAST skips NULL


def test_names_are_quoted():
    odd = 'x"; DROP TABLE t; --'
    assert value(Name(odd), {odd: Kind("integer")}, **{odd: 3}) == 3
    assert value(Name("select"), {"select": Kind("integer")}, select=4) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrap", "levels"),
    [
        (lambda e: of("add", e, F(1, 10)), 1),
        (lambda e: of("least", of("case", of("more", e, 0), Name("g"), 1), 7), 3),
    ],
)
def test_the_deepest_expressions_are_still_answered(wrap, levels):
    expression = Name("g")
    for _ in range(DEEPEST // levels):
        expression = wrap(expression)
    assert value(expression, g=F(1, 2)) == pytest.approx(DEEPEST / 10 + 1 / 2 if levels == 1 else 1 / 2)


# Stored columns


def stored(kind, type, *values):
    connection = table({"x": (kind, type, None)}, [[value] for value in values])
    return [row[0] for row in connection.execute("SELECT * FROM clean").fetchall()]


REAL = Kind("real", F(-1), F(5, 2))


@pytest.mark.parametrize(
    ("kind", "type", "values", "expected"),
    [
        (REAL, "DOUBLE", FAR, [None, 2.5, -1.0, None, 0.0, 0.0, 2.5, -5e-324]),
        (REAL, "FLOAT", [math.nan, math.inf, 0.5], [None, 2.5, 0.5]),
        (REAL, "DECIMAL(38,38)", ["0.99999999999999999999999999999999999999", None], [1.0, None]),
        (REAL, "UHUGEINT", [2**128 - 1, 0], [2.5, 0.0]),
        (REAL, "TINYINT", [-128, 2], [-1.0, 2.0]),
        (Kind("real"), "DOUBLE", [math.nan, math.inf, -0.0], [None, math.inf, 0.0]),
        (Kind("real", F(0)), "DOUBLE", [math.inf, -math.inf], [math.inf, 0.0]),
        (Kind("real", F(0), F(1), F(1, 10)), "DOUBLE", [0.14, 0.15, 0.29999, 7, -0.04], [0.1, 0.2, 0.3, 1.0, 0.0]),
        (Kind("real", F(0), F(1), F(3, 10)), "DOUBLE", [1.0, 0.8], [0.9, 0.9]),
        (REAL.maybe(False), "DOUBLE", [None, math.nan], [0.0, 0.0]),
        (Kind("real", None, F(-3), nullable=False), "DOUBLE", [None, 5], [-3.0, -3.0]),
        (Kind("integer", F(3), F(9)), "UBIGINT", [2**64 - 1, 0, 4, None], [9, 3, 4, None]),
        (Kind("integer", F(-3), F(9)), "HUGEINT", [2**126, -(2**126)], [9, -3]),
        (Kind("integer", F(-9), F(-3)), "UHUGEINT", [2**127], [-3]),
        (Kind("integer", F(0), F(9)), "DECIMAL(38,0)", ["9" * 38, "-" + "9" * 38, 4], [9, 0, 4]),
        (Kind("integer", F(-9), F(9)), "DECIMAL(4,1)", [2.5, -2.5], [3, -3]),
        (Kind("integer", F(-9), F(9)), "DOUBLE", [2.5, -2.5, math.nan, math.inf], [3, -3, None, 9]),
        (Kind("integer"), "DOUBLE", [math.inf, -1e300, 7.0, math.nan], [2**63 - 1, 1 - 2**63, 7, None]),
        (Kind("integer"), "UBIGINT", [2**64 - 1, 2**53 + 1], [2**63 - 1, 2**53 + 1]),
        (Kind("integer"), "BIGINT", [2**63 - 1, -(2**63), None], [2**63 - 1, -(2**63), None]),
        (Kind("integer", F(0), F(500)), "TINYINT", [-128, 127], [0, 127]),
        (Kind("integer", F(0), F(90), F(10)), "BIGINT", [14, 15, 2**63 - 1], [10, 20, 90]),
        (Kind("integer", keys=(2, 5)), "INTEGER", [1, 3, 9], [1, 3, 9]),
        (Kind("integer", F(3), F(9), nullable=False), "BIGINT", [None], [3]),
        (Kind("text", keys=("a",)), "VARCHAR", ["a", "b", None], ["a", "b", None]),
        (Kind("text", nullable=False), "ENUM('a', 'b')", ["b", None], ["b", ""]),
        (Kind("boolean"), "BOOLEAN", [True, None], [True, None]),
        (Kind("boolean", nullable=False), "BOOLEAN", [None], [False]),
        (Kind("date"), "DATE", ["infinity", "2020-02-29", None], [None, DAY, None]),
        (Kind("date"), "DATE", ["5881580-07-10", "5877642-06-25 (BC)"], [datetime.date.max, datetime.date.min]),
        (
            Kind("date", F(0), F(18262)),
            "DATE",
            ["infinity", "1950-01-01"],
            [datetime.date(2020, 1, 1), datetime.date(1970, 1, 1)],
        ),
        (Kind("date", F(0)), "DATE", ["infinity", "-infinity"], [None, datetime.date(1970, 1, 1)]),
        (Kind("date", nullable=False), "TIMESTAMP", ["infinity", NOON], [datetime.date(1970, 1, 1), DAY]),
        (Kind("timestamp"), "TIMESTAMP_S", ["2020-02-29 12:00:00"], [datetime.datetime(2020, 2, 29, 12)]),
        (Kind("timestamp"), "DATE", ["5881580-07-10", "2020-02-29"], [None, datetime.datetime(2020, 2, 29)]),
        (Kind("timestamp", F(0), F(10**6)), "TIMESTAMP", [NOON], [datetime.datetime(1970, 1, 1, 0, 0, 1)]),
    ],
)
def test_stored_values_become_clean(kind, type, values, expected):
    found = stored(kind, type, *values)
    assert found == expected
    assert not any(str(cell) == "-0.0" for cell in found)


@pytest.mark.slow
@given(
    values=st.lists(st.floats() | st.none(), min_size=1, max_size=20),
    ends=st.tuples(st.fractions(-99, 99), st.fractions(-99, 99)).map(sorted),
    grid=st.sampled_from([None, F(1), F(1, 10), F(1, 8), F(1, 3)]),
    type=st.sampled_from(["integer", "real"]),
    nullable=st.booleans(),
)
@settings(max_examples=30)
def test_whatever_is_stored_the_clean_value_keeps_the_promise(values, ends, grid, type, nullable):
    try:
        kind = declared(Kind(type, *ends, grid, nullable=nullable))
    except InputError:
        return
    for found in stored(kind, "DOUBLE", *values):
        assert broken(found, kind) is None


def test_the_unclean_extremes_of_dates_have_years():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE raw (x DATE)")
    for day in ("5881580-07-10", "5877642-06-25 (BC)", "infinity"):
        connection.execute("INSERT INTO raw VALUES (?)", [day])
    last = {"year": 9999, "quarter": 4, "month": 12, "day": 31, "weekday": 5, "week": 52, "day_of_year": 365}
    for part, expected in last.items():
        sql = exp.select(to_engine(of(part, Name("x")), {"x": Kind("date")})).from_("raw").sql("duckdb")
        assert connection.execute(sql).fetchall()[-1] == (expected,)


@pytest.mark.parametrize(
    ("kind", "type"),
    [
        (Kind("text"), "BIGINT"),
        (Kind("boolean"), "INTEGER"),
        (Kind("timestamp"), "TIMESTAMP WITH TIME ZONE"),
        (Kind("text"), "BLOB"),
    ],
)
def test_a_column_declared_as_what_it_is_not_is_refused(kind, type):
    with pytest.raises(InputError, match=f"A column stored as {type} cannot be declared as {kind.type}"):
        normalised(quoted("x"), kind, type)


# Steps


@pytest.mark.parametrize(
    ("grid", "cell", "steps"),
    [(F(1), 2.5, 3), (F(1), -0.5, -1), (F(1, 10), 0.3, 3), (F(1, 3), 1 / 3, 1), (F(1), None, None), (F(2), 2.9, 1)],
)
def test_steps_round_halves_away_from_zero(grid, cell, steps):
    kind = Kind("real", F(-9), F(9))
    sql = exp.select(to_steps(Name("x"), kind, grid, {"x": kind}))
    row = exp.select(exp.alias_(exp.null() if cell is None else engine.number(cell), "x", quoted=True)).subquery()
    assert ENGINE.execute(sql.from_(row).sql("duckdb")).fetchall() == [(steps,)]


def test_steps_can_be_cut_narrower_than_the_values():
    kind, narrow = Kind("integer", F(0), F(120)), Kind("integer", F(10), F(20))
    sql = to_steps(Name("x"), narrow, F(1), {"x": kind}).sql("duckdb")
    assert "DOUBLE" not in sql
    assert ENGINE.execute(f'SELECT {sql} FROM (VALUES (5), (15), (99), (NULL)) t("x")').fetchall() == [
        (10,), (15,), (20,), (None,),
    ]  # fmt: skip


@pytest.mark.parametrize("cell", [math.nan, math.inf, -math.inf, 1e308])
def test_even_unclean_values_give_steps_within_bounds(cell):
    kind = Kind("real", F(-2), F(3))
    sql = exp.select(to_steps(Name("x"), kind, F(1, 10), {"x": kind})).from_("raw").sql("duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE raw (x DOUBLE)")
    connection.execute("INSERT INTO raw VALUES (?)", [cell])
    assert -20 <= connection.execute(sql).fetchone()[0] <= 30


def test_steps_need_bounds():
    with pytest.raises(InputError, match="needs bounds"):
        to_steps(Name("x"), Kind("real"), F(1), {"x": Kind("real")})
