"""Units that are text, in many batches, whose hashes collide: bit for bit what plain Python says of each unit.

Each rule is convicted once: a twin of the code without it must give another answer.
"""

from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from tests.contracts.test_sources import duckdb_hash, invalid_text

from noisette.engines.duckdb import fetch as fetching
from noisette.engines.duckdb import identity
from noisette.engines.duckdb import retained as retaining
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory.source import Memory
from noisette.engines.sql.syntax import hash_of, number
from noisette.query.expression import Name
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.plan import Scan
from noisette.query.schema import Column, Limits, Table
from noisette.query.shape import UNIT

SECRET = bytes(range(16))
LONG = "x" * retaining._SHORT
UNITS = {
    "one length": [f"00000000-0000-4000-8000-{i:012}" for i in range(40)],
    "lengths that differ": ["", "a", "a\0", "\0a", "ab", "ä", "a\u0308", *(f"{i}" * (i % 9) for i in range(10, 40))],
    "one length in some batches": [*(f"{i:02}" for i in range(40)), *(f"{i:02}" * (i % 4) for i in range(40))],
    "some too long": [*(f"{i:02}" for i in range(20)), *(f"{LONG}{i}" for i in range(20))],
    "all too long": [f"{LONG}{LONG}{i}" for i in range(30)],
    "with NULL": [None, "a", "b", None, "c", ""],
}
LIMITS = [Limits(groups=2, rows_per_group=2), Limits(rows=3), Limits(groups=1, rows_per_group=1)]

kind = Kind("integer", Fraction(0), Fraction(99), Fraction(1), nullable=False)
columns = (Column("id", Kind("text")), Column("ward", kind), Column("pay", kind))
SCHEMA = {"t": Table("t", columns, unit="id")}
MEASURES = (Measure("rows"), Measure("units"), Measure("sum", Name("t.pay"), Fraction(1), 0, 99))


def table(units, times=12):
    """Rows of the units one after the other, so that batches differ, in an order that means nothing."""
    who = pyarrow.array([unit for unit in units for _ in range(times)], pyarrow.string())
    numbers = np.arange(len(who)) * 7919
    return pyarrow.table({"id": who, "ward": numbers % 5, "pay": numbers // 5 % 97})


def exact(source, limits, domain):
    found = source.aggregate(Request(Scan("t", "t"), (Name("t.ward"),), (domain,), MEASURES, limits), SCHEMA, SECRET)
    groups = range(len(found.measures[0])) if found.keys is None else found.keys.column(0).to_pylist()
    return sorted(zip(groups, *(m.tolist() for m in found.measures), strict=True))


def weak(*values):
    """Two hashes for all units; groups have their own."""
    found = hash_of(*values)
    return exp.Mod(this=found, expression=number(2)) if values[0].name == UNIT else found


def weak_hash(*values):
    return duckdb_hash(*values) % 2 if isinstance(values[0], str) else duckdb_hash(*values)


@pytest.fixture
def collisions(monkeypatch):
    monkeypatch.setattr(retaining, "hash_of", weak)
    monkeypatch.setattr(retaining, "BATCH_WITH_TEXT", 64)
    monkeypatch.setattr(identity, "_WAITING", 8)


def agrees(rows, limits, domain=tuple(range(5))):
    source, specification = DuckDB({"t": rows}, threads=1), Memory({"t": rows}, hash_of=weak_hash)
    return exact(source, limits, domain) == exact(specification, limits, domain)


@pytest.mark.slow_after(6)
@pytest.mark.usefixtures("collisions")
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("units", UNITS)
def test_units_with_one_hash_are_told_apart(units, limits):
    assert agrees(table(UNITS[units]), limits)


@pytest.mark.slow_after(2)
@pytest.mark.usefixtures("collisions")
@pytest.mark.parametrize("units", UNITS)
def test_units_with_one_hash_are_told_apart_in_unknown_groups(units):
    assert agrees(table(UNITS[units]), LIMITS[0], domain=None)


@pytest.mark.usefixtures("collisions")
def test_text_that_is_not_utf8_is_told_apart_as_it_is_read():
    units = [b"caf\xe9", b"caf\xc3\xa9", b"\xff", b"\xfe", b"?", b"\xc3"]
    rows = table(["a"] * len(units))
    rows = rows.set_column(0, "id", invalid_text([unit for unit in units for _ in range(12)]))
    assert agrees(rows, LIMITS[0])


@pytest.mark.usefixtures("collisions")
def test_enumerated_units_are_told_apart():
    rows = table(UNITS["lengths that differ"])
    listed = rows.set_column(0, "id", rows.column("id").combine_chunks().dictionary_encode())
    source = DuckDB({"t": listed}, threads=1)
    assert exact(source, LIMITS[0], tuple(range(5))) == exact(
        Memory({"t": rows}, hash_of=weak_hash), LIMITS[0], tuple(range(5))
    )


# Twins


@pytest.mark.usefixtures("collisions")
@pytest.mark.parametrize("units", ["one length", "lengths that differ", "all too long"])
def test_a_twin_that_goes_by_the_hash_is_convicted(units, monkeypatch):
    whole = identity.Identities.whole
    one = lambda found: None if (numbers := whole(found)) is None else numbers * 0  # noqa: E731
    monkeypatch.setattr(identity.Identities, "whole", one)
    assert not agrees(table(UNITS[units]), LIMITS[0])


@pytest.mark.usefixtures("collisions")
@pytest.mark.parametrize("units", ["some too long", "all too long"])
def test_a_twin_that_cuts_long_units_is_convicted(units, monkeypatch):
    first = lambda text: exp.Left(this=text, expression=number(retaining._SHORT))  # noqa: E731
    monkeypatch.setattr(retaining, "_short", first)
    assert not agrees(table(UNITS[units]), LIMITS[0])


@pytest.mark.usefixtures("collisions")
@pytest.mark.parametrize("units", ["one length", "lengths that differ"])
def test_a_twin_that_forgets_what_it_has_numbered_is_convicted(units, monkeypatch):
    number_waiting = identity.Identities._number

    def forgetful(self):
        number_waiting(self)
        self._known = []

    monkeypatch.setattr(identity.Identities, "_number", forgetful)
    assert not agrees(table(UNITS[units]), LIMITS[0])


# Values as they are held


@pytest.mark.usefixtures("collisions")
def test_long_units_are_not_fetched(monkeypatch):
    """What is fetched of a row is small, however long its unit is; the engine numbers the units where one is long."""
    held, append = [], identity.Identities.append

    def noted(self, piece):
        held.append((str(piece.type), len(piece), piece.nbytes))
        append(self, piece)

    monkeypatch.setattr(identity.Identities, "append", noted)
    exact(DuckDB({"t": table(UNITS["all too long"])}), LIMITS[0], tuple(range(5)))
    assert {type for type, *_ in held} == {"string", "int64"}
    assert all(nbytes <= 8 * rows + 64 for _, rows, nbytes in held)


@given(st.lists(st.lists(st.sampled_from(["", "a", "b", "ab", "a\0", "ä", "aa"]), max_size=9), max_size=9))
def test_identities_are_equal_where_values_are(pieces):
    found = identity.Identities()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "_WAITING", 3)
        for piece in pieces:
            found.append(identity.bytes_of(pyarrow.array(piece, pyarrow.string())))
    values = [value for piece in pieces for value in piece]
    first = list(dict.fromkeys(values))
    assert found.whole().tolist() == [first.index(value) for value in values]


def test_a_missing_value_leaves_no_numbers():
    found = identity.Identities()
    for piece in (["a"], ["b", None], ["c"]):
        found.append(pyarrow.array(piece))
    assert found.whole() is None
    assert found._waiting == []


@pytest.mark.parametrize("values", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("start", [0, 3])
def test_bytes_of_one_width_are_those_of_the_text(values, start):
    """Texts of one length become bytes without a copy, from a slice too; others, and NULL, stay what they are."""
    found = pyarrow.array(values, pyarrow.string()).slice(start)
    made = identity.bytes_of(found)
    width = {None if value is None else len(value.encode()) for value in found.to_pylist()}
    assert pyarrow.types.is_fixed_size_binary(made.type) == (len(width) == 1 and width != {None})
    assert made.cast(pyarrow.binary()).to_pylist() == found.cast(pyarrow.binary()).to_pylist()


def test_nothing_has_no_width():
    for values in ([], ["", ""]):
        assert identity.bytes_of(pyarrow.array(values, pyarrow.string())).type == pyarrow.string()


def test_rows_are_divided_with_their_identities():
    """Parts hold each row once, by the last bits of a number, whatever the widths of the texts of a batch are."""
    texts = [f"{i % 9:03}" if i < 100 else "x" * (i % 7) for i in range(300)]
    batch = pyarrow.record_batch({"n": np.arange(300), "identity": texts, "text": texts})
    makers = {"n": lambda b: b.column("n").to_numpy(), "text": lambda b: b.column("text")}
    makers[fetching.IDENTITY] = lambda b: identity.bytes_of(b.column("identity"))
    parts = fetching.fetched([(batch.slice(start, 50), None) for start in range(0, 300, 50)], makers, "n")
    assert len(parts) == 4  # of six batches
    found = [(n, t) for p in parts for n, t in zip(p["n"].tolist(), p["text"].to_pylist(), strict=True)]
    assert sorted(found) == list(enumerate(texts))
    for part in parts:
        assert len(set(part["n"] % len(parts))) == 1
        pairs = set(zip(part["identity"].tolist(), part["text"].to_pylist(), strict=True))
        assert len(pairs) == len({n for n, _ in pairs}) == len({text for _, text in pairs})
