"""Units through foreign keys: every source knows whose a row is as the specification does, however keys are stored.

Lines refer to orders, orders to customers. Keys have gaps, NULLs and orphans; the odd rows lead to nobody.
"""

from dataclasses import replace

import pyarrow
import pytest
from tests.contracts.test_sources import LATE, SECRET, SOURCES, kind, maker, specified

from noisette.engines.memory import rows
from noisette.engines.memory.source import Memory
from noisette.query.canonical import canonical
from noisette.query.kind import Kind
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Limits, Link, Table
from noisette.query.sql import parse

INT, TWO = pyarrow.int64(), Limits(rows=2)
WHOLE, PRICE = Kind("integer"), kind("integer", 0, 9, 1)
FLAG = Kind("text", keys=("a", "b"))

CUSTOMERS = {"id": [1, 2, 3, None, 7], "region": ["a", "b", "a", "b", "b"], "person": [10, 20, 10, 30, None]}
ORDERS = {"key": [11, 12, 13, 14, 15, None, 17], "part": [0, 0, 1, 0, 1, 1, 0], "customer": [1, 1, 2, 9, None, 3, 7]}
ORDERS |= {"flag": ["a", "b", "a", "a", "b", "a", "b"]}
LINES = {"order": [11, 11, 11, 12, 13, 14, 15, None, 17, 99, 13], "part": [0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0]}
LINES |= {"price": [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, None]}


def stored(keys=INT, far=None, units=INT, *, made=lambda x: x):
    """The tables with keys of one type, referred to as another, and units of a third."""

    def column(values, type):
        return pyarrow.array([None if v is None else made(v) if type is not units else v for v in values]).cast(type)

    people = pyarrow.array(CUSTOMERS["person"]).cast(units)
    customers = pyarrow.table(CUSTOMERS).set_column(2, "person", people)
    customers = customers.set_column(0, "id", column(CUSTOMERS["id"], far or keys))
    orders = pyarrow.table(ORDERS).set_column(0, "key", column(ORDERS["key"], far or keys))
    orders = orders.set_column(2, "customer", column(ORDERS["customer"], keys))
    return {
        "customers": customers,
        "orders": orders,
        "lines": pyarrow.table(LINES).set_column(0, "order", column(LINES["order"], keys)),
    }


def schema(key=WHOLE, unit=WHOLE, limits=TWO):
    """Lines of two columns of a key, orders of one, customers of a person."""
    to_customer = Link("customers", (("customer", "id"),))
    to_order = Link("orders", (("order", "key"), ("part", "part")))

    def table(name, columns, **more):
        return Table(name, tuple(Column(n, k) for n, k in columns.items()), unit="person", limits=limits, **more)

    return {
        "customers": table("customers", {"id": key, "region": FLAG, "person": unit}),
        "orders": table("orders", {"key": key, "part": WHOLE, "customer": key, "flag": FLAG}, through=(to_customer,)),
        "lines": table("lines", {"order": key, "part": WHOLE, "price": PRICE}, through=(to_order, to_customer)),
    }


ALONG = 'lines l JOIN orders o ON l."order" = o.key AND l.part = o.part'
ALL = 'customers c JOIN orders o ON c.id = o.customer JOIN lines l ON o.key = l."order" AND o.part = l.part'
QUESTIONS = {
    "lines": "SELECT count(*), sum(price) FROM lines",
    "where": "SELECT count(*), avg(price) FROM lines WHERE price > 1",
    "orders": "SELECT flag, count(*) FROM orders GROUP BY flag",
    "along": f"SELECT flag, count(*), sum(price) FROM {ALONG} WHERE flag = 'a' AND price > 1 GROUP BY flag",
    "all": f"SELECT region, count(*), count(DISTINCT person), sum(price) FROM {ALL} GROUP BY region",
    "parents first": 'SELECT flag, count(*), sum(price) FROM orders o LEFT JOIN lines l ON l."order" = o.key '
    "AND l.part = o.part GROUP BY flag",
    "children of one order": 'SELECT count(*), sum(a.price) FROM lines a JOIN lines b ON a."order" = b."order" '
    "AND a.part = b.part WHERE a.price <= b.price",
    "per order": 'SELECT count(*), sum(least(n, 2)) FROM (SELECT "order", part, count(*) AS n FROM lines '
    'GROUP BY "order", part) t',
    "per order, joined": 'SELECT flag, count(*), sum(least(n, 2)) FROM (SELECT "order", part, count(*) AS n FROM lines '
    'GROUP BY "order", part) t JOIN orders o ON o.key = t."order" AND o.part = t.part GROUP BY flag',
}
STORED = {
    "whole numbers": ((), {}),
    "narrow and wide": ((pyarrow.int32(), pyarrow.int64()), {}),
    "text": ((pyarrow.string(),), {"made": lambda x: f"Key {x}" if x % 2 else f"key {x}"}),
    "decimals": ((pyarrow.decimal128(20, 1),), {}),
    "keys without NULL": ((), {}),
    "units as text": ((pyarrow.int64(), None, pyarrow.string()), {}),
    "units as doubles": ((pyarrow.int64(), None, pyarrow.float64()), {}),
}
KINDS = {"text": (Kind("text"), WHOLE), "decimals": (Kind("real"), WHOLE)}
KINDS |= {"keys without NULL": (kind("integer", 0, 50, nullable=False), WHOLE)}  # NULL counts as 0, beyond 50 as 50
KINDS |= {"units as text": (WHOLE, Kind("text")), "units as doubles": (WHOLE, Kind("real"))}


MORE = Limits(rows=100), Limits(groups=1, rows_per_group=2)
EVERY = [*(("duckdb", how, TWO) for how in STORED), *(("duckdb", "text", limits) for limits in MORE)]
EVERY += [(source, "whole numbers", TWO) for source in SOURCES if source not in ("duckdb", "memory", *LATE)]
EVERY += [("pysail", "text", TWO)]


def answer(source, text, tables):
    prepared = prepare(canonical(parse(text, tables)), tables)
    return [m.tolist() for m in source.aggregate(prepared.request, tables, SECRET).measures]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("source", "how", "limits"), EVERY, ids=str)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_source_knows_whose_a_row_is(name, how, source, limits, request):
    given, more = STORED[how]
    tables, rules = stored(*given, **more), schema(*KINDS.get(how, ()), limits=limits)
    make, hash_of = maker(source, request)
    assert answer(make(tables), QUESTIONS[name], rules) == answer(specified(tables, hash_of), QUESTIONS[name], rules)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("source", SOURCES)
def test_what_leads_to_nobody_is_left_out(source, request):
    """Of eleven lines four belong to person 10 and one to person 20: by order 11, 12 and 13."""
    make, _ = maker(source, request)
    rules = schema(limits=Limits(rows=100))
    assert answer(make(stored()), QUESTIONS["lines"], rules) == [[5], [15]]
    assert answer(make(stored()), QUESTIONS["orders"], rules) == [[3, 1, 0]]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("source", SOURCES)
def test_a_key_is_unique_as_it_is_stored_and_when_it_is_clean(source, request):
    make, _ = maker(source, request)
    values = {"same": [1, 1], "other": [1, 2], "nulls": [None, None], "far": [5, 6]}
    table = pyarrow.table({name: pyarrow.array(found, pyarrow.int64()) for name, found in values.items()})
    bounds = {"far": kind("integer", 0, 5, 1)}
    rules = Table("t", tuple(Column(n, bounds.get(n, WHOLE)) for n in values))
    made = make({"t": table})
    assert [made.unique(rules, [name]) for name in values] == [False, True, True, False]
    assert made.unique(rules, ["same", "other"])
    assert not made.unique(rules, ["same", "far"])
    zero = replace(rules, columns=(Column("k", Kind("integer", nullable=False)),))
    assert not make({"t": pyarrow.table({"k": [None, 0]})}).unique(zero, ["k"])  # NULL is declared away, as 0


def test_a_twin_that_counts_orphans_is_convicted(monkeypatch):
    right = answer(Memory(stored()), QUESTIONS["lines"], schema(limits=Limits(rows=100)))
    units = rows.Rows._units
    monkeypatch.setattr(rows.Rows, "_units", lambda self, table: lambda row: units(self, table)(row) or [10])
    assert answer(Memory(stored()), QUESTIONS["lines"], schema(limits=Limits(rows=100))) != right
