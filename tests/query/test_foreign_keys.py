"""What one person can change through foreign keys is what is stated: on all small databases of two and three tables.

Keys have gaps, NULLs and orphans. Who leaves takes along the rows of all tables that lead to them; or leaves these rows
behind, as orphans. Databases in which a key is there twice do not satisfy the declared keys: they are no neighbours.
"""

from fractions import Fraction
from functools import cache
from itertools import product

import pyarrow
import pytest
import sqlglot
from sqlglot import exp
from tests.query.worlds import PEOPLE, Worlds, faults, measured, multisets, neighbours, replaced, table

from noisette.engines.sql import tables as compiling
from noisette.privacy import Neighbours
from noisette.query.kind import Kind
from noisette.query.schema import Limits, Link
from noisette.query.shape import UNIT

F = Fraction
WHOLE, TEXT = pyarrow.int64(), pyarrow.string()
KEY, FLAG, X = Kind("integer"), Kind("text", keys=("a", "b")), Kind("integer", F(0), F(2), F(1))

# Orders o(u, k, flag) of persons u; lines l(k, x) of orders k

ORDERS = [(1, 1, "a"), (1, 2, "b"), (1, 2, "a"), (2, 1, "a"), (2, 2, "b"), (None, 2, "b"), (1, None, "a")]
LINES = [(1, 0), (1, 2), (1, None), (2, 2), (2, 0), (3, 2), (None, 2)]

# Customers c(u, id) of persons u; orders o(id, k, flag) of customers; lines l(k, x) of orders

CUSTOMERS = [(1, 1), (1, 2), (2, 2), (None, 1)]
BOUGHT = [(1, 1, "a"), (2, 1, "a"), (1, 2, "b"), (9, 2, "b"), (None, 1, "a")]


def keyed(worlds, name, at):
    """The worlds whose table of that name has no key twice; NULL is none."""

    def unique(world):
        keys = [row[at] for row in world[name] if row[at] is not None]
        return len(set(keys)) == len(keys)

    return [world for world in worlds if unique(world)]


@cache
def _two():
    rows = product(multisets(ORDERS, 2), multisets(LINES, 3))
    return keyed([{"o": a, "l": b} for a, b in rows], "o", 1)


@cache
def _three():
    rows = product(multisets(CUSTOMERS, 2), multisets(BOUGHT, 2), multisets(LINES[1:6], 2))
    return keyed(keyed([{"c": a, "o": b, "l": x} for a, b, x in rows], "c", 1), "o", 1)


def two_tables(limits, **twin):
    o = table("o", {"u": KEY, "k": KEY, "flag": FLAG}, unit="u", limits=Limits(rows=1))
    declared = {"unit": "u", "limits": limits, "through": (Link("o", (("k", "k"),)),), **twin}
    columns = {"o": {"u": WHOLE, "k": WHOLE, "flag": TEXT}, "l": {"k": WHOLE, "x": WHOLE}}
    return Worlds({"o": o, "l": table("l", {"k": KEY, "x": X}, **declared)}, columns, _two(), {})


def three_tables(limits):
    to_customer, to_order = Link("c", (("id", "id"),)), Link("o", (("k", "k"),))
    c = table("c", {"u": KEY, "id": KEY}, unit="u", limits=Limits(rows=2))
    o = table("o", {"id": KEY, "k": KEY, "flag": FLAG}, unit="u", limits=limits, through=(to_customer,))
    line = table("l", {"k": KEY, "x": X}, unit="u", limits=limits, through=(to_order, to_customer))
    columns = {"c": {"u": WHOLE, "id": WHOLE}, "o": {"id": WHOLE, "k": WHOLE, "flag": TEXT}}
    return Worlds({"c": c, "o": o, "l": line}, columns | {"l": {"k": WHOLE, "x": WHOLE}}, _three(), {})


# Who leaves


def cascade(world, person):
    """What is left without a person and without all rows that lead to them."""
    first, *others = world
    gone = {row[1] for row in world[first] if row[0] == person} - {None}
    left = {first: tuple(row for row in world[first] if row[0] != person)}
    for name in others:
        left[name] = tuple(row for row in world[name] if row[0] not in gone)
        gone = {row[1] for row in world[name] if row[0] in gone} - {None}
    return left


def orphans(world, person):
    """What is left without a person whose rows in other tables stay behind."""
    first = next(iter(world))
    return {**world, first: tuple(row for row in world[first] if row[0] != person)}


@cache
def pairs_of(worlds, without):
    """Pairs of neighbours under add/remove and under replace; `worlds` is the function that makes them."""
    pairs = [(a, b) for a, b in neighbours(worlds(), unit=True, without=without) if a != b]
    assert len(pairs) > 100
    return {Neighbours.ADD_REMOVE: pairs, Neighbours.REPLACE: replaced(pairs)}


def checked(question, worlds, *, world, share=1, leaving=(cascade, orphans), **options):
    """Faults under add/remove and under replace."""
    prepared, arrays = measured(question, worlds, world=world, **options)
    made = _three if "c" in worlds.schema else _two
    cases = [(relation, pairs) for without in leaving for relation, pairs in pairs_of(made, without).items()]
    return [fault for relation, pairs in cases for fault in faults(prepared, arrays, pairs, relation, share=share)]


# Questions, with the table whose world is asked for

ALL = "count(*), count(x), count(distinct x), sum(x), avg(x), median(x), sum(x - 1)"
MET = "ON l.k = o.k{l.w = o.w}"
LINE = {
    "lines": (f"SELECT {{w}} {ALL} FROM l", "w"),
    "by value": (f"SELECT {{w}} x, {ALL} FROM l{{g}}x", "w"),
    "where": (f"SELECT {{w}} x, {ALL} FROM l WHERE x >= 1{{g}}x", "w"),
    "lines of orders": (f"SELECT {{w}} flag, {ALL}, count(distinct u) FROM l JOIN o {MET}{{g}}flag", "l.w"),
    "orders of lines": (f"SELECT {{w}} flag, {ALL}, count(distinct u) FROM o JOIN l {MET}{{g}}flag", "l.w"),
    "conditions": (f"SELECT {{w}} flag, {ALL} FROM o JOIN l {MET} WHERE x > 0 AND flag = 'a'{{g}}flag", "l.w"),
    "orders at least once": (f"SELECT {{w}} flag, {ALL} FROM o LEFT JOIN l {MET}{{g}}flag", "o.w"),
    "lines at least once": (f"SELECT {{w}} flag, {ALL} FROM l LEFT JOIN o {MET}{{g}}flag", "l.w"),
    "lines of one order": (
        "SELECT {w} l.x, count(*), sum(t.x) FROM l JOIN l AS t ON l.k = t.k{l.w = t.w}{g}l.x",
        "l.w",
    ),
    "per person": ("SELECT {w} count(*), sum(least(n, 2)) FROM (SELECT COUNT(*) AS n{m} FROM l) AS s", "w"),
    "per order": (
        "SELECT {w} count(*), sum(least(n, 2)) FROM (SELECT k, COUNT(*) AS n{m} FROM l GROUP BY k) AS s",
        "w",
    ),
    "per person, joined": (
        "SELECT {w} flag, count(*) FROM (SELECT u, COUNT(*) AS n{v} FROM o GROUP BY u{v}) AS s "
        "JOIN o ON s.u = o.u{s.w = o.w}{g}flag",
        "s.w",
    ),
    "per order, joined": (
        "SELECT {w} flag, count(*), sum(least(n, 2)) FROM (SELECT k, COUNT(*) AS n{v} FROM l GROUP BY k{v}) AS s "
        "JOIN o ON s.k = o.k{s.w = o.w}{g}flag",
        "s.w",
    ),
}
CUSTOMER = "c.id = o.id{c.w = o.w}"
CHAIN = {
    "orders": ("SELECT {w} flag, count(*) FROM o{g}flag", "w"),
    "lines": LINE["lines"],
    "customers first": (
        f"SELECT {{w}} flag, {ALL}, count(distinct u) FROM c JOIN o ON {CUSTOMER} JOIN l {MET}{{g}}flag",
        "l.w",
    ),
    "lines first": (f"SELECT {{w}} flag, {ALL} FROM l JOIN o {MET} JOIN c ON {CUSTOMER}{{g}}flag", "l.w"),
    "orders of customers": (f"SELECT {{w}} flag, count(*) FROM c LEFT JOIN o ON {CUSTOMER}{{g}}flag", "c.w"),
}
LIMITS = [Limits(rows=1), Limits(rows=2), Limits(groups=1, rows_per_group=2)]


@pytest.mark.slow
@pytest.mark.parametrize("limits", LIMITS[::2], ids=str)
@pytest.mark.parametrize("name", ["by value", "orders at least once"])
def test_other_limits(name, limits):
    question, world = LINE[name]
    assert checked(question, two_tables(limits), world=world) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", LINE)
def test_two_tables(name):
    question, world = LINE[name]
    assert checked(question, two_tables(LIMITS[1]), world=world) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAIN)
def test_three_tables(name):
    question, world = CHAIN[name]
    assert checked(question, three_tables(LIMITS[0]), world=world) == []


# Broken twins


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lines", "by value", "orders at least once", "per order", "lines of one order"])
def test_half_the_sensitivity_is_noticed(name):
    question, world = LINE[name]
    assert checked(question, two_tables(LIMITS[1]), world=world, share=F(1, 2))


@pytest.mark.slow
def test_a_twin_that_forgets_the_cascade_is_noticed():
    """Each line protected by itself: who leaves takes several along."""
    assert checked(*LINE["lines"][:1], two_tables(Limits(), unit=None, through=()), world="w", leaving=(cascade,))


@pytest.mark.slow
def test_a_twin_that_limits_per_order_is_noticed():
    """One line of each order, where one line of each person is stated."""
    twin = two_tables(Limits(rows=1), unit="k", through=())
    assert checked(*LINE["lines"][:1], twin, world="w", leaving=(cascade,))


@pytest.mark.slow
def test_a_twin_that_counts_orphans_is_noticed(monkeypatch):
    """Each orphan as somebody: lines that were limited are free when their order is gone."""
    owned = compiling._owned

    def counting(table, made, reading):
        select = owned(table, made, reading)
        if not table.through:
            return select
        for join in select.args["joins"]:
            join.set("side", "LEFT")
            join.set("kind", None)
        somebody = f"COALESCE(parent.{UNIT}, child.w * {PEOPLE} + 3 + COALESCE(child.x, 1))"
        parts = [exp.alias_(sqlglot.parse_one(somebody), UNIT) if e.alias == UNIT else e for e in select.expressions]
        return select.select(*parts, append=False)

    worlds = two_tables(Limits(rows=1))
    assert checked(*LINE["lines"][:1], worlds, world="w") == []
    monkeypatch.setattr(compiling, "_owned", counting)
    assert checked(*LINE["lines"][:1], worlds, world="w", leaving=(orphans,))


@pytest.mark.slow
def test_a_join_that_multiplies_and_is_taken_for_one_that_does_not_is_noticed(monkeypatch):
    question, world = LINE["per person, joined"]
    monkeypatch.setattr("noisette.query.stability._unique", lambda *_: True)
    assert checked(question, two_tables(Limits(rows=1)), world=world)


@pytest.mark.slow
def test_a_limit_off_by_one_is_noticed():
    assert checked(*LINE["lines of orders"][:1], two_tables(Limits(rows=1)), world="l.w", more=1)


@pytest.mark.slow
def test_an_order_that_changes_its_customer_moves_no_more_than_two_persons():
    """Person 1 loses it and person 2 gains it: what one of them can change, twice."""
    question, world = LINE["by value"]
    prepared, arrays = measured(question, two_tables(LIMITS[1]), world=world)
    index = {(one["o"], one["l"]): number for number, one in enumerate(_two())}
    moved = [
        (number, index[((2, *o[0][1:]),), lines])
        for (o, lines), number in index.items()
        if len(o) == 1 and o[0][0] == 1 and (((2, *o[0][1:]),), lines) in index
    ]
    assert len(moved) > 100
    assert faults(prepared, arrays, moved, Neighbours.ADD_REMOVE, share=2) == []
