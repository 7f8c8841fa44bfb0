"""Functions of a row: what is known of them, which forms mean the same, and what they mean in plain Python."""

import datetime
import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.query.tables import SCHEMA

from noisette.engines.memory.values import value_of
from noisette.errors import InputError
from noisette.query import moments, texts
from noisette.query.canonical import canonical_text
from noisette.query.expression import Call, Literal, Name
from noisette.query.kind import Kind
from noisette.query.logarithm import GRID, logarithm
from noisette.query.operations import kind_of
from noisette.query.plan import Where
from noisette.query.schema import Column, Table
from noisette.query.sql import parse
from noisette.query.sql.writer import rows_sql
from noisette.query.stability import shape_of

F = Fraction
SCOPE = shape_of(parse("SELECT COUNT(*) FROM visits", SCHEMA).source, SCHEMA).columns
DAY, LAST = datetime.date(2020, 1, 1), datetime.date(2023, 12, 31)  # the bounds of visited


def read(text):
    """The expression that a text stands for."""
    return parse(f"SELECT {text} AS x, COUNT(*) AS n FROM visits GROUP BY x", SCHEMA).keys[0]


def known(text):
    return kind_of(read(text), SCOPE)


def value(text, **row):
    """What the specification makes of a row; columns that are not given are NULL."""
    return value_of(read(text), SCOPE)({name: row.get(name.partition(".")[2]) for name in SCOPE})


def rounding(digits):
    return Call("round", (Name("x"), Literal(digits)))


# What is known


@pytest.mark.parametrize(
    ("text", "type", "low", "high", "grid", "nullable"),
    [
        ("LENGTH(ward)", "integer", 0, None, 1, True),
        ("LENGTH(patient_id)", "integer", 0, None, 1, False),
        ("WEEK(visited)", "integer", 1, 53, 1, True),
        ("DAYOFYEAR(visited)", "integer", 1, 366, 1, True),
        ("EXTRACT(dow FROM visited)", "integer", 0, 6, 1, True),
        ("MINUTE(entered)", "integer", 0, 59, 1, True),
        ("visited - DATE '2020-01-01'", "integer", 0, 1460, 1, True),
        ("DATE '2020-01-01' - visited", "integer", -1460, 0, 1, True),
        ("DATE_DIFF('day', visited, DATE '2021-01-01')", "integer", -1094, 366, 1, True),
        ("DATE_DIFF('week', visited, visited)", "integer", -208, 208, 1, True),
        ("DATE_DIFF('year', entered, TIMESTAMP '2000-01-01 00:00:00')", "integer", -7999, 1999, 1, True),
        ("age % 7", "integer", 0, 6, 1, True),
        ("change % -3", "integer", -2, 2, 1, True),
        ("change % 100", "integer", -10, 10, 1, True),
        ("ROUND(cost, 1)", "real", 0, 1000, F(1, 10), True),
        ("ROUND(cost / 7, 1)", "real", 0, F(1429, 10), F(1, 10), True),
        ("ROUND(cost)", "integer", 0, 1000, 1, True),
        ("ROUND(change / 4, 0)", "integer", -3, 3, 1, True),
        ("ROUND(age, -1)", "integer", 0, 120, 10, True),
        ("ROUND(age, 3)", "integer", 0, 120, 1, True),
        ("SQRT(age)", "real", 0, F(math.sqrt(120)), None, True),
        ("LOG2(age + 8)", "real", 3 - GRID, 7 + GRID, GRID, True),
        ("POWER(change, 2)", "integer", 0, 100, 1, True),
        ("POWER(change, 3)", "integer", -1000, 1000, 1, True),
        ("WIDTH_BUCKET(cost, 0, 500, 5)", "integer", 0, 6, 1, True),
        ("SIGN(change)", "integer", -1, 1, 1, True),
        ("TRY_CAST(ward AS SMALLINT)", "integer", -(2**15), 2**15 - 1, 1, True),
        ("TRY_CAST(ward AS DOUBLE)", "real", -(10**15), 10**15, None, True),
        ("CAST(smoker AS INTEGER)", "integer", 0, 1, 1, True),
        ("ward IS DISTINCT FROM 'A'", "boolean", None, None, None, False),
        ("visited + INTERVAL 1 MONTH", "date", 18293, 19753, None, True),
        ("visited - 365", "date", 17897, 19357, None, True),
        ("CAST(visited AS TIMESTAMP)", "timestamp", 18262 * 86400 * 10**6, 19722 * 86400 * 10**6, None, True),
        ("CAST(entered AS DATE)", "date", None, None, None, True),
        ("TRY_CAST(ward AS DATE)", "date", None, None, None, True),
    ],
)
def test_bounds(text, type, low, high, grid, nullable):
    kind = known(text)
    assert (kind.type, kind.low, kind.high, kind.grid, kind.nullable) == (type, low, high, grid, nullable)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SUBSTR(ward || ward, 2)", ("A", "B", "C")),
        ("LEFT(ward, 0)", ("",)),
        ("ward || '/' || smoker", tuple(f"{w}/{b}" for w in "ABC" for b in ("false", "true"))),
        ("CONCAT(ward, 'x')", ("Ax", "Bx", "Cx", "x")),
        ("REPLACE(ward, 'A', 'B')", ("B", "C")),
        ("SPLIT_PART(ward, 'B', 2)", ("",)),
        ("LENGTH(ward)", (1,)),
        ("CAST(change AS VARCHAR)", tuple(sorted(map(str, range(-10, 11))))),
        ("STRFTIME(visited, '%Y')", ("2020", "2021", "2022", "2023")),
        ("STRFTIME(entered, '%H')", tuple(f"{hour:02}" for hour in range(24))),
        ("STRFTIME(entered, '%m')", tuple(f"{month:02}" for month in range(1, 13))),
        ("STRFTIME(entered, '%Y')", None),
        ("DATE_TRUNC('year', visited)", tuple(datetime.date(year, 1, 1) for year in range(2020, 2024))),
        ("DATE_TRUNC('month', entered)", None),
        ("DAYNAME(visited)", moments.NAMES["weekday"]),
        ("MONTHNAME(entered)", moments.NAMES["month"]),
        ("UPPER(DAYNAME(visited))", tuple(sorted(name.upper() for name in moments.NAMES["weekday"]))),
    ],
)
def test_keys(text, keys):
    assert known(text).keys == keys


@pytest.mark.parametrize("unit", moments.UNITS[:5])
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%m", "%d.%m", "%Y"])
def test_every_day_is_in_a_group(unit, form):
    days = [DAY + datetime.timedelta(i) for i in range((LAST - DAY).days + 1)]
    keys = known(f"DATE_TRUNC('{unit}', visited)").maybe(False).values()
    assert keys == tuple(sorted({moments.truncated(unit, day) for day in days}))
    assert known(f"STRFTIME(visited, '{form}')").keys == tuple(sorted({day.strftime(form) for day in days}))


@pytest.mark.parametrize("name", ["DAYNAME", "MONTHNAME"])
def test_names_are_null_where_the_date_is(name):
    """In the order of the calendar, and no more of them than the bounds allow."""
    days = Kind("date", F(18_629), F(18_632))  # from Saturday, 2021-01-02 to Tuesday
    for nullable in (True, False):
        kind = kind_of(parsed(f"{name}(d)", days.maybe(nullable)), {"t.d": days.maybe(nullable)})
        names = ("Monday", "Tuesday", "Saturday", "Sunday") if name == "DAYNAME" else ("January",)
        assert kind.values() == ((*names, None) if nullable else names)


def parsed(text, kind):
    schema = {"t": Table("t", (Column("d", kind),))}
    return parse(f"SELECT COUNT({text}) FROM t", schema).outputs[0][1].of


def test_groups_of_months_are_free():
    query = parse("SELECT DATE_TRUNC('month', visited) AS m, COUNT(*) AS n FROM visits GROUP BY m", SCHEMA)
    assert len(kind_of(query.keys[0], SCOPE).values()) == 48 + 1  # NULL


# One meaning, several forms


@pytest.mark.parametrize(
    "forms",
    [
        ("SUBSTR(ward, 1, 2)", "SUBSTRING(ward, 1, 2)", "SUBSTRING(ward FROM 1 FOR 2)", "LEFT(ward, 2)"),
        ("ward ILIKE 'aB%'", "LOWER(ward) LIKE 'ab%'"),
        ("EXTRACT(week FROM visited)", "WEEK(visited)", "WEEKOFYEAR(visited)", "DATE_PART('week', visited)"),
        ("EXTRACT(dow FROM visited)", "DAYOFWEEK(visited)", "DOW(visited)", "ISODOW(visited) % 7"),
        ("visited - DATE '2020-01-01'", "DATE_DIFF('day', DATE '2020-01-01', visited)", "visited - '2020-01-01'"),
        ("visited + INTERVAL '1' YEAR", "visited + INTERVAL 12 MONTHS", "INTERVAL 4 QUARTER + visited"),
        ("visited + 7", "visited + INTERVAL 1 WEEK", "visited - INTERVAL '-7' DAY"),
        ("visited > DATE '1998-12-01' - INTERVAL '90' DAY", "visited > DATE '1998-09-02'"),
        ("ROUND(cost)", "ROUND(cost, 0)"),
        ("MOD(age, 3)", "age % 3"),
        ("LOG10(age + 1)", "LOG(age + 1)", "LOG(10, age + 1)"),
        ("SQRT(age)", "POWER(age, 0.5)"),
        ("LENGTH(ward)", "CHAR_LENGTH(ward)", "LEN(ward)"),
        ("STARTS_WITH(ward, 'a.')", "PREFIX(ward, 'a.')", r"REGEXP_MATCHES(ward, '^a\.')"),
        ("ward LIKE 'a!%%' ESCAPE '!'", "REGEXP_MATCHES(ward, '^a%.*$')"),
        ("ward SIMILAR TO 'a|b'", "REGEXP_FULL_MATCH(ward, 'a|b')"),
        ("CAST(entered AS DATE)", "DATE(entered)", "entered::DATE"),
    ],
)
def test_forms_that_mean_the_same(forms):
    asked = {canonical_text(parse(f"SELECT COUNT({text}) FROM visits", SCHEMA)) for text in forms}
    assert len(asked) == 1


CONDITIONS = """
SUBSTR(ward, 2, 3) = 'a' AND RIGHT(ward, 1) = 'b' AND LENGTH(ward) > 3
ward || '-' || age = 'A-3' AND REPLACE(ward, 'a', '''') = SPLIT_PART(ward, '-', 2)
REGEXP_MATCHES(ward, '^[a-c]{2,3}\\.$') AND NOT ward ILIKE 'a%'
visited + INTERVAL 3 MONTH > visited - INTERVAL 4 DAY AND entered + INTERVAL 5 SECOND > entered
DATE_TRUNC('month', visited) = visited AND STRFTIME(visited, '%Y') = '2020' AND DAYOFYEAR(visited) = 3
DATE_DIFF('week', visited, DATE '2020-01-01') = 3 AND WEEK(visited) = 2 AND MINUTE(entered) = SECOND(entered)
age % 3 = 1 AND ROUND(cost, 1) = 2.5 AND SQRT(age) > 1 AND LN(age + 1) > LOG2(age + 1) - LOG10(age + 1)
TRY_CAST(ward AS BIGINT) = 3 AND TRY_CAST(ward AS DOUBLE) > 2 AND TRY_CAST(ward AS DATE) = visited
CAST(age AS VARCHAR) = ward AND CAST(entered AS DATE) = visited AND CAST(visited AS TIMESTAMP) = entered
"""


@pytest.mark.parametrize("condition", CONDITIONS.strip().splitlines())
def test_conditions_are_written_as_sql_and_read_again(condition):
    source = parse(f"SELECT COUNT(*) FROM visits WHERE {condition}", SCHEMA).source
    assert isinstance(source, Where)
    again = parse(rows_sql(source).replace("*", "COUNT(*)", 1), SCHEMA)
    assert canonical_text(again) == canonical_text(parse(f"SELECT COUNT(*) FROM visits WHERE {condition}", SCHEMA))


def test_conditions_are_counted_in_sums_and_means():
    for function in ("SUM", "AVG", "MEAN"):
        one = canonical_text(parse(f"SELECT {function}(ward = 'A') FROM visits", SCHEMA))
        two = "CASE WHEN ward = 'A' THEN 1 WHEN ward <> 'A' THEN 0 ELSE NULL END"
        assert one == canonical_text(parse(f"SELECT {function}({two}) FROM visits", SCHEMA))
    assert parse("SELECT APPROX_QUANTILE(age, 0.25) FROM visits", SCHEMA).outputs[0][1].at == F(1, 4)


def test_names_of_outputs():
    query = parse("SELECT DATE_TRUNC('month', visited), STRFTIME(visited, '%Y'), SUM(LENGTH(ward) > 3) FROM visits "
                  "GROUP BY DATE_TRUNC('month', visited), STRFTIME(visited, '%Y')", SCHEMA)  # fmt: skip
    assert [name for name, _ in query.outputs] == ["date_trunc_visited", "strftime_visited", "sum"]


# Meaning


@pytest.mark.slow
def test_differences_count_boundaries():
    rng = random.Random(3)
    first, last = datetime.datetime.min, datetime.datetime.max
    seconds = int((last - first).total_seconds())
    times = [first + datetime.timedelta(seconds=rng.randrange(seconds)) for _ in range(30)]
    times += [first, last, datetime.datetime(1969, 12, 28, 23, 59, 59), datetime.datetime(1969, 12, 29)]
    steps = {"week": 7 * 86400, "day": 86400, "hour": 3600, "minute": 60, "second": 1}
    for a, b in itertools.pairwise(times):
        for unit in moments.UNITS:
            found = value(f"DATE_DIFF('{unit}', entered, TIMESTAMP '{b.isoformat(sep=' ')}')", entered=a)
            if unit in steps:
                between = (moments.truncated(unit, b) - moments.truncated(unit, a)).total_seconds() / steps[unit]
            else:
                each = {"year": 12, "quarter": 3, "month": 1}[unit]
                between = (b.year * 12 + b.month - 1) // each - (a.year * 12 + a.month - 1) // each
            assert found == between


@pytest.mark.parametrize("x", [None, -1.0, 0.0, 0.01, 99.99, 100.0, 199.99, 200.0, 499.99, 500.0, 999.0])
def test_width_bucket(x):
    low, high, count = 0, 500, 5
    exact = (
        None if x is None else 0 if x < low else count + 1 if x >= high else int((x - low) * count / (high - low)) + 1
    )
    assert value(f"WIDTH_BUCKET(cost, {low}, {high}, {count})", cost=x) == exact


@pytest.mark.parametrize("base", ["ln", "log2", "log10"])
def test_logarithms_are_right(base):
    own = {"ln": math.log, "log2": math.log2, "log10": math.log10}[base]
    rng = random.Random(5)
    for x in [1e-300, 1.0, 2.0**52, *(10.0 ** rng.uniform(-300, 15) for _ in range(2_000))]:
        assert abs(logarithm(x, base) - own(x)) <= 0.51 * GRID
        assert (F(logarithm(x, base)) / GRID).denominator == 1
    for power in range(16):
        assert logarithm(10.0**power, "log10") == power
        assert logarithm(2.0**-power, "log2") == -power


@pytest.mark.parametrize(
    ("x", "digits", "expected"),
    [(0.285, 2, 0.29), (1.005, 2, 1.01), (2.5, 0, 3), (999.995, 2, 1000.0), (14.99, -1, 10), (15.0, -1, 20)],
)
def test_halves_are_rounded_away_from_zero(x, digits, expected):
    scope = {"x": Kind("real", F(-1000), F(1000), F(1, 1000))}
    call = rounding(digits)
    assert value_of(call, scope)({"x": x}) == expected
    assert value_of(call, scope)({"x": -x}) == -expected


@pytest.mark.parametrize("end", ["0.15", "0.25", "0.35", "1.005", "2.675", "0.05"])
def test_rounding_a_number_without_a_grid_stays_within_its_bounds(end):
    """In doubles 0.15 is a little less than 1.5 tenths, ten times as much is 1.5, and that is rounded up."""
    call, scope = rounding(1), {"x": Kind("real", F(-float(end)), F(float(end)))}
    kind, most = kind_of(call, scope), value_of(call, scope)({"x": float(end)})
    assert kind.low == -kind.high <= -F(round(most * 10), 10)
    assert float(kind.high) == most


def test_a_number_that_is_read_stays_within_its_bounds():
    kind, most = known("TRY_CAST(ward AS DOUBLE)"), "999999999999999.999999999999999"
    assert F(value("TRY_CAST(ward AS DOUBLE)", ward=most)) == kind.high
    assert F(value("TRY_CAST(ward AS DOUBLE)", ward=f"-{most}")) == kind.low


def test_texts_do_not_grow_without_bound():
    long = "é" * 10**6
    assert len(texts.joined(long, long)) == texts.LONGEST
    assert len(texts.replaced(long, "é", "x" * 100)) == texts.LONGEST
    assert value("LENGTH(patient_id || patient_id)", patient_id=long) == texts.LONGEST


# The owner's today


def test_current_date_is_what_the_owner_says():
    dated = {name: replace(table, today=datetime.date(2021, 3, 1)) for name, table in SCHEMA.items()}
    texts = ("CURRENT_DATE - INTERVAL 1 DAY", "TODAY() - 1", "DATE '2021-02-28'")
    asked = {canonical_text(parse(f"SELECT COUNT(*) FROM visits WHERE visited < {text}", dated)) for text in texts}
    assert len(asked) == 1
    with pytest.raises(InputError, match="ask the owner to declare today"):
        parse("SELECT COUNT(*) FROM visits WHERE visited < CURRENT_DATE", SCHEMA)
    two = {**dated, "labs": replace(dated["labs"], today=DAY)}
    with pytest.raises(InputError, match="ask the owner to declare today"):
        parse("SELECT COUNT(*) FROM visits JOIN labs USING (patient_id) WHERE visited < CURRENT_DATE", two)


# Rows among the keys of a public table


def test_rows_among_public_keys_are_joined():
    forms = (
        "visits WHERE age > 18 AND ward IN (SELECT ward FROM wards WHERE floor = 2)",
        "visits v WHERE EXISTS (SELECT * FROM wards w WHERE v.ward = w.ward AND floor = 2) AND age > 18",
        "visits JOIN wards USING (ward) WHERE floor = 2 AND age > 18",
    )
    assert len({canonical_text(parse(f"SELECT COUNT(*) FROM {form}", SCHEMA)) for form in forms}) == 1
    with pytest.raises(InputError, match="no column floor"):  # what is compared with stays hidden
        parse("SELECT floor, COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards) GROUP BY floor", SCHEMA)
