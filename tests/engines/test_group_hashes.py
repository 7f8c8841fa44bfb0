"""Groups of unknown keys whose hashes collide: what a unit retains depends on its own rows and the secret alone.

The hash of an engine is public, so somebody can write keys that share one. Every engine must then retain the same rows,
of all units at once as of some of them. A twin that forgets the rule must give another answer.
"""

import datetime
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from sqlglot import exp
from tests.contracts.test_sources import duckdb_hash

from noisette.engines.duckdb import retained as retaining
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory.source import Memory
from noisette.engines.sql.syntax import hash_of, number
from noisette.query.expression import Name
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.plan import Scan
from noisette.query.schema import Column, Limits, Table

SECRET = bytes(range(16))
DAY = datetime.date(2020, 2, 28)
KEYS = {
    "text": ["", "a", "B", "b", "ä", "a\0", "\ufffd", "\U0001f600", None],
    "integer": [-3, 0, 2, 10, 2**53 + 1, -(2**63) + 1, 2**63 - 1, None],
    "real": [-1.5, -0.0, 0.0, 2.0, 10.0, 1e300, 5e-324, None],
    "boolean": [False, True, None],
    "date": [DAY + datetime.timedelta(days) for days in (-20000, -1, 0, 1, 366)] + [None],
    "timestamp": [datetime.datetime(2020, 2, 28, hour) for hour in range(6)] + [None],
}
ARROW = {"text": "string", "integer": "int64", "real": "double", "boolean": "bool"}
ARROW |= {"date": "date32", "timestamp": "timestamp[us]"}
LIMITS = [Limits(groups=2, rows_per_group=2), Limits(rows=3), Limits(groups=1, rows_per_group=1)]

small = Kind("integer", Fraction(0), Fraction(9), Fraction(1), nullable=False)
MEASURES = (Measure("rows"), Measure("units"), Measure("sum", Name("t.pay"), Fraction(1), 0, 9))
TABLES = {
    unit: {"t": Table("t", (*(Column(name, Kind(name)) for name in KEYS), Column("pay", small), Column("known", small),
                            Column("id", Kind(unit))), unit="id")}
    for unit in ("integer", "text")
}  # fmt: skip


def weak(*values):
    """Three hashes for everything."""
    return exp.Mod(this=hash_of(*values), expression=number(3))


def weak_hash(*values):
    return duckdb_hash(*values) % 3


@pytest.fixture(autouse=True)
def collisions(monkeypatch):
    monkeypatch.setattr(retaining, "hash_of", weak)


def drawn(seed, unit, people=24, rows=400):
    """Rows of some people with random keys, in random order."""
    coins = random.Random(seed)
    who = [coins.randrange(people) for _ in range(rows)]
    made = {name: pyarrow.array(coins.choices(values, k=rows), ARROW[name]) for name, values in KEYS.items()}
    made |= {name: pyarrow.array([coins.randrange(10) for _ in who]) for name in ("pay", "known")}
    return pyarrow.table(made | {"id": who if unit == "integer" else [f"person {i}" for i in who]})


def exact(source, keys, limits, schema):
    """The measures of each group."""
    domains = tuple(tuple(range(10)) if key == "known" else None for key in keys)
    request = Request(Scan("t", "t"), tuple(Name(f"t.{key}") for key in keys), domains, MEASURES, limits)
    found = source.aggregate(request, schema, SECRET)
    groups = zip(*(column.to_pylist() for column in found.keys.columns), strict=True)
    total = Counter()
    for group, *numbers in zip(groups, *(m.tolist() for m in found.measures), strict=True):
        total.update({(*group, i): n for i, n in enumerate(numbers)})
    return total


def in_parts(rows, keys, limits, schema, parts=3):
    """The same of some units at a time, as executors do it, and then added up."""
    whose = np.array([int(str(unit).removeprefix("person ")) % parts for unit in rows.column("id").to_pylist()])
    some = [rows.filter(pyarrow.array(whose == part)) for part in range(parts)]
    total = Counter()
    for part in some:
        total.update(exact(DuckDB({"t": part}, threads=1), keys, limits, schema))
    return total


GROUPINGS = [(name,) for name in KEYS] + [("text", "integer"), ("known", "text"), ("boolean", "known", "real")]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("unit", TABLES)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("keys", GROUPINGS, ids="-".join)
def test_all_retain_the_same_rows(keys, limits, unit):
    schema, rows = TABLES[unit], drawn(f"{keys} {limits}", unit)
    found = exact(DuckDB({"t": rows}), keys, limits, schema)
    assert found == exact(Memory({"t": rows}, hash_of=weak_hash), keys, limits, schema)
    assert found == in_parts(rows, keys, limits, schema)
    turned = rows.take(pyarrow.array(np.arange(len(rows))[::-1]))
    assert found == exact(DuckDB({"t": turned}, threads=1), keys, limits, schema)


@pytest.mark.slow
def test_an_enumerated_key_is_ordered_as_its_text():
    """Values of a type are listed in an order that depends on the other units."""
    rows = drawn(0, "integer")
    texts = rows.column("text").combine_chunks()
    listed = pyarrow.array(sorted(set(texts.drop_null().to_pylist()), reverse=True))
    index = pyarrow.compute.index_in(texts, value_set=listed)
    enumerated = rows.set_column(0, "text", pyarrow.DictionaryArray.from_arrays(index, listed))
    found, right = (exact(DuckDB({"t": t}), ("text",), LIMITS[0], TABLES["integer"]) for t in (enumerated, rows))
    assert found == right


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("source", ["duckdb", "memory"])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_a_unit_has_no_more_groups_than_its_limit(source, limits):
    """With a hash of few values, too: one unit at a time."""
    rows = drawn(1, "integer", people=3)
    for who in range(3):
        own = rows.filter(pyarrow.compute.equal(rows.column("id"), who))
        made = DuckDB({"t": own}) if source == "duckdb" else Memory({"t": own}, hash_of=weak_hash)
        found = exact(made, ("text", "integer"), limits, TABLES["integer"])
        counts = [n for (*_, i), n in found.items() if i == 0 and n]
        assert limits.groups is None or len(counts) == limits.groups
        assert max(counts) <= (limits.rows_per_group or limits.rows)
        assert limits.rows is None or sum(counts) == limits.rows


# Twins


def test_a_twin_that_chooses_by_codes_of_the_whole_table_is_convicted(monkeypatch):
    """Keys of other units shift the codes, and with them what a unit retains."""
    monkeypatch.setattr(retaining, "own_groups", lambda identity, group, code, some: code.astype(np.int64))
    schema, keys = TABLES["integer"], ("text", "integer")
    rows = drawn(2, "integer", rows=100)
    assert exact(DuckDB({"t": rows}), keys, LIMITS[0], schema) != in_parts(rows, keys, LIMITS[0], schema)


def test_a_twin_that_takes_groups_with_one_hash_for_one_is_convicted(monkeypatch):
    monkeypatch.setattr(retaining, "own_groups", lambda identity, group, code, some: group)
    rows = drawn(3, "integer", people=1)
    found = exact(DuckDB({"t": rows}), ("text",), LIMITS[0], TABLES["integer"])
    assert sum(i == 1 and n > 0 for (*_, i), n in found.items()) > LIMITS[0].groups
