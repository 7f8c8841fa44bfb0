"""Totals that engines add up by themselves: the numbers of the specification, for every value that can be stored."""

import math
import random
import struct
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import duckdb
import pyarrow
import pytest
from sqlglot import exp
from tests import postgres
from tests import spark as on_spark

from noisette.engines import open_source
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory.source import Memory
from noisette.engines.needed import needed_of_request
from noisette.engines.postgres import source as of_postgres
from noisette.engines.spark import source as of_spark
from noisette.engines.sql import group_by, steps
from noisette.engines.sql import totals as module
from noisette.engines.sql.syntax import column
from noisette.engines.sql.totals import totals_of
from noisette.query.expression import Call, Literal, Name
from noisette.query.intervals import step_bounds
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.operations import declared
from noisette.query.plan import Scan, Where
from noisette.query.recode import Recode
from noisette.query.schema import Column, Limits, Table

SECRET = bytes(16)
HALF = struct.unpack("<d", struct.pack("<q", 0x3FDFFFFFFFFFFFFF))[0]  # the double before 1/2
DOUBLES = [
    0.0, -0.0, HALF, -HALF, 0.5, -0.5, 1.5, 2.5, -2.5, 9.995, -9.995, 10.0, 11.0, -11.0, 1e308, -1e308, 5e-324, -5e-324,
    math.inf, -math.inf, math.nan, None, 0.005, 0.015, 1e-300, 3.3333333333333335,
]  # fmt: skip
WHOLES = [0, 1, -1, 2**40, -(2**40), 2**40 + 1, 2**63 - 1, -(2**63), None, 2**18, -(2**18), 2**17, 12345678901]
FLOATS = [
    0.1, -0.1, 0.5, -0.5, 0.25, 2.5, -9.99, 1e-45, -1e-45, 3.4e38, -3.4e38, -0.0, math.inf, -math.inf, math.nan, None,
]  # fmt: skip
HALVES = [499, 500, 501, 1500, -500, -499, -2500, -3001]
MOMENTS = [None, 0, -1, 1, 10_957]


def decimals(width, places, *digits):
    """The type of decimals of a size, and values: some by their digits, the largest and the smallest, and NULL."""
    every = [*digits, 0, 1, -1, 5, -5, 10**width - 1, 1 - 10**width]
    with localcontext(prec=width):
        return pyarrow.decimal128(width, places), [Decimal(n).scaleb(-places) for n in every] + [None]


def real(low, high, grid=None, *, nullable=True):
    return Kind("real", Fraction(low), Fraction(high), None if grid is None else Fraction(grid), nullable=nullable)


def integer(low, high, grid=None, *, nullable=True):
    return Kind("integer", Fraction(low), Fraction(high), None if grid is None else Fraction(grid), nullable=nullable)


DOUBLE, FLOAT, BIGINT = pyarrow.float64(), pyarrow.float32(), pyarrow.int64()
CENTS = [4, 5, 14, 15, 49, 50, 51, 99, 149, 150, -50, -51, -150, 250, 100_000, 100_001, -100_000, 123_456]
SUMS = {  # the kind that a column is declared as, its steps, how it is stored, and what
    "real": (real(-10, 10), Fraction(1, 100), DOUBLE, DOUBLES),
    "no NULL": (real(5, 10, nullable=False), Fraction(3), DOUBLE, DOUBLES),
    "whole": (integer(-(2**40), 2**40), Fraction(1), BIGINT, WHOLES),
    "narrow": (integer(-3, 2**17, nullable=False), Fraction(1), BIGINT, WHOLES),
    "wide": (integer(-(2**50), 2**50), Fraction(2**12), BIGINT, [*WHOLES, 2**50, 2**49 + 2**11, -(2**11), 2**12 - 1]),
    "fives": (integer(-12, 22, 5, nullable=False), Fraction(5), BIGINT, [*range(-14, 25), *WHOLES]),
    "measured": (real(-3, 3), Fraction(1, 2**20), pyarrow.int32(), [*range(-5, 6), 2**31 - 1, -(2**31), None]),
    "on a grid": (real(-10, 10, "1/10", nullable=False), Fraction(1, 10), DOUBLE, [*DOUBLES, 0.05, 0.15, -0.25, 0.35]),
    "on thirds": (real("1/3", 3, "1/3"), Fraction(1, 3), DOUBLE, [*DOUBLES, 1 / 6, 2 / 3, 5 / 6, 7 / 6]),
    "rounded": (integer(-5, 2**40), Fraction(1), DOUBLE, [*DOUBLES, 2.0**40, 2.0**40 + 0.5, 2.0**40 - 0.5, -5.5, -5.4]),
    "float": (real(-10, 10), Fraction(1, 2**27), FLOAT, FLOATS),
    "float on a grid": (real(-10, 10, "1/10", nullable=False), Fraction(1, 10), FLOAT, FLOATS),
    "rounded float": (integer(-2, 9), Fraction(1), FLOAT, FLOATS),
    "cents": (real(-1000, 1000, "1/100"), Fraction(1, 100), *decimals(9, 2, *CENTS)),
    "finer": (real(1, 1000, "1/300", nullable=False), Fraction(1, 300), *decimals(9, 2, *CENTS)),
    "coarser": (real(-1000, 1000, "1/10"), Fraction(1, 10), *decimals(9, 2, *CENTS)),
    "binary": (real(-1000, "1000.004"), Fraction(1, 2**20), *decimals(18, 2, *CENTS)),
    "no multiple": (real("0.004", "0.006"), Fraction(1, 2**30), *decimals(9, 2, *CENTS)),
    "all digits": (real(-9, 9, Fraction(1, 10**10)), Fraction(1, 10**10), *decimals(38, 10, 1, 2, 9 * 10**10, -12)),
    "no digit before": (real("-1/2", 1), Fraction(1, 2**30), *decimals(14, 14, 1, 5 * 10**13, -5 * 10**13)),
    "large": (integer(-(2**40), 2**40), Fraction(1), *decimals(38, 0, 2**40, 2**40 + 1, -(2**40))),
    "halves": (integer(-3, 3000, nullable=False), Fraction(1), *decimals(15, 3, *HALVES)),
}  # fmt: skip
COUNTED = {  # the same of columns that are counted
    "far": (Kind("real"), *decimals(38, 38)),
    "any": (Kind("integer"), DOUBLE, DOUBLES),
    "number": (Kind("real", grid=Fraction(1, 3)), FLOAT, FLOATS),
    "truth": (Kind("boolean"), pyarrow.bool_(), [True, False, None]),
    "text": (Kind("text", keys=("a",)), pyarrow.string(), ["", "a", "b", "NaN", "NULL", None]),
    "day": (Kind("date", Fraction(0), Fraction(9)), pyarrow.date32(), [*MOMENTS, 2**31 - 1, 1 - 2**31]),
    "moment": (Kind("timestamp", Fraction(0), Fraction(9)), pyarrow.timestamp("us"), [*MOMENTS, 2**63 - 1, 1 - 2**63]),
}
KINDS = {name: kind for name, (kind, *_) in (SUMS | COUNTED).items()} | {
    "small": Kind("integer", Fraction(0), Fraction(2), Fraction(1), nullable=False)
}
TYPES = {name: type for name, (*_, type, _) in (SUMS | COUNTED).items()} | {"small": pyarrow.int32()}
VALUES = {name: values for name, (*_, values) in (SUMS | COUNTED).items()} | {"small": [0, 1, 2, 3, -1, None]}
TABLE = Table("t", tuple(Column(name, kind) for name, kind in KINDS.items()))
SCHEMA = {"t": TABLE}
G = Name("a.small")


@cache
def rows(size=600):
    """Rows of odd values, the same each time."""
    rng = random.Random(7)
    return pyarrow.table(
        {name: pyarrow.array([rng.choice(VALUES[name]) for _ in range(size)], type) for name, type in TYPES.items()}
    )


STORED = Memory({"t": rows(0)}).stored("t")


def sum_of(name):
    of, kind, grid = Name(f"a.{name}"), *SUMS[name][:2]
    return Measure("sum", of, grid, *step_bounds(declared(kind), grid))


def count_of(name):
    return Measure("count", Name(f"a.{name}"))


SCAN, ROWS = Scan("t", "a"), Measure("rows")
SOME = (
    ROWS, Measure("units"), *map(count_of, ("real", "narrow")), *map(sum_of, ("real", "narrow", "whole", "cents")),
    Measure("sum", Name("a.real"), Fraction(1), -10, 10),
)  # fmt: skip
DECIMALS = [name for name in SUMS if pyarrow.types.is_decimal(TYPES[name])]
REQUESTS = {
    "known": Request(SCAN, (G,), ((0, 1, 2),), SOME, None),
    "unknown": Request(SCAN, (G,), (None,), SOME, None),
    "filtered": Request(Where(SCAN, Call("more", (G, Literal(0)))), (), (), SOME, None),
    "counts": Request(SCAN, (), (), tuple(map(count_of, SUMS | COUNTED)), None),
    "decimals": Request(SCAN, (), (), tuple(map(sum_of, DECIMALS)), None),
    "numbers": Request(SCAN, (), (), tuple(sum_of(name) for name in SUMS if name not in DECIMALS), None),
}


def numbers(exact):
    """Measures by key, in order."""
    keys = [] if exact.keys is None else [c.to_pylist() for c in exact.keys.columns]
    return sorted(zip(*keys, *(m.tolist() for m in exact.measures), strict=True), key=repr)


def read(name, size=600):
    """The columns that a request reads."""
    return rows(size).select(sorted(needed_of_request(REQUESTS[name], SCHEMA)["t"]))


def specified(request, table):
    schema = {"t": replace(TABLE, columns=tuple(TABLE.column(name) for name in table.column_names))}
    return numbers(Memory({"t": table}).aggregate(request, schema, SECRET))


def added_up(request, table):
    """The same by totals, which DuckDB adds up here in place of an engine far away."""
    totals = totals_of(request, SCHEMA, {"t": STORED})
    by = {name: column(name) for name in totals.by}
    text = module.added_up(exp.to_table("t"), by, totals.totals, totals.names).sql("duckdb")
    with duckdb.connect() as connection:
        connection.register("t", table)
        found = connection.sql(text).to_arrow_table()
    engine = DuckDB({"t": found})
    return numbers(totals.exact(engine.aggregate(totals.request, totals.schema, SECRET)))


@pytest.mark.parametrize("name", REQUESTS)
def test_totals_are_those_of_the_specification(name):
    assert added_up(REQUESTS[name], read(name)) == specified(REQUESTS[name], read(name))


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("name", REQUESTS)
def test_of_no_row_and_of_one(name, size):
    assert added_up(REQUESTS[name], read(name, size)) == specified(REQUESTS[name], read(name, size))


def halves_up(own, grid):
    """A half is added whatever the number is: 1/2 is reached from below."""
    return exp.cast(
        exp.Floor(this=exp.Add(this=steps.scaled(own.copy(), 1 / grid), expression=exp.Literal.number("0.5e0"))),
        "BIGINT",
    )


@pytest.mark.parametrize(
    ("where", "name", "broken", "column"),
    [
        (module.Total, "weights", property(lambda self: [1, 2**30] * self.limbs if self.kind else [1]), "whole"),
        (steps, "substitute_steps", lambda kind, grid: 0, "no NULL"),  # NULL adds nothing where it stands for a bound
        (steps, "substitute_steps", lambda kind, grid: 0, "finer"),
        (steps, "is_nan", lambda own: exp.false(), "real"),
        (steps, "is_nan", lambda own: exp.false(), "float"),
        (steps, "_nearest", halves_up, "rounded"),
        (steps, "_nearest", halves_up, "halves"),
        (steps, "_decimal", lambda of, places, right=steps._decimal: right(of // 10, places), "large"),
    ],
)  # fmt: skip
def test_twins_are_found(where, name, broken, column, monkeypatch):
    request, table = Request(SCAN, (), (), (sum_of(column),), None), rows().select([column])
    right = specified(request, table)
    assert added_up(request, table) == right
    monkeypatch.setattr(where, name, broken)
    assert added_up(request, table) != right


@pytest.mark.parametrize(
    "measure",
    [
        Measure("distinct", Name("a.whole")),
        Measure("histogram", G, Fraction(1), 0, 2),
        Measure("sum", Call("multiply", (G, Literal(2))), Fraction(1), 0, 4),
        Measure("sum", Name("a.whole"), Fraction(1), 0, 5),  # other bounds than those of the column
        Measure("sum", Name("a.on a grid"), Fraction(1), -10, 10),  # other steps than those of its grid
        Measure("sum", Name("a.rounded"), Fraction(2), -3, 2**39),  # rounded twice
    ],
    ids=["distinct", "histogram", "expression", "bounds", "steps", "rounded"],
)
def test_other_measures_are_computed_from_rows(measure):
    assert totals_of(Request(SCAN, (), (), (measure,), None), SCHEMA, {"t": STORED}) is None


RECODED = Kind("text", keys=("a",), recode=Recode(trim=True))


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (real(0, 9), "VARCHAR"),  # what is no number becomes NULL
        (Kind("boolean"), "VARCHAR"),
        (Kind("date", Fraction(0), Fraction(9)), "VARCHAR"),
        (Kind("text"), "ENUM"),
        (RECODED, "VARCHAR"),
        (Kind("date"), "DATE"),  # infinite ones become NULL
        (Kind("timestamp", Fraction(0)), "TIMESTAMP"),
        (Kind("timestamp", Fraction(0), Fraction(9)), "DATE"),
        (real(0, 9), "NUMERIC"),  # a type that engines do not share
        (Kind("integer"), "BOOLEAN"),
    ],
)
def test_values_that_cleaning_makes_null_are_counted_from_rows(kind, stored):
    schema = {"t": Table("t", (Column("x", kind),))}
    assert totals_of(Request(SCAN, (), (), (count_of("x"),), None), schema, {"t": {"x": stored}}) is None


@pytest.mark.parametrize(
    ("kind", "grid", "stored", "there"),
    [
        (real(0, 9, "1/100"), "1/100", "DECIMAL(9,2)", True),
        (real(0, 10**12, "1/100"), "1/100", "DECIMAL(14,2)", True),
        (real(0, 10**13), 1, "DECIMAL(15,2)", False),  # doubles could be off by more than a tenth of a step
        (real(0, 1), "1/2", "DECIMAL(20,16)", False),  # 10^16 digits
        (integer(0, 50, 5), 5, "DECIMAL(9,0)", False),
        (integer(0, 2**41), 2, "DECIMAL(15,0)", False),
        (real(0, "0.15"), "1/10", "DOUBLE", False),  # 0.15 is less than half a step beyond 1/10, but not its double
        (real(0, "0.15"), "1/10", "DECIMAL(9,2)", False),
        (real(0, "0.25"), "1/10", "DOUBLE", True),
        (real(0, 9), 1, "VARCHAR", False),
    ],
)
def test_sums_of_which_doubles_are_sure_are_added_up(kind, grid, stored, there):
    grid, schema = Fraction(grid), {"t": Table("t", (Column("x", kind),))}
    measure = Measure("sum", Name("a.x"), grid, *step_bounds(declared(kind), grid))
    assert (totals_of(Request(SCAN, (), (), (measure,), None), schema, {"t": {"x": stored}}) is not None) == there


def test_no_value_has_steps_beyond_those_of_the_bounds(monkeypatch):
    """Of 0.15, the double is one and a half steps of 1/10 when it is multiplied; the bound itself is less."""
    kind, table = real(0, "0.15"), pyarrow.table({"x": [0.15]})
    schema = {"t": Table("t", (Column("x", kind),))}
    request = Request(SCAN, (), (), (Measure("sum", Name("a.x"), Fraction(1, 10), 0, 1),), None)
    assert DuckDB({"t": table}).aggregate(request, schema, SECRET).measures[0] == [1]
    assert Memory({"t": table}).aggregate(request, schema, SECRET).measures[0] == [1]
    monkeypatch.setattr(group_by, "reaches_ends", lambda kind, grid: True)
    assert DuckDB({"t": table}).aggregate(request, schema, SECRET).measures[0] == [2]


def test_rows_of_a_unit_are_not_added_up():
    """They are bounded first."""
    owned = {"t": replace(TABLE, unit="whole", limits=Limits(rows=1))}
    assert totals_of(REQUESTS["known"], owned, {"t": STORED}) is None
    assert totals_of(replace(REQUESTS["known"], limits=Limits(rows=1)), SCHEMA, {"t": STORED}) is None


def test_a_column_that_a_condition_reads_is_compared_as_a_row():
    request = Request(Where(SCAN, Call("more", (Name("a.whole"), Literal(0)))), (), (), SOME, None)
    assert totals_of(request, SCHEMA, {"t": STORED}) is None


def test_totals_of_any_size_are_exact():
    """A sum of 2^60 rows of 2^40 steps, from digits as they would come."""
    totals = totals_of(Request(SCAN, (), (), (sum_of("whole"),), None), SCHEMA, {"t": STORED})
    [total], digits = totals.totals, []
    steps = 2**40 * 2**60
    for weight in sorted(total.weights, reverse=True):
        digit, steps = divmod(steps, weight)
        digits.append((weight, digit))
    assert sum(weight * digit for weight, digit in digits) == 2**100
    assert module._weighed([(pyarrow.array([d]).to_numpy(), w) for w, d in digits if d < 2**63]).tolist() == [2**100]


# Engines


def kept(monkeypatch, where):
    """Notes each request that becomes one about totals."""
    seen = []

    def noted(*arguments):
        seen.append(totals_of(*arguments))
        return seen[-1]

    monkeypatch.setattr(where, "totals_of", noted)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sail", "spark"])
@pytest.mark.parametrize("name", REQUESTS)
def test_spark_adds_up_as_specified(engine, name, request, tmp_path, monkeypatch):
    seen, table = kept(monkeypatch, of_spark), read(name)
    source = on_spark.stored(request.getfixturevalue(engine), tmp_path, {"t": table}, valid=engine == "sail")
    assert numbers(source.aggregate(REQUESTS[name], SCHEMA, SECRET)) == specified(REQUESTS[name], table)
    assert None not in seen


@pytest.fixture
def asked(monkeypatch):
    """Statements that add up, which a server is asked for whatever its statistics say."""
    found = []

    def noted(*given, add=of_postgres.adding_up):
        found.append(add(*given))
        return found[-1]

    monkeypatch.setattr(of_postgres, "few_rows", lambda columns, sizes: True)
    monkeypatch.setattr(of_postgres, "adding_up", noted)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", REQUESTS)
def test_a_server_adds_up_as_specified(name, server, asked):
    url, table = server(), read(name)
    postgres.stored(url, {"t": table})
    source = open_source({"t": (url, "t")})
    right = specified(REQUESTS[name], table)
    assert numbers(source.aggregate(REQUESTS[name], SCHEMA, SECRET)) == right
    assert numbers(source.aggregate(REQUESTS[name], SCHEMA, SECRET)) == right
    assert len(asked) == 1


@pytest.mark.slow
def test_decimals_of_a_server_may_be_no_number(server, asked, monkeypatch):
    """NaN is NULL, where each row is read and where the server adds up."""
    import psycopg

    url = server()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE t (cents numeric(9, 2), finer numeric(9, 2))")
        connection.execute("INSERT INTO t VALUES ('NaN', 'NaN'), (9999999.99, 9999999.99), (NULL, NULL), (-0.01, 5)")
    request = Request(SCAN, (), (), (count_of("cents"), sum_of("cents"), sum_of("finer")), None)
    right = [(2, 99_999, 300 + 300_000 + 300 + 1500)]
    assert numbers(open_source({"t": (url, "t")}).aggregate(request, SCHEMA, SECRET)) == right
    assert len(asked) == 1
    with monkeypatch.context() as patch:
        patch.setattr(of_postgres, "totals_of", lambda *given: None)
        assert numbers(open_source({"t": (url, "t")}).aggregate(request, SCHEMA, SECRET)) == right
    monkeypatch.setattr(steps, "_missing", lambda own, stored: steps.is_null(own))
    assert numbers(open_source({"t": (url, "t")}).aggregate(request, SCHEMA, SECRET)) != right


@pytest.mark.slow
def test_a_server_does_not_compute_with_decimals_of_no_declared_size(server, asked):
    """They come here as doubles, but there is no double for some: to ask the server for it would fail."""
    import psycopg

    url = server()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE t (real numeric)")
        connection.execute("INSERT INTO t VALUES (1e400), (1e-400), (NULL), ('NaN'), ('Infinity'), (2.5)")
    request = Request(SCAN, (), (), (count_of("real"), sum_of("real")), None)
    found = numbers(open_source({"t": (url, "t")}).aggregate(request, SCHEMA, SECRET))
    table = pyarrow.table({"real": [math.inf, 0.0, None, math.nan, math.inf, 2.5]})
    assert found == specified(request, table)
    assert asked == []


@pytest.mark.slow
def test_totals_are_read_anew_when_the_server_counts_a_change(server, monkeypatch):
    import psycopg

    url = server()
    postgres.stored(url, {"t": rows(5)})
    source = open_source({"t": (url, "t")})
    monkeypatch.setattr(of_postgres, "few_rows", lambda columns, sizes: True)
    request = Request(SCAN, (), (), (ROWS, SOME[-1]), None)
    assert numbers(source.aggregate(request, SCHEMA, SECRET))[0][0] == 5
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO t (small) VALUES (1)")
        connection.execute("SELECT pg_stat_force_next_flush()")
    assert numbers(source.aggregate(request, SCHEMA, SECRET))[0][0] == 6
