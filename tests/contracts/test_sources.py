"""Every source answers as the specification does: same plans, same integers, same retained rows.

`noisette.engines.memory` is the specification. `SOURCES` lists the engines; a new one adds a line, with a hash function
that repeats what its SQL hashes, so that the rows it retains can be compared as well. Each case is a plan over tables
of odd values. The twins at the end forget one thing each, and a case must convict them.
"""

import datetime
import functools
import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction

import duckdb
import pyarrow
import pytest
from sqlglot import exp
from tests import postgres, spark

from noisette.engines.contract import Dialect
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory import rows as memory_rows
from noisette.engines.memory.source import Memory
from noisette.engines.postgres.source import Postgres
from noisette.engines.sql.relation import relation_sql
from noisette.engines.sql.syntax import text_of
from noisette.errors import InputError
from noisette.exact.random import SYSTEM
from noisette.query.expression import Call, Literal, Name
from noisette.query.kind import Kind
from noisette.query.known import since_1970
from noisette.query.measure import Measure, Request
from noisette.query.plan import Join, Scan, Where
from noisette.query.prepare import prepare
from noisette.query.recode import Recode
from noisette.query.schema import Column, Limits, RowsPerPeriod, Table
from noisette.query.sql import parse

SECRET = bytes(range(16))

# Sources, and the hash that each one's queries use


def duckdb_hash(*values):
    """What DuckDB's HASH gives for values of clean types."""
    return _hashed(tuple(map(_literal, values)))


ENGINE = duckdb.connect()


@functools.cache
def _hashed(literals):
    return ENGINE.execute(f"SELECT hash({', '.join(literals)})").fetchone()[0]


def _literal(value):
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value)
        case int():
            return f"'{value}'::{'BIGINT' if value < 2**63 else 'UBIGINT'}"
        case float():
            return f"'{value!r}'::DOUBLE"
        case tuple():
            return f"row({', '.join(map(_literal, value))})"
        case datetime.datetime():
            return f"'{value}'::TIMESTAMP"
        case datetime.date():
            return f"'{value}'::DATE"
        case _:
            return "'" + value.replace("'", "''") + "'"


SOURCES = {"duckdb": (DuckDB, duckdb_hash), "memory": (Memory, None), "postgres": (Postgres, duckdb_hash)}
SOURCES |= {"pysail": ("sail", duckdb_hash), "spark": ("spark", duckdb_hash)}
SOURCES |= {f"{name}, files": SOURCES[name] for name in ("pysail", "spark")}
STORED_AS = {"postgres": {"narrow": "SMALLINT", "wide": "DECIMAL(20,0)"}}  # where a source has other types
STORED_AS |= {"spark": {"wide": "DECIMAL(20,0)"}}


def maker(source, request):
    """How a source is made of tables in Arrow, and its hash."""
    make, hash_of = SOURCES[source]
    if isinstance(make, str):
        session = request.getfixturevalue(make)
        folders = map(request.getfixturevalue("tmp_path_factory").mktemp, itertools.repeat(source))
        placed, valid = (spark.in_files if "files" in source else spark.stored), "pysail" in source
        return lambda tables: placed(session, next(folders), tables, valid=valid), hash_of
    if make is not Postgres:
        return make, hash_of
    pytest.importorskip("adbc_driver_postgresql", reason="PostgreSQL needs the extra postgres")
    new = request.getfixturevalue("server")

    def stored_first(tables):
        url = new()
        postgres.stored(url, tables)
        return Postgres(url)

    return stored_first, hash_of


def specified(tables, hash_of):
    return Memory(tables) if hash_of is None else Memory(tables, hash_of=hash_of)


# Tables of odd values


def kind(type, low=None, high=None, grid=None, **more):
    ends = [None if end is None else Fraction(end) for end in (low, high, grid)]
    return Kind(type, *ends, **more)


REALS = [math.nan, math.inf, -math.inf, None, -0.0, 0.0, 0.25, 0.3, 1e300, -1.7, 2.0, 0.05, -0.15, 5e-324]
INTEGERS = [None, 0, 5, 9, 10, -1, 2**63 - 1, -(2**63), 3, 3, 7, 2, 4, 6]
WARDS = ["a", "b", None, "c", "a", "ß", "B", "", " a ", "a%", "b", "a", "b", "a"]
DAYS = [0, None, 2**31 - 1, -(2**31) + 1, 40_000_000, -40_000_000, 18262, 18263, 18300, 1, -1, 364, 365, 20000]
DECIMALS = [None, *map(Decimal, ("0.5", "-0.5", "2.5", "-2.5", "0.04", "9.99", "123456.78", "-123456.78", "1", "4.25"))]
BYTES = [b"a", b"b", None, b"caf\xc3\xa9", b"caf\xe9", b"\xff", b"a", b"b", b"", b"c", b"a", b"b", b"a", b"\xc3"]


def invalid_text(values):
    """Text as an engine may get it: bytes that are not UTF-8 behind a type that says so."""
    found = pyarrow.array(values, pyarrow.binary())
    return pyarrow.Array.from_buffers(pyarrow.string(), len(found), found.buffers(), null_count=found.null_count)


def odd(people, repeat=2):
    """Rows whose columns shift against each other, so that many combinations are there."""
    size = len(REALS) * repeat

    def column(values, step, type):
        return pyarrow.array([values[(i * step + i // len(values)) % len(values)] for i in range(size)], type)

    return pyarrow.table(
        {
            "who": pyarrow.array([people[i % len(people)] for i in range(size)]),
            "age": column(INTEGERS, 1, pyarrow.int64()),
            "narrow": column([None, 127, -128, 0, 5, 9, 11], 3, pyarrow.int8()),
            "wide": column([None, 2**64 - 1, 0, 5, 2**63, 9], 1, pyarrow.uint64()),
            "pay": column(REALS, 3, pyarrow.float64()),
            "thin": column([None, math.nan, 0.1, -0.0, 3.5, math.inf], 1, pyarrow.float32()),
            "ward": column(WARDS, 5, pyarrow.string()),
            "well": column([True, False, None], 1, pyarrow.bool_()),
            "day": pyarrow.array([DAYS[(i * 3) % len(DAYS)] for i in range(size)], pyarrow.int32()).cast(
                pyarrow.date32()
            ),
            "at": column(
                [None, *(datetime.datetime(2020, m, 28, m, 59) for m in range(1, 13))], 1, pyarrow.timestamp("us")
            ),
            "price": column(DECIMALS, 1, pyarrow.decimal128(9, 2)),
            "note": invalid_text([BYTES[(i * 5) % len(BYTES)] for i in range(size)]),
        }
    )


COLUMNS = {
    "who": kind("integer"),
    "age": kind("integer", 0, 9, 1),
    "narrow": kind("integer", 2, 100, nullable=False),
    "wide": kind("integer", 0, 9, 3, nullable=False),
    "pay": kind("real", -1, 2, Fraction(1, 10)),
    "thin": kind("real", 0, 3, nullable=False),
    "ward": kind("text", keys=("a", "b", "ß")),
    "well": kind("boolean"),
    "day": kind("date", 0, 40_000),
    "at": kind("timestamp"),
    "price": kind("real", -3, 100, Fraction(1, 4)),
    "note": kind("text"),
}
NUMBERS, NAMES = [1, 2, 3, -(2**63), None, 2**63 - 1], ["ann", "bob", "cy", None, "", "Bob"]
DOUBLES = [0.0, -0.0, 1.5, math.nan, None, 1e300]
FLOORS = pyarrow.table(
    {
        "ward": ["a", "b", "b", None, "c"],
        "floor": pyarrow.array([1.0, 2.0, 3.0, 4.0, math.nan]),
        "ages": [5, 5, 3, 9, None],
    }
)
FLOOR = Table(
    "floors",
    (Column("ward", COLUMNS["ward"]), Column("floor", kind("real", 0, 9)), Column("ages", kind("integer", 0, 9, 1))),
    public=True,
    repeats={"ward": 2, "floor": 1, "ages": 2},
)


THREE = Limits(rows=3)


def described(limits=THREE, unit="who", **changed):
    """The table of odd values with the limits and kinds of a case."""
    return Table("t", tuple(Column(n, changed.get(n, k)) for n, k in COLUMNS.items()), unit=unit, limits=limits)


# Cases


@dataclass(frozen=True)
class Case:
    """A plan over the tables; `people` are the units that are stored."""

    request: Request
    table: Table = field(default_factory=described)
    people: tuple = tuple(NUMBERS)

    def stored(self):
        return {"t": odd(list(self.people)), "u": odd(list(self.people), 1), "floors": FLOORS}

    @property
    def schema(self):
        return {"t": self.table, "u": replace(self.table, name="u"), "floors": FLOOR}


T = {name: Name(f"t.{name}") for name in COLUMNS}
ROWS, UNITS = Measure("rows"), Measure("units")
NUMERIC = (
    ROWS,
    Measure("count", T["age"]),
    Measure("sum", T["age"], Fraction(1), 0, 9),
    Measure("sum", T["pay"], Fraction(1, 10), -10, 20),
    Measure("sum", T["thin"], Fraction(1, 1024), 0, 3072),
    Measure("sum", T["price"], Fraction(1, 4), -12, 400),
    Measure("sum", T["narrow"], Fraction(1), 2, 100),
    Measure("sum", T["wide"], Fraction(3), 0, 3),
    Measure("distinct", T["pay"]),
    Measure("distinct", T["note"]),
    Measure("distinct", T["day"]),
    Measure("histogram", T["age"], Fraction(1), 0, 9),
    Measure("histogram", T["pay"], Fraction(1, 2), -2, 4),
)
BOUNDED = (
    ROWS,
    UNITS,
    Measure("count", T["age"]),
    Measure("sum", T["pay"], Fraction(1, 10), -10, 20),
    Measure("sum", T["wide"], Fraction(3), 0, 3),
    Measure("distinct", T["note"]),
    Measure("histogram", T["age"], Fraction(1), 0, 9),
)
NO_UNIT = described(unit=None)


def asked(source, keys=(), domains=(), measures=NUMERIC, limits=None):
    return Request(source, tuple(keys), tuple(domains), tuple(measures), limits)


def sql(text, table=None, people=tuple(NUMBERS)):
    table = table or described()
    schema = {"t": table, "u": replace(table, name="u"), "floors": FLOOR}
    return Case(prepare(parse(text, schema), schema).request, table, people)


SCAN = Scan("t", "t")
DOMAIN = {"age": (*range(10), None), "ward": ("a", "b", "ß"), "well": (False, True, None)}
LIMITS = [
    Limits(rows=3),
    Limits(rows=1),
    Limits(groups=2, rows_per_group=1),
    Limits(groups=1, rows_per_group=3),
    Limits(rows=4, groups=3, rows_per_group=2),
]
CASES = {
    "everything": Case(asked(SCAN), NO_UNIT),
    "by ward": Case(asked(SCAN, [T["ward"]], [DOMAIN["ward"]]), NO_UNIT),
    "by age": Case(asked(SCAN, [T["age"]], [DOMAIN["age"]]), NO_UNIT),
    "by age and truth": Case(asked(SCAN, [T["age"], T["well"]], [DOMAIN["age"], DOMAIN["well"]]), NO_UNIT),
    "by a real on a grid": Case(asked(SCAN, [T["pay"]], [(*(Fraction(i, 10) for i in range(-10, 21)), None)]), NO_UNIT),
    "by an unknown text": Case(asked(SCAN, [T["note"]], [None]), NO_UNIT),
    "by unknown and known keys": Case(asked(SCAN, [T["note"], T["age"]], [None, DOMAIN["age"]]), NO_UNIT),
    "by an unknown day": Case(asked(SCAN, [T["day"]], [None]), described(unit=None, day=kind("date"))),
    "by an unknown real": Case(asked(SCAN, [T["thin"]], [None]), described(unit=None, thin=kind("real"))),
    "without bounds": Case(
        asked(SCAN, [T["age"], T["pay"]], [None, None], [ROWS]),
        described(unit=None, age=kind("integer"), pay=kind("real")),
    ),
    "where": sql("SELECT COUNT(*) AS n FROM t WHERE age >= 3 AND (pay < 1 OR NOT well) AND ward LIKE 'a%'", NO_UNIT),
    "text": sql("SELECT COUNT(*) AS n FROM t WHERE LOWER(TRIM(note)) IN ('a', 'b') OR UPPER(note) = 'CAF?'", NO_UNIT),
    "messy texts": sql(
        "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT note) AS d FROM t WHERE note <> 'b' GROUP BY ward",
        described(
            ward=kind("text", keys=("a", "b", "rest"), recode=Recode(True, True, (("a", ("a", "ß")),), "rest")),
            note=kind("text", recode=Recode(fold=True, names=(("café", ("caf?",)),))),
        ),
    ),
    "texts as numbers": sql(
        "SELECT note, COUNT(*) AS n, SUM(ward) AS s FROM t GROUP BY note",
        described(unit=None, note=kind("boolean"), ward=kind("integer", 1, 5, nullable=False)),
    ),
    "dates": sql(
        "SELECT EXTRACT(year FROM day) AS y, EXTRACT(month FROM day) AS m, COUNT(*) AS n FROM t "
        "WHERE EXTRACT(quarter FROM at) > 1 AND EXTRACT(hour FROM at) < 11 GROUP BY y, m",
        NO_UNIT,
    ),
    "functions of texts": sql(
        "SELECT SUBSTR(note, 1, 1) || '/' || age AS k, COUNT(*) AS n, SUM(LEAST(LENGTH(note), 9)) AS l, "
        "AVG(ward ILIKE 'B%' OR note ~ '^[^a]*$') AS m FROM t WHERE REPLACE(SPLIT_PART(note, 'f', 1), 'a', 'ä') <> 'b' "
        "OR RIGHT(note, 2) LIKE '%!%' ESCAPE '!' OR note IS NULL GROUP BY k",
        NO_UNIT,
    ),
    "functions of dates": sql(
        "SELECT DATE_TRUNC('quarter', day) AS q, DATE_TRUNC('hour', at) AS h, COUNT(*) AS n, "
        "SUM(DATE_DIFF('week', day, at::DATE)) AS w, SUM(day - DATE '2020-01-31') AS d, SUM(WEEK(day)) AS k, "
        "COUNT(DISTINCT STRFTIME(at, '%m %H')) AS f, SUM(EXTRACT(dow FROM day)) AS o, "
        "COUNT(DISTINCT DAYNAME(day) || MONTHNAME(at)) AS y FROM t "
        "WHERE day + INTERVAL '1' MONTH < DATE '2050-02-28' GROUP BY q, h",
        described(unit=None, day=kind("date", 18000, 18400)),
    ),
    "any day": sql(
        "SELECT SUM(DATE_DIFF('month', day, DATE '2000-01-01')) AS m, SUM(DAYOFYEAR(day - INTERVAL 40 YEAR)) AS y, "
        "SUM(DATE_DIFF('minute', at, at + INTERVAL 7 WEEK)) AS w FROM t",
        described(unit=None, day=kind("date")),
    ),
    "functions of numbers": sql(
        "SELECT age % 4 AS k, SUM(ROUND(pay / 3, 1)) AS r, SUM(SQRT(age)) AS q, SUM(LN(thin + 1)) AS l, "
        "SUM(LOG10(age + 1)) AS g, SUM(POWER(pay, 3)) AS p, SUM(WIDTH_BUCKET(price, -1, 5, 7)) AS b, "
        "SUM(age % age) AS o, SUM(well) AS w, SUM(TRY_CAST(CAST(wide AS VARCHAR) AS INTEGER)) AS c FROM t GROUP BY k",
        NO_UNIT,
    ),
    "numbers without a quotient or a root": sql(
        "SELECT age / (age % 3) > 2 AS k, SUM(pay / age) AS q, SUM(LEAST(GREATEST(age / pay, -3), 3)) AS r, "
        "SUM(SQRT(age - 4)) AS s, COUNT(LN(age - 3)) AS l, SUM(LOG2(age % 4)) AS g, COUNT(1 / NULLIF(age, 5)) AS n "
        "FROM t GROUP BY k",
        NO_UNIT,
    ),
    "choices": sql(
        "SELECT CASE WHEN age > 5 THEN 'old' WHEN age IS NULL THEN 'none' ELSE 'young' END AS k, "
        "SUM(COALESCE(pay, 0)) AS s, AVG(LEAST(age, 5)) AS m, SUM(ABS(pay) * -age) AS p, SUM(price / 3) AS q "
        "FROM t GROUP BY k",
        NO_UNIT,
    ),
    "compared beyond the bounds": sql(
        "SELECT SUM(CASE WHEN age >= 9 THEN 1 ELSE 0 END) AS a, SUM(CASE WHEN narrow >= 100 THEN 2 WHEN narrow < 9 "
        "THEN 1 ELSE 0 END) AS b, SUM(CASE WHEN wide > 8 THEN 0 WHEN wide <= 8 THEN 1 ELSE 2 END) AS c, "
        "SUM(CASE WHEN pay < 2 THEN pay ELSE 1 END) AS d, SUM(CASE WHEN NOT thin >= 3 THEN 1 ELSE 0 END) AS e, "
        "SUM(CASE WHEN day = DATE '1970-01-01' THEN 1 WHEN day IN (DATE '2079-07-07') THEN 2 ELSE 0 END) AS f, "
        "SUM(CASE WHEN price = 100 THEN 0 ELSE 3 END) AS g, COUNT(DISTINCT price) AS h, COUNT(DISTINCT age) AS i, "
        "SUM(pay) AS j, COUNT(pay) AS k, SUM(CASE WHEN pay IS NULL THEN 1 ELSE 0 END) AS l FROM t "
        "WHERE wide <> 3 OR age IS NOT NULL",
        NO_UNIT,
    ),
    "keys beyond the bounds": sql(
        "SELECT narrow, wide, COUNT(*) AS n, SUM(age) AS s FROM t GROUP BY narrow, wide", NO_UNIT
    ),
    "reals and dates beyond the bounds": sql(
        "SELECT thin, YEAR(day) AS y, FLOOR(price) AS p, COUNT(*) AS n FROM t WHERE price < 100 GROUP BY thin, y, p",
        described(unit=None, thin=kind("real", 0, 3, Fraction(1, 2)), price=kind("real", -3)),
    ),
    "doubles beyond the bounds": sql(
        "SELECT pay, COUNT(*) AS n FROM t WHERE pay <= 2 OR thin > 1 GROUP BY pay",
        described(unit=None, pay=kind("real", -1, 2)),
    ),
    "retained rows beyond the bounds": sql(
        "SELECT ward, SUM(CASE WHEN age >= 9 THEN 1 ELSE 0 END) AS a, COUNT(DISTINCT pay) AS d, COUNT(DISTINCT day), "
        "SUM(age) AS s FROM t WHERE thin < 3 OR ward = 'a' GROUP BY ward",
        described(Limits(rows=2)),
    ),
    "chosen keys beyond the bounds": sql(
        "SELECT CASE WHEN well THEN age WHEN wide > 3 THEN narrow ELSE 7 END AS k, COALESCE(pay, thin) > 1 AS c, "
        "COUNT(*) AS n FROM t GROUP BY k, c",
        NO_UNIT,
    ),
    "sub-queries beyond the bounds": sql(
        "SELECT k, c, COUNT(*) AS n, SUM(k) AS s, AVG(x) AS a FROM (SELECT FLOOR(age / 2) AS k, pay > 1 AS c, pay * 2 "
        "AS x FROM t WHERE price > 0) AS q WHERE x < 3 GROUP BY k, c",
        NO_UNIT,
    ),
    "no partner beyond the bounds": sql(
        "SELECT f.ages, f.floor, COUNT(*) AS n, SUM(pay) AS s FROM t LEFT JOIN floors f ON t.age = f.floor "
        "GROUP BY f.ages, f.floor",
        NO_UNIT,
    ),
    "joins beyond the bounds": sql(
        "SELECT a.age, COUNT(*) AS n, SUM(b.pay) AS s FROM t a JOIN u b ON a.who = b.who AND a.age = b.age "
        "WHERE b.price < 100 GROUP BY a.age",
        described(Limits(rows=6)),
    ),
    "left joins beyond the bounds": sql(
        "SELECT b.age, COUNT(*) AS n, SUM(b.pay) AS s FROM t a LEFT JOIN u b ON a.who = b.who AND a.age = b.age "
        "GROUP BY b.age",
        described(Limits(rows=2)),
    ),
    "per unit beyond the bounds": sql(
        "SELECT m, COUNT(*) AS n FROM (SELECT who, age, MAX(narrow) AS m FROM t WHERE price >= 0 GROUP BY who, age) q "
        "WHERE age < 9 GROUP BY m",
        described(Limits(rows=3)),
    ),
    "spread": sql("SELECT VARIANCE(pay) AS v, STDDEV(age) AS d, MEDIAN(price) AS q FROM t", NO_UNIT),
    "pairs": sql("SELECT CORR(pay, age) AS r, REGR_INTERCEPT(price, pay) AS b FROM t", NO_UNIT),
    "bins": sql("SELECT FLOOR(price / 10) * 10 AS bin, CEIL(pay) AS c, COUNT(*) AS n FROM t GROUP BY bin, c", NO_UNIT),
    "sub-query": sql("SELECT k, SUM(x) AS s FROM (SELECT age + 1 AS k, pay * 2 AS x FROM t) AS q GROUP BY k", NO_UNIT),
    "a unique public side": Case(
        asked(Join(SCAN, Scan("floors", "f"), (("t.age", "f.floor"),)), [Name("f.ward")], [DOMAIN["ward"]], [ROWS]),
        NO_UNIT,
    ),
    "a public side that repeats": sql(
        "SELECT f.ages, COUNT(*) AS n, SUM(t.pay) AS s FROM t JOIN floors f ON t.ward = f.ward GROUP BY f.ages"
    ),
    "a public side, kept on the left": sql(
        "SELECT f.ages, COUNT(*) AS n FROM t LEFT JOIN floors f ON t.ward = f.ward GROUP BY f.ages",
        described(Limits(rows=2)),
    ),
    "slices": sql(
        "SELECT k, g, COUNT(*) AS n, SUM(x) AS s, COUNT(DISTINCT who) AS u FROM (SELECT who, 'a' AS k, ward AS g, "
        "pay AS x FROM t WHERE age > 3 UNION ALL SELECT who, 'b', ward, -pay FROM t AS r WHERE r.pay < 1 UNION ALL "
        "SELECT who, 'c', NULL, price FROM t) AS s GROUP BY k, g"
    ),
    "slices that are joined": sql(
        "SELECT COUNT(*) AS n, SUM(a.x) AS s, SUM(b.pay) AS p FROM (SELECT who, age AS x FROM t UNION ALL "
        "SELECT who, narrow FROM t WHERE ward = 'a') a JOIN u b ON a.who = b.who",
        described(Limits(rows=2)),
    ),
    "no partner": sql(
        "SELECT COUNT(*) AS n, SUM(pay) AS s FROM t WHERE NOT EXISTS (SELECT * FROM floors f WHERE f.floor = t.age)",
        NO_UNIT,
    ),
    "two private sides": sql(
        "SELECT COUNT(*) AS n, SUM(a.age) AS s, SUM(b.pay) AS p FROM t a JOIN u b ON a.who = b.who",
        described(Limits(rows=2)),
    ),
    "a join that is only counted": sql("SELECT COUNT(*) AS n FROM t a JOIN floors f ON a.ward = f.ward"),
    "per unit": sql(
        "SELECT COUNT(*) AS n, AVG(m) AS m, AVG(LEAST(s, 9)) AS s, SUM(h) AS h, AVG(LEAST(GREATEST(c, 0), 5)) AS c "
        "FROM (SELECT who, AVG(pay) AS m, SUM(age) AS s, MAX(price) AS h, COUNT(well) AS c FROM t GROUP BY who) AS q"
    ),
    "per unit and key": sql(
        "SELECT ward, COUNT(*) AS n, SUM(m) AS m FROM "
        "(SELECT who, ward, MIN(age) AS m FROM t GROUP BY who, ward) AS q GROUP BY ward",
        described(Limits(rows=2)),
    ),
}
AT = kind("timestamp", *(since_1970(datetime.datetime(2020, month, 28, month)) for month in (2, 11)))


def per_period(most, per, of="day", **changed):
    """The table of odd values with a limit per period in place of others."""
    return replace(described(Limits(), **changed), per_period=RowsPerPeriod(most, per, of))


BY_YEAR = "SELECT EXTRACT(year FROM day) AS y, COUNT(*) AS n, COUNT(DISTINCT who) AS u, SUM(age) AS a FROM t GROUP BY y"
CASES |= {
    "a row a year": sql("SELECT COUNT(*) AS n, SUM(age) AS a FROM t", per_period(1, "year")),
    "two rows a year": sql(BY_YEAR, per_period(2, "year")),
    "two rows a year, of names": sql(BY_YEAR, per_period(2, "year", who=kind("text")), tuple(NAMES)),
    "a row a week, of doubles": sql(
        "SELECT ward, COUNT(*) AS n, SUM(pay) AS s FROM t WHERE day >= DATE '2020-01-01' GROUP BY ward",
        per_period(1, "week", who=kind("real")),
        tuple(DOUBLES),
    ),
    "a row a month of a timestamp": sql(
        "SELECT COUNT(*) AS n, SUM(price) AS s FROM t WHERE EXTRACT(month FROM at) > 3",
        per_period(1, "month", "at", at=AT),
    ),
    "a row a quarter of what has no NULL": sql(
        "SELECT DATE_TRUNC('quarter', at) AS q, COUNT(*) AS n FROM t GROUP BY q",
        per_period(1, "quarter", "at", at=replace(AT, nullable=False)),
    ),
    "rows of a day, joined": sql(
        "SELECT COUNT(*) AS n, SUM(b.pay) AS p FROM t a JOIN u b ON a.who = b.who WHERE EXTRACT(month FROM a.at) < 6",
        per_period(1, "quarter", "at", at=AT),
    ),
    "rows of a year per unit": sql(
        "SELECT y, COUNT(*) AS n, SUM(LEAST(c, 3)) AS s FROM (SELECT who, EXTRACT(year FROM day) AS y, COUNT(*) AS c "
        "FROM t GROUP BY who, EXTRACT(year FROM day)) AS q GROUP BY y",
        per_period(2, "year"),
    ),
}
for limits, (name, people) in itertools.product(
    LIMITS, {"numbers": NUMBERS, "names": NAMES, "doubles": DOUBLES}.items()
):
    stated = described(limits, who=kind({"names": "text", "doubles": "real"}.get(name, "integer")))
    shown = ", ".join(f"{k} {v}" for k, v in vars(limits).items() if v is not None)
    by_ward = asked(SCAN, [T["ward"]], [DOMAIN["ward"]], BOUNDED, limits)
    CASES[f"bounded, {name}, {shown}"] = Case(by_ward, stated, tuple(people))
    unknown = asked(SCAN, [T["note"], T["well"]], [None, DOMAIN["well"]], BOUNDED, limits)
    CASES[f"bounded, {name}, {shown}, unknown keys"] = Case(unknown, stated, tuple(people))
    if limits.groups is None:
        CASES[f"bounded, {name}, {shown}, no keys"] = Case(asked(SCAN, (), (), BOUNDED, limits), stated, tuple(people))


def answer(source, case):
    """Groups with their measures, in an order of their own."""
    exact = source.aggregate(case.request, case.schema, SECRET)
    if exact.keys is None:
        return [m.tolist() for m in exact.measures]
    keys = zip(*(column.to_pylist() for column in exact.keys.columns), strict=True)
    rows = zip(map(repr, keys), *(m.tolist() for m in exact.measures), strict=True)
    return sorted(rows)


def agrees(make, hash_of, case):
    return answer(make(case.stored()), case) == answer(specified(case.stored(), hash_of), case)


DOZEN = [
    *("everything", "by age and truth", "without bounds", "text", "spread", "a public side that repeats"),
    *("two private sides", "per unit", "per unit and key", "bounded, names, rows 3", "two rows a year, of names"),
    *("bounded, doubles, groups 2, rows_per_group 1, unknown keys", "bounded, numbers, rows 1, no keys"),
    *("compared beyond the bounds", "left joins beyond the bounds", "reals and dates beyond the bounds"),
]  # for Spark itself, which takes a second for each; pysail is asked everything
LATE = ("spark", "pysail, files", "spark, files")
ASKED = [(source, name) for source in SOURCES for name in (DOZEN if source in LATE else CASES)]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("source", "name"), ASKED)
def test_a_source_answers_as_specified(source, name, request):
    assert agrees(*maker(source, request), CASES[name])


# What else a source promises


STARTED = ("pysail", *LATE)  # what takes time to start


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in STARTED)) for name in SOURCES])
def source(request):
    make, hash_of = maker(request.param, request)
    case = Case(CASES["everything"].request)
    return make(case.stored()), specified(case.stored(), hash_of), case.schema


def test_tables_types_and_repeats(source):
    made, right, _ = source
    assert made.tables == right.tables == ("floors", "t", "u")
    known = STORED_AS.get(type(made).__name__.lower(), {})
    for table in right.tables:
        assert made.stored(table) == {c: known.get(c, kept) for c, kept in right.stored(table).items()}
    assert made.repeats(FLOOR) == right.repeats(FLOOR) == dict(FLOOR.repeats)
    with pytest.raises(InputError, match="no data for table x"):
        made.stored("x")


def test_rows_are_clean_and_units_are_numbered(source):
    made, right, schema = source
    plan = Where(Scan("t", "t"), Call("more", (T["pay"], Literal(0))))
    found = [s.rows(plan, {"t.pay": "x", "t.note": "y"}, schema, SECRET) for s in (made, right)]
    assert found[0].schema.names == found[1].schema.names == ["x", "y", "unit"]
    rows = [Counter(map(repr, zip(t.column("x").to_pylist(), t.column("y").to_pylist(), strict=True))) for t in found]
    assert rows[0] == rows[1]
    sizes = [sorted(Counter(t.column("unit").to_pylist()).values()) for t in found]
    assert sizes[0] == sizes[1]


def test_release_draws_once_where_the_cells_are(source):
    made, right, schema = source
    drawn = []

    def draw(exact, rng):
        drawn.append(rng)
        return [m.tolist() for m in exact.measures]

    request = CASES["everything"].request
    assert made.release(request, draw, schema, SECRET) == [
        m.tolist() for m in right.aggregate(request, schema, SECRET).measures
    ]
    assert drawn == [SYSTEM]


@pytest.mark.slow_after(1)
def test_another_secret_retains_other_rows(source):
    made, _, schema = source
    request = CASES["bounded, numbers, rows 1, no keys"].request
    answers = {repr(made.aggregate(request, schema, bytes([i]) * 16).measures) for i in range(3)}
    assert len(answers) == 3  # fixed secrets, so no chance has a part in it


# Sources that forget one thing


class Unbounded(Memory):
    def bounded(self, groups, *rest):
        return groups


class OneMore(Memory):
    def bounded(self, groups, request, *rest):
        looser = Limits(**{name: value and value + 1 for name, value in vars(request.limits).items()})
        return super().bounded(groups, replace(request, limits=looser), *rest)


class AnySecret(Memory):
    def bounded(self, groups, request, ties, schema, secret):
        return super().bounded(groups, request, ties, schema, bytes(16))


class CountsNulls(Memory):
    def measured(self, m, rows, *rest):
        return len(rows) if m.what == "count" else super().measured(m, rows, *rest)


class CountsRowsForUnits(Memory):
    def measured(self, m, rows, *rest):
        return len(rows) if m.what == "units" else super().measured(m, rows, *rest)


def one_too_far(value, kind, stored, clean=memory_rows.clean):
    """Clamps to the declared bounds, only one step too far."""
    wider = replace(kind, high=kind.high + 1) if kind.number and kind.high is not None else kind
    return clean(value, wider, stored)


def nan_is_zero(value, kind, stored, clean=memory_rows.clean):
    return clean(0.0 if value != value else value, kind, stored)


def null_is_dropped(value, kind, stored, clean=memory_rows.clean):
    return clean(value, replace(kind, nullable=True), stored)


def null_dates_too(self, scan, table, limit, plain=memory_rows.Rows._per_period):
    yield from plain(self, scan, table, limit)
    yield from (row for stored, row in self._owned(scan, table) if stored[limit.of][0] is None)


def one_too_narrow(value, kind, stored, is_inside=memory_rows.is_inside):
    """Takes the last value within the bounds to be beyond them."""
    return is_inside(value, replace(kind, high=kind.high - 1) if kind.number and kind.bounded else kind, stored)


def null_is_outside(value, kind, stored, is_inside=memory_rows.is_inside):
    return value is not None and is_inside(value, kind, stored)


BY_WARD = "bounded, names, rows 3"
TWINS = {  # with the case that convicts each
    "forgets to bound": (Unbounded, {}, BY_WARD),
    "retains one row or group more": (OneMore, {}, BY_WARD),
    "chooses by another key": (AnySecret, {}, "bounded, names, rows 1, no keys"),
    "counts NULL": (CountsNulls, {}, "everything"),
    "counts rows for units": (CountsRowsForUnits, {}, BY_WARD),
    "clamps too far": (Memory, {"rows.clean": one_too_far}, "choices"),
    "compares the nearer bound": (Memory, {"rows.is_inside": lambda *_: True}, "compared beyond the bounds"),
    "groups by the nearer bound": (Memory, {"rows.is_inside": lambda *_: True}, "keys beyond the bounds"),
    "takes a bound to be beyond it": (Memory, {"rows.is_inside": one_too_narrow}, "by age"),
    "takes NULL to be beyond the bounds": (Memory, {"rows.is_inside": null_is_outside}, "by age"),
    "says nothing of values beyond the bounds": (
        Memory,
        {"source.within_bounds": lambda request, schema: request},
        "sub-queries beyond the bounds",
    ),
    "takes NaN for 0": (Memory, {"rows.clean": nan_is_zero}, "by a real on a grid"),
    "leaves NULL where it is declared away": (Memory, {"rows.clean": null_is_dropped}, "everything"),
    "rounds halves to even": (Memory, {"values._half_away": round}, "everything"),
    "takes months of all years for one period": (Memory, {"rows.truncated": lambda _, at: at.month}, "a row a year"),
    "retains rows without a date": (Memory, {"rows.Rows._per_period": null_dates_too}, "a row a year"),
    "retains all rows in joins": (Memory, {"rows._retained": lambda rows, limit: list(rows)}, "two private sides"),
}


@pytest.fixture(scope="module")
def right():
    """What the specification answers, computed as it is needed."""
    return functools.cache(lambda name: answer(Memory(CASES[name].stored()), CASES[name]))


@pytest.mark.parametrize("name", TWINS)
def test_twins_are_convicted(name, right, monkeypatch):
    make, broken, witness = TWINS[name]
    expected = right(witness)
    for place, function in broken.items():
        monkeypatch.setattr(f"noisette.engines.memory.{place}", function)
    assert answer(make(CASES[witness].stored()), CASES[witness]) != expected


# Dialects


@pytest.mark.slow
def test_whatever_engines_write_differently_goes_through_the_dialect():
    """A dialect that renames each of its parts leaves none of the usual names in any query."""

    def renamed(name):
        def write(node):
            given = [node.this] if isinstance(node.this, exp.Expr) else []
            return exp.Anonymous(this=f"my_{name}", expressions=[*given, *node.expressions])

        return write

    parts = [each.name for each in fields(Dialect) if each.name != "name"]
    mine = Dialect("duckdb", **{part: renamed(part) for part in parts})
    seen = set()
    for case in [case for name, case in CASES.items() if "bounded" not in name]:
        stored = {name: Memory(case.stored()).stored(name) for name in ("t", "u", "floors")}
        text = text_of(relation_sql(case.request.source, case.schema, stored, secret=SECRET), mine)
        seen |= {part for part in parts if f"my_{part}(" in text.lower()}
        assert not re.search(r"\b(try_cast|hash|row|isnan|isfinite|round|least|greatest)\(", text.lower())
    assert seen == set(parts)
