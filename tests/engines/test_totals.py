"""Totals that engines add up by themselves: the numbers of the specification, for every value that can be stored."""

import random
import struct
from dataclasses import replace
from fractions import Fraction

import duckdb
import pyarrow
import pytest
from sqlglot import exp
from tests import postgres
from tests import spark as on_spark

from noisette.engines import open_source
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory.source import Memory
from noisette.engines.postgres import source as of_postgres
from noisette.engines.spark import source as of_spark
from noisette.engines.sql import totals as module
from noisette.engines.sql.syntax import column
from noisette.engines.sql.totals import totals_of
from noisette.query.expression import Call, Literal, Name
from noisette.query.intervals import step_bounds
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.operations import declared
from noisette.query.plan import Scan, Where
from noisette.query.schema import Column, Limits, Table

SECRET = bytes(16)
HALF = struct.unpack("<d", struct.pack("<q", 0x3FDFFFFFFFFFFFFF))[0]  # the double before 1/2
DOUBLES = [
    0.0, -0.0, HALF, -HALF, 0.5, -0.5, 1.5, 2.5, -2.5, 9.995, -9.995, 10.0, 11.0, -11.0, 1e308, -1e308, 5e-324, -5e-324,
    float("inf"), float("-inf"), float("nan"), None, 0.005, 0.015, 1e-300, 3.3333333333333335,
]  # fmt: skip
WHOLES = [0, 1, -1, 2**40, -(2**40), 2**40 + 1, 2**63 - 1, -(2**63), None, 2**18, -(2**18), 2**17, 12345678901]
KINDS = {
    "real": Kind("real", Fraction(-10), Fraction(10)),
    "no NULL": Kind("real", Fraction(5), Fraction(10), nullable=False),
    "whole": Kind("integer", Fraction(-(2**40)), Fraction(2**40)),
    "narrow": Kind("integer", Fraction(-3), Fraction(2**17), nullable=False),
    "small": Kind("integer", Fraction(0), Fraction(2), Fraction(1), nullable=False),
}
GRIDS = {"real": Fraction(1, 100), "no NULL": Fraction(3), "whole": Fraction(1), "narrow": Fraction(1)}
STORED = {"real": "DOUBLE", "no NULL": "DOUBLE", "whole": "BIGINT", "narrow": "BIGINT", "small": "INTEGER"}
TABLE = Table("t", tuple(Column(name, kind) for name, kind in KINDS.items()))
SCHEMA = {"t": TABLE}
G = Name("a.small")


def rows(size=600):
    """Rows of odd values, the same each time."""
    rng = random.Random(7)

    def of(values):
        return [rng.choice(values) for _ in range(size)]

    made = {"real": of(DOUBLES), "no NULL": of(DOUBLES), "whole": of(WHOLES), "narrow": of(WHOLES)}
    small = pyarrow.array(of([0, 1, 2, 3, -1, None]), pyarrow.int32())
    return pyarrow.table(
        {n: pyarrow.array(v, pyarrow.float64() if STORED[n] == "DOUBLE" else pyarrow.int64()) for n, v in made.items()}
        | {"small": small}
    )


def measures():
    """How many rows, how many with a value, and the sum of each column in its steps."""
    found = [Measure("rows"), Measure("units")]
    for name, grid in GRIDS.items():
        of, bounds = Name(f"a.{name}"), step_bounds(declared(KINDS[name]), grid)
        found += [Measure("count", of), Measure("sum", of, grid, *bounds)]
    return (*found, Measure("sum", Name("a.real"), Fraction(1), -10, 10))


SCAN = Scan("t", "a")
REQUESTS = {
    "all": Request(SCAN, (), (), measures(), None),
    "known": Request(SCAN, (G,), ((0, 1, 2),), measures(), None),
    "unknown": Request(SCAN, (G,), (None,), measures(), None),
    "filtered": Request(Where(SCAN, Call("more", (G, Literal(0)))), (), (), measures(), None),
}


def numbers(exact):
    """Measures by key, in order."""
    keys = [] if exact.keys is None else [c.to_pylist() for c in exact.keys.columns]
    return sorted(zip(*keys, *(m.tolist() for m in exact.measures), strict=True), key=repr)


def specified(request, table):
    return numbers(Memory({"t": table}).aggregate(request, SCHEMA, SECRET))


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
    assert added_up(REQUESTS[name], rows()) == specified(REQUESTS[name], rows())


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("name", REQUESTS)
def test_of_no_row_and_of_one(name, size):
    assert added_up(REQUESTS[name], rows(size)) == specified(REQUESTS[name], rows(size))


def halves_up(own, grid):
    """A half is added whatever the number is: 1/2 is reached from below."""
    return exp.cast(
        exp.Floor(this=exp.Add(this=module.scaled(own, 1 / grid), expression=exp.Literal.number("0.5e0"))), "BIGINT"
    )


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [
        (module.Total, "weights", property(lambda self: [1, 2**30] * self.limbs if self.kind else [1])),
        (module, "substitute_steps", lambda kind, grid: 0),  # NULL adds nothing where it stands for a bound
        (module, "is_nan", lambda own: exp.false()),
        (module, "_nearest", halves_up),
    ],
    ids=["weights", "NULL", "NaN", "halves"],
)
def test_twins_are_found(where, name, broken, monkeypatch):
    request = replace(REQUESTS["all"], measures=tuple(m for m in measures() if m.what == "sum"))
    monkeypatch.setattr(where, name, broken)
    assert added_up(request, rows()) != specified(request, rows())


@pytest.mark.parametrize(
    "measure",
    [
        Measure("rows"),
        Measure("distinct", Name("a.whole")),
        Measure("histogram", G, Fraction(1), 0, 2),
        Measure("sum", Call("multiply", (G, Literal(2))), Fraction(1), 0, 4),
        Measure("sum", Name("a.whole"), Fraction(1), 0, 5),  # other bounds than those of the column
    ],
    ids=["rows", "distinct", "histogram", "expression", "bounds"],
)
def test_other_measures_are_computed_from_rows(measure):
    assert totals_of(Request(SCAN, (), (), (measure,), None), SCHEMA, {"t": STORED}) is None


def test_rows_of_a_unit_are_not_added_up():
    """They are bounded first."""
    owned = {"t": replace(TABLE, unit="whole", limits=Limits(rows=1))}
    assert totals_of(REQUESTS["all"], owned, {"t": STORED}) is None
    assert totals_of(replace(REQUESTS["all"], limits=Limits(rows=1)), SCHEMA, {"t": STORED}) is None


def test_a_column_that_a_condition_reads_is_compared_as_a_row():
    request = Request(Where(SCAN, Call("more", (Name("a.whole"), Literal(0)))), (), (), measures(), None)
    assert totals_of(request, SCHEMA, {"t": STORED}) is None


def test_totals_of_any_size_are_exact():
    """A sum of 2^60 rows of 2^40 steps, from digits as they would come."""
    totals = totals_of(Request(SCAN, (), (), (measures()[7],), None), SCHEMA, {"t": STORED})
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
    seen = kept(monkeypatch, of_spark)
    source = on_spark.stored(request.getfixturevalue(engine), tmp_path, {"t": rows()}, valid=engine == "sail")
    assert numbers(source.aggregate(REQUESTS[name], SCHEMA, SECRET)) == specified(REQUESTS[name], rows())
    assert None not in seen


@pytest.mark.slow
@pytest.mark.parametrize("name", REQUESTS)
def test_a_server_adds_up_as_specified(name, server, monkeypatch):
    url, asked = server(), []
    postgres.stored(url, {"t": rows()})
    source = open_source({"t": (url, "t")})
    monkeypatch.setattr(of_postgres, "few_rows", lambda columns, sizes: True)
    monkeypatch.setattr(
        of_postgres, "adding_up", lambda *given, add=of_postgres.adding_up: asked.append(given) or add(*given)
    )
    right = specified(REQUESTS[name], rows())
    assert numbers(source.aggregate(REQUESTS[name], SCHEMA, SECRET)) == right
    assert numbers(source.aggregate(REQUESTS[name], SCHEMA, SECRET)) == right
    assert len(asked) == 1


@pytest.mark.slow
def test_totals_are_read_anew_when_the_server_counts_a_change(server, monkeypatch):
    import psycopg

    url = server()
    postgres.stored(url, {"t": rows(5)})
    source = open_source({"t": (url, "t")})
    monkeypatch.setattr(of_postgres, "few_rows", lambda columns, sizes: True)
    request = Request(SCAN, (), (), (Measure("rows"), measures()[-1]), None)
    assert numbers(source.aggregate(request, SCHEMA, SECRET))[0][0] == 5
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO t (small) VALUES (1)")
        connection.execute("SELECT pg_stat_force_next_flush()")
    assert numbers(source.aggregate(request, SCHEMA, SECRET))[0][0] == 6
