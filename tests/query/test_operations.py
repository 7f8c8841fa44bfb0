"""What is known of an expression: one test for each operation, and one for each refusal."""

import datetime
from fractions import Fraction
from typing import get_args

import duckdb
import pytest

from noisette.errors import InputError
from noisette.query.expression import Call, Literal, Name, Operation
from noisette.query.intervals import constant, settled, step_bounds
from noisette.query.kind import Kind
from noisette.query.logarithm import GRID, logarithm
from noisette.query.operations import DEEPEST, declared, kind_of
from noisette.query.requirements import moment
from noisette.query.rules import RULES
from noisette.query.texts import letter_by_letter

F = Fraction
DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12)

SCOPE = {
    "t.age": Kind("integer", F(0), F(120)),
    "t.debt": Kind("integer", F(-50), F(70), F(10), nullable=False),
    "t.id": Kind("integer"),
    "t.pay": Kind("real", F(0), F(90), F(1, 100)),
    "t.share": Kind("real", F(-1, 2), F(1)),
    "t.any": Kind("real"),
    "t.city": Kind("text", keys=("Lyon", " Paris ")),
    "t.name": Kind("text", nullable=False),
    "t.ok": Kind("boolean"),
    "t.born": Kind("date", F(0), F(18262)),
    "t.day": Kind("date"),
    "t.at": Kind("timestamp", F(0), F(10**15)),
    "t.size": Kind("integer", F(1), F(5), keys=(1, 2, 5), nullable=False),
}


def name(column):
    return Name(f"t.{column}")


def known(operation, *arguments):
    """The kind of an operation on columns (by name, in strings that start with t.) and constants."""
    return kind_of(call(operation, *arguments), SCOPE)


def call(operation, *arguments):
    return Call(operation, tuple(map(node, arguments)))


def node(argument):
    if isinstance(argument, Call | Name | Literal):
        return argument
    return Name(argument) if isinstance(argument, str) and argument.startswith("t.") else Literal(argument)


def span(kind):
    return kind.low, kind.high, kind.grid


def test_every_operation_has_a_rule():
    assert set(RULES) | {"pair"} == set(get_args(Operation))  # a pair has no value: it is what CORR(x, y) is about


# Leaves


@pytest.mark.parametrize("column", ["t.pay", "t.share", "t.any", "t.city", "t.ok", "t.born", "t.at"])
def test_a_column_is_what_is_declared(column):
    assert kind_of(Name(column), SCOPE) == SCOPE[column]


def test_declared_bounds_lie_on_the_grid():
    assert span(declared(Kind("real", F(1, 10), F(1), F(3, 10)))) == (F(3, 10), F(9, 10), F(3, 10))
    assert span(declared(Kind("integer", F(1, 2), F(7, 2)))) == (1, 3, 1)
    assert span(declared(Kind("integer", F(0), F(30), F(15, 2)))) == (0, 30, 15)
    assert span(declared(Kind("integer", keys=(1, 2, 5)))) == (None, None, 1)  # other values are left out, not moved
    assert span(declared(Kind("date", F(1, 2), F(5, 2)))) == (1, 2, None)


def test_bounds_without_grid_are_doubles():
    assert declared(Kind("real", F(0), F(1, 10))).high == F(0.1)


def test_a_grid_that_nothing_rounds_to_is_not_believed():
    assert declared(Kind("real", F(0), None, F(1, 100))).grid is None
    assert declared(Kind("integer", None, None, F(10))).grid == 1


def test_a_grid_too_fine_for_doubles_is_forgotten():
    assert settled(Kind("real", F(0), F(1), F(1, 3**40))).grid is None
    assert settled(Kind("real", F(0), F(1), F(1, 2**52))).grid == F(1, 2**52)
    assert settled(Kind("real", F(0), F(1), F(1, 2**53))).grid is None
    assert settled(Kind("real", F(0), F(1), F(1, 10**14))).grid == F(1, 10**14)
    assert settled(Kind("real", F(0), F(1), F(1, 10**15))).grid is None


@pytest.mark.parametrize(
    ("value", "type", "low"),
    [
        (5, "integer", 5),
        (F(-1, 10), "real", F(-1, 10)),
        (True, "boolean", None),
        ("it's", "text", None),
        (DAY, "date", 18321),
        (NOON, "timestamp", 18321 * 86400 * 10**6 + 12 * 3600 * 10**6),
    ],
)
def test_constants(value, type, low):
    kind = kind_of(Literal(value), {})
    assert (kind.type, kind.low, kind.high, kind.keys, kind.nullable) == (type, low, low, (value,), False)
    if type in ("date", "timestamp"):
        assert moment(kind.low, kind.type) == value


def test_the_grid_of_a_constant():
    assert constant(F(3, 10)).grid == F(3, 10)
    assert constant(0).grid == 1
    assert constant(F(31415926535897932, 10**16)).grid is None


# Numbers


@pytest.mark.parametrize(
    ("operation", "arguments", "expected"),
    [
        ("add", ["t.age", "t.debt"], (-50, 190, 1)),
        ("add", ["t.debt", 20], (-30, 90, 10)),
        ("add", ["t.debt", F(1, 4)], (F(-199, 4), F(281, 4), F(1, 4))),
        ("add", ["t.pay", 1], (1, 91, F(1, 100))),
        ("add", ["t.debt", 0], (-50, 70, 10)),
        ("add", ["t.share", 1], (F(1, 2), 2, None)),
        ("subtract", ["t.age", "t.debt"], (-70, 170, 1)),
        ("multiply", ["t.debt", "t.debt"], (-3500, 4900, 100)),
        ("multiply", ["t.age", -2], (-240, 0, 2)),
        ("multiply", ["t.pay", 100], (0, 9000, 1)),
        ("multiply", ["t.share", "t.debt"], (-50, 70, None)),
        ("divide", ["t.age", 10], (0, 12, F(1, 10))),
        ("divide", ["t.age", -4], (-30, 0, F(1, 4))),
        ("divide", ["t.age", "t.size"], (0, 120, None)),
        ("divide", [1, call("add", "t.age", 1)], (F(1 / 121), 1, None)),
        ("negate", ["t.debt"], (-70, 50, 10)),
        ("negate", [call("greatest", "t.any", 2)], (None, -2, None)),
        ("abs", ["t.debt"], (0, 70, 10)),
        ("abs", [call("negate", "t.age")], (0, 120, 1)),
        ("abs", ["t.any"], (0, None, None)),
        ("abs", [call("least", "t.any", -3)], (3, None, None)),
        ("floor", ["t.share"], (-1, 1, 1)),
        ("floor", ["t.pay"], (0, 90, 1)),
        ("floor", ["t.debt"], (-50, 70, 10)),
        ("floor", [call("greatest", "t.any", F(5, 2))], (2, None, 1)),
        ("ceil", ["t.share"], (0, 1, 1)),
        ("least", ["t.any", 10], (None, 10, None)),
        ("greatest", ["t.any", 10], (10, None, None)),
        ("least", [call("greatest", "t.any", 0), 120], (0, 120, None)),
        ("least", [call("greatest", "t.id", 0), 120], (0, 120, 1)),
        ("greatest", ["t.age", "t.debt", 30], (30, 120, 1)),
        ("least", ["t.pay", F(1, 2)], (0, F(1, 2), F(1, 100))),
    ],
)
def test_numbers(operation, arguments, expected):
    assert span(known(operation, *arguments)) == expected


LN_STEP = F(logarithm(0.01, "ln")) - GRID


@pytest.mark.parametrize(
    ("operation", "arguments", "expected"),
    [
        ("divide", [6, "t.age"], (F(6 / 120), 6, None)),
        ("divide", ["t.age", "t.pay"], (0, 12_000, None)),
        ("divide", ["t.age", "t.debt"], (-12, 12, None)),
        ("divide", ["t.age", call("least", call("greatest", "t.debt", -10), 0)], (-12, 0, F(1, 10))),
        ("divide", ["t.age", call("least", call("greatest", "t.debt", -10), 10)], (-12, 12, F(1, 10))),
        ("divide", ["t.age", "t.share"], (None, None, None)),
        ("divide", ["t.age", call("abs", "t.share")], (0, None, None)),
        ("divide", ["t.age", call("negate", call("abs", "t.share"))], (None, 0, None)),
        ("divide", [call("multiply", "t.age", 10**12), call("divide", "t.pay", 100)], (0, None, None)),
        ("least", [call("divide", "t.age", call("abs", "t.share")), 10], (0, 10, None)),
        ("sqrt", ["t.debt"], (0, F(70**0.5), None)),
        ("ln", ["t.pay"], (LN_STEP, F(logarithm(90.0, "ln")) + GRID, GRID)),
        ("ln", [call("abs", "t.share")], (None, GRID, None)),
        ("greatest", [call("ln", call("abs", "t.share")), -3], (-3, GRID, None)),
    ],
)
def test_where_a_number_has_no_quotient_or_root_it_is_null(operation, arguments, expected):
    """The least divisor is a step of the grid; without a grid nothing bounds a quotient."""
    kind = known(operation, *arguments)
    assert (span(kind), kind.nullable) == (expected, True)


@pytest.mark.parametrize(
    ("call", "nullable"),
    [
        (call("divide", 1, "t.debt"), True),
        (call("divide", "t.debt", "t.size"), False),
        (call("sqrt", "t.debt"), True),
        (call("sqrt", "t.size"), False),
        (call("ln", call("abs", "t.debt")), True),
        (call("log2", "t.size"), False),
    ],
)
def test_null_is_possible_only_there(call, nullable):
    assert kind_of(call, SCOPE).nullable is nullable


TOWERS = {
    "quotients": lambda e: call("least", call("divide", "t.pay", e), 5),
    "remainders": lambda e: call("least", call("modulo", "t.age", e), 5),
    "roots": lambda e: call("greatest", call("sqrt", e), -5),
    "moments": lambda e: call("add_days", e, 1),
}


@pytest.mark.parametrize("name", TOWERS)
def test_an_expression_that_grows_when_it_is_written_is_refused(name):
    """Each level writes the one below several times: a dozen levels would be millions of nodes."""
    tower = Name("t.born" if name == "moments" else "t.age")
    for _ in range(3):
        tower = TOWERS[name](tower)
    kind_of(tower, SCOPE)
    for _ in range(8):
        tower = TOWERS[name](tower)
    with pytest.raises(InputError, match="grows too large: compute a part of it in a sub-query"):
        kind_of(tower, SCOPE)


def test_types_of_numbers():
    assert known("add", "t.age", 1).type == "integer"
    assert known("add", "t.age", F(1)).type == "real"
    assert known("divide", "t.age", 1).type == "real"
    assert known("ceil", "t.share").type == "integer"
    assert known("least", "t.age", F(1, 2)).type == "real"


def test_decades():
    decade = call("multiply", call("floor", call("divide", "t.age", 10)), 10)
    assert kind_of(decade, SCOPE).values() == (*range(0, 121, 10), None)


def test_a_small_difference_of_large_numbers_forgets_a_decimal_grid():
    scope = {"x": Kind("real", F(10**12), F(10**12 + 1), F(1, 100))}
    ten = Call("subtract", (Name("x"), Literal(F(10**12 * 7, 7) + F(1, 7))))
    assert kind_of(ten, scope).grid is None


@pytest.mark.parametrize(
    ("operation", "keys"),
    [("negate", (-5, -2, -1)), ("abs", (1, 2, 5)), ("floor", (1, 2, 5)), ("ceil", (1, 2, 5))],
)
def test_keys_of_numbers(operation, keys):
    assert known(operation, "t.size").keys == keys


def test_step_bounds_round_half_away():
    assert step_bounds(Kind("real", F(-5, 2), F(5, 2)), F(1)) == (-3, 3)
    assert step_bounds(Kind("real", F(-24, 10), F(24, 10)), F(1)) == (-2, 2)
    with pytest.raises(InputError, match="needs bounds"):
        step_bounds(Kind("real", F(0)), F(1))
    with pytest.raises(InputError, match="coarser grid"):
        step_bounds(Kind("real", F(0), F(2)), F(1, 2**52))


# Truth and choice


@pytest.mark.parametrize(
    ("operation", "arguments", "nullable"),
    [
        ("equal", ["t.age", F(1, 2)], True),
        ("unequal", ["t.name", "x"], False),
        ("less", ["t.born", DAY], True),
        ("at_most", ["t.at", NOON], True),
        ("more", ["t.any", "t.id"], True),
        ("at_least", ["t.ok", True], True),
        ("and", [call("is_null", "t.age"), call("equal", "t.size", 1), True], False),
        ("or", ["t.ok", True], True),
        ("not", ["t.ok"], True),
        ("is_null", ["t.age"], False),
        ("in", ["t.city", "Lyon", "Metz"], True),
        ("in", ["t.size", 1, F(5, 2)], False),
        ("like", ["t.name", "a%"], False),
    ],
)
def test_truth(operation, arguments, nullable):
    assert known(operation, *arguments) == Kind("boolean", nullable=nullable)


def test_case():
    assert known("case", "t.ok", "young", "t.ok", None, "old") == Kind("text", keys=("old", "young"))
    assert known("case", "t.ok", 0, 1) == Kind("integer", F(0), F(1), F(1), nullable=False)
    assert known("case", "t.ok", "t.debt", 999).keys == (*range(-50, 71, 10), 999)
    assert known("case", "t.ok", "t.age", "t.debt").count == 121 + 5
    assert span(known("case", "t.ok", "t.any", 1)) == (None, None, None)
    assert known("case", "t.ok", "t.name", "x").keys is None
    assert known("case", "t.ok", "t.born", DAY).high == 18321


def test_coalesce():
    assert known("coalesce", "t.city", "?") == Kind("text", keys=(" Paris ", "?", "Lyon"), nullable=False)
    assert known("coalesce", "t.age", -1) == Kind("integer", F(-1), F(120), F(1), nullable=False)
    assert known("coalesce", "t.size", "t.any").keys == (1, 2, 5)
    assert known("coalesce", "t.age", "t.pay").nullable
    assert known("coalesce", None, "t.age") == declared(SCOPE["t.age"])


# Text and dates


def test_text():
    assert known("lower", "t.city").keys == (" paris ", "lyon")
    assert known("trim", "t.city").keys == ("Lyon", "Paris")
    assert known("upper", "Élan").keys == ("ÉLAN",)
    assert known("upper", "t.name") == SCOPE["t.name"]
    assert known("upper", "Straße").keys == ("STRAẞE",), "letter by letter"
    assert known("lower", "ΟΔΟΣ").keys == ("οδοσ",), "letter by letter, without the final sigma"


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["lower", "upper"])
def test_letters_change_as_in_the_engine(operation):
    rows = duckdb.connect().execute(
        f"SELECT chr(i::INT), {operation}(chr(i::INT)) FROM range(1, 1114112) t(i) WHERE i NOT BETWEEN 55296 AND 57343"
    )
    change = letter_by_letter(getattr(str, operation))
    assert [hex(ord(letter)) for letter, changed in rows.fetchall() if change(letter) != changed] == []


def test_many_keys_are_not_followed():
    scope = {"c": Kind("text", keys=tuple(f"{i:05}" for i in range(10_001)))}
    assert kind_of(Call("lower", (Name("c"),)), scope).keys is None


@pytest.mark.parametrize(
    ("part", "low", "high", "of_noon"),
    [("quarter", 1, 4, 1), ("month", 1, 12, 2), ("day", 1, 31, 29), ("weekday", 1, 7, 6), ("hour", 0, 23, 12)],
)
def test_parts_of_dates(part, low, high, of_noon):
    assert known(part, "t.at") == Kind("integer", F(low), F(high), F(1))
    assert known(part, NOON).keys == (of_noon,)


def days(low, high, type="date"):
    ends = [
        F((end - datetime.date(1970, 1, 1)).days * (1 if type == "date" else 86_400 * 10**6)) for end in (low, high)
    ]
    return {"t.x": Kind(type, *ends)}


@pytest.mark.parametrize(
    ("part", "low", "high", "expected"),
    [
        ("quarter", (2020, 7, 1), (2020, 9, 30), (3, 3, None)),
        ("quarter", (2020, 7, 1), (2020, 10, 1), (3, 4, None)),
        ("quarter", (2020, 1, 1), (2020, 12, 31), (1, 4, None)),
        ("month", (2019, 11, 30), (2020, 2, 1), (1, 12, (1, 2, 11, 12))),
        ("month", (2019, 11, 30), (2021, 2, 1), (1, 12, None)),
        ("week", (2020, 12, 28), (2021, 1, 10), (1, 53, (1, 53))),
        ("day", (2020, 2, 27), (2020, 2, 29), (27, 29, None)),
        ("day_of_year", (2020, 2, 1), (2020, 2, 2), (32, 33, None)),
        ("weekday", (2020, 2, 29), (2020, 3, 1), (6, 7, None)),
        ("weekday", (2020, 2, 29), (2020, 3, 6), (1, 7, None)),
    ],
)
@pytest.mark.parametrize("type", ["date", "timestamp"])
def test_near_bounds_leave_few_values_to_a_part(part, low, high, expected, type):
    scope = days(datetime.date(*low), datetime.date(*high), type)
    kind = kind_of(call(part, "t.x"), scope)
    assert (kind.low, kind.high, kind.keys) == expected
    every = {kind_of(call(part, day), {}).keys[0] for day in _each(datetime.date(*low), datetime.date(*high))}
    assert every == {value for value in kind.values() if value is not None}


def _each(low, high):
    return [low + datetime.timedelta(i) for i in range((high - low).days + 1)]


def test_years():
    assert span(known("year", "t.born")) == (1970, 2020, 1)
    assert span(known("year", "t.at")) == (1970, 2001, 1)
    assert span(known("year", "t.day")) == (None, None, 1)


# Refusals

DEEP = Name("t.age")
for _ in range(DEEPEST + 1):
    DEEP = Call("negate", (DEEP,))


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        (Name("xyz"), "There is no column xyz: there are age, debt, id, pay,"),
        (Name("wage"), "There is no column wage: did you mean age?"),
        (call("add", "t.city", 1), r"\+ needs numbers, and city is text: use a numeric column."),
        (call("floor", "t.born"), "FLOOR needs numbers, and born is date"),
        (call("least", "t.born", 3), "LEAST needs numbers, and born is date"),
        (
            call("add", "t.any", 1),
            r"\+ needs bounds: declare bounds for any in the policy, or write LEAST\(GREATEST\(any, 0\), 120\)",
        ),
        (call("multiply", call("abs", "t.any"), 1), r"\* needs bounds: write LEAST\(GREATEST\(x, 0\), 120\)"),
        (call("divide", 1, 0), "The divisor is always 0"),
        (call("sqrt", call("add", "t.age", -121)), "SQRT has no value here, since this value is always negative"),
        (call("ln", call("negate", "t.age")), "LN has no value here, since this value is always 0 or less"),
        (call("add", call("divide", "t.age", "t.share"), 1), r"age / share has no bounds, since share can come near"),
        (call("add", call("log10", call("abs", "t.share")), 1), r"LOG10\(x\) has no bounds, .* write GREATEST\(LOG10"),
        (call("divide", 1, "t.any"), "/ needs bounds"),
        (call("divide", 1, F(1, 10**400)), "The divisor is always 0"),
        (call("equal", "t.age", "x"), "= cannot mix number and text: use values of one type"),
        (call("less", "t.born", "2020-01-01"), "< cannot mix date and text: write DATE '2020-01-31'"),
        (call("less", "t.born", NOON), "< cannot mix date and timestamp"),
        (call("equal", "t.age", None), "= cannot be used with NULL: write IS NULL"),
        (call("is_null", None), "IS NULL cannot be used with NULL"),
        (call("and", "t.ok", "t.age"), "AND needs boolean, and age is integer: write a condition such as age >= 18"),
        (call("not", None), "NOT cannot be used with NULL"),
        (call("like", "t.name", "t.city"), "LIKE needs constants on its right"),
        (call("like", "t.name", 3), "LIKE needs text"),
        (call("like", "t.age", "3%"), "LIKE needs text, and age is integer: write a column of type text"),
        (call("in", "t.age", 1, "t.debt"), "IN needs constants on its right: write them out"),
        (call("in", "t.age", 1, "x"), "IN cannot mix number and text"),
        (call("in", "t.age", 1, None), "IN cannot be used with NULL"),
        (call("case", "t.age", 1, 2), "CASE needs boolean, and age is integer"),
        (call("case", "t.ok", 1, "x"), "CASE cannot mix number and text"),
        (call("case", "t.ok", 1, "t.ok", 2), "CASE needs a value for each condition and one for ELSE"),
        (call("case", "t.ok", None, None), "CASE has no value but NULL"),
        (call("coalesce", "t.size", "x"), "COALESCE cannot mix number and text"),
        (call("coalesce", None, None), "COALESCE has no value but NULL"),
        (call("lower", "t.age"), "LOWER needs text, and age is integer"),
        (call("year", "t.age"), "YEAR needs a date or timestamp, and age is integer: declare its type"),
        (call("hour", "t.born"), "HOUR needs a timestamp, and born is date"),
        (call("add", 1), r"\+ takes 2 values"),
        (call("negate", 1, 2), "- takes 1 value"),
        (call("case", "t.ok", 1), "CASE takes 3 or more values"),
        (Literal(None), "NULL alone has no type"),
        (Literal(2**63), "stays below 2"),
        (Literal("\ud800"), "not valid Unicode"),
        (Literal(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)), "without a time zone"),
        (call("multiply", "t.age", 2**50), "Numbers stay within ±2\\^52"),
        (call("add", 2**52, 1), "Numbers stay within ±2\\^52"),
        (call("subtract", 2**60, 2**60), "- needs numbers within ±2\\^52"),
        (call("least", "t.any", 2**60), "Numbers stay within ±2\\^52"),
        (DEEP, f"Nest at most {DEEPEST} operations"),
    ],
)
def test_refusals(expression, sentence):
    with pytest.raises(InputError, match=sentence) as refusal:
        kind_of(expression, SCOPE)
    text = str(refusal.value)
    assert text.endswith((".", "?"))
    assert ". " not in text


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Kind("integer", F(0), F(2**53)), "Numbers stay within"),
        (Kind("integer", F(2), F(1)), "no value between these bounds"),
        (Kind("real", F(1, 10), F(2, 10), F(1)), "no value between these bounds"),
        (Kind("date", F(2), F(1)), "no day between these bounds"),
        (Kind("date", F(-(10**6)), F(1)), "between the years 1 and 9999"),
        (Kind("timestamp", F(0), F(10**18)), "between the years 1 and 9999"),
    ],
)
def test_declarations_that_cannot_be(kind, sentence):
    with pytest.raises(InputError, match=sentence):
        kind_of(Name("x"), {"x": kind})


def test_a_name_that_two_tables_have_is_listed_in_full():
    with pytest.raises(InputError, match=r"there are a.id, b.id, age\."):
        kind_of(Name("x"), {"a.id": Kind("integer"), "b.id": Kind("integer"), "b.age": Kind("integer")})
