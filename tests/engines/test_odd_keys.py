"""Whatever an integer key holds is a value of its domain or in no group: no stored value decides if a question fails.

Each column of whole numbers is declared with bounds that its values exceed, grouped by alone and beside known and
unknown keys, by rows and by people, with keys that are cleaned before and after the rows are grouped. All of these must
agree with a plain evaluation.
"""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.engines.duckdb import source as duckdb_source
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.sql import aggregate as aggregating
from noisette.engines.sql import group_by as grouping
from noisette.engines.sql.keys import Key
from noisette.errors import NoisetteError
from noisette.query.expression import Name
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.plan import Scan
from noisette.query.schema import Column, Limits, Table

WIDTHS = {
    "i8": (8, True),
    "i16": (16, True),
    "i32": (32, True),
    "i64": (64, True),
    "u8": (8, False),
    "u32": (32, False),
}
BOUNDS = [(0, 110), (-100, 120), (100, 300)]
ENDS = [end + off for pair in BOUNDS for end in pair for off in (-1, 0, 1)]
WARDS = ("a", "b")
NOBODY, SECRET = Limits(rows=10**6, groups=10**6, rows_per_group=10**6), bytes(16)
KEYED = [("{}",), ("{}", "ward"), ("zip", "{}"), ("ward", "{}", "zip")]
MEASURES = (Measure("rows"), Measure("count", Name("t.ward")), Measure("sum", Name("t.pay"), Fraction(1), 0, 9))


def odd(width):
    """Values at and around all bounds, the ends of the type, and NULL."""
    bits, signed = width
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    inside = sorted({v for v in (*ENDS, least, least + 1, most - 1, most, 999) if least <= v <= most})
    return [None, *inside]


def columns():
    """Rows in which every width has each of its odd values with each ward."""
    size = 2 * 3 * max(len(odd(width)) for width in WIDTHS.values())
    made = {name: [odd(w)[i % len(odd(w))] for i in range(size)] for name, w in WIDTHS.items()}
    return made | {
        "ward": [("a", "b", None)[i * 3 // size] for i in range(size)],
        "zip": [("x", "y", None, "z")[i % 4] for i in range(size)],
        "pay": [i % 12 for i in range(size)],
        "who": list(range(size)),
    }


ROWS = columns()


@pytest.fixture(scope="module")
def source():
    types = {n: getattr(pyarrow, f"{'int' if signed else 'uint'}{bits}")() for n, (bits, signed) in WIDTHS.items()}
    return DuckDB({"t": pyarrow.table({n: pyarrow.array(v, types.get(n)) for n, v in ROWS.items()})})


def described(name, bounds, nullable, unit):
    """The table with one declared number, and the domains of its keys."""
    number = Kind("integer", *map(Fraction, bounds), Fraction(1), nullable=nullable)
    kinds = {
        name: number,
        "ward": Kind("text", keys=WARDS),
        "zip": Kind("text"),
        "pay": Kind("integer", Fraction(0), Fraction(9), Fraction(1)),
    }
    own = Table("t", tuple(Column(n, kind) for n, kind in (kinds | {"who": Kind("integer")}).items()), unit=unit)
    null = (None,) if nullable else ()
    return own, {name: (*range(bounds[0], bounds[1] + 1), *null), "ward": WARDS, "zip": None}


def asked(source, keys, table, domains):
    """Groups with their measures, as the engine has them."""
    limits = None if table.unit is None else NOBODY
    wanted = tuple(domains[key] for key in keys)
    request = Request(Scan("t", "t"), tuple(Name(f"t.{key}") for key in keys), wanted, MEASURES, limits)
    exact = source.aggregate(request, {"t": table}, SECRET)
    groups = (
        list(itertools.product(*wanted))
        if exact.keys is None
        else list(zip(*exact.keys.to_pydict().values(), strict=True))
    )
    assert len(set(groups)) == len(groups)
    found = zip(groups, *(m.tolist() for m in exact.measures), strict=True)
    return {group: tuple(numbers) for group, *numbers in found if any(numbers)}


def evaluated(name, bounds, nullable, keys):
    """The same by hand: a number beyond its bounds is in no group, NULL where there is none is the nearest to 0."""
    zero = min(max(0, bounds[0]), bounds[1])
    totals = [Counter(), Counter(), Counter()]
    for i in range(len(ROWS["who"])):
        row = {key: ROWS[key][i] for key in (name, "ward", "zip")}
        row[name] = (None if nullable else zero) if row[name] is None else row[name]
        beyond = row[name] is not None and not bounds[0] <= row[name] <= bounds[1]
        if beyond or ("ward" in keys and row["ward"] not in WARDS):
            continue
        group = tuple(row[key] for key in keys)
        for total, more in zip(totals, (1, row["ward"] is not None, min(ROWS["pay"][i], 9)), strict=True):
            total[group] += more
    return {group: tuple(total[group] for total in totals) for group in totals[0]}


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDTHS)
def test_late_early_and_by_hand(source, name, monkeypatch):
    late = []
    right = duckdb_source.postponed

    def noticed(keys, *rest):
        late.append(any(key.late for key in right(keys, *rest)))
        return right(keys, *rest)

    for bounds, nullable, shape in itertools.product(BOUNDS, (True, False), KEYED):
        keys = tuple(key.format(name) for key in shape)
        wanted = evaluated(name, bounds, nullable, keys)
        others = [(lambda keys, *_: keys, None), (noticed, "who")] if bounds == BOUNDS[1] else []
        for path, unit in [(noticed, None), *others]:
            monkeypatch.setattr(duckdb_source, "postponed", path)
            found = asked(source, keys, *described(name, bounds, nullable, unit))
            assert found == wanted, (bounds, nullable, keys, unit)
    assert all(late)
    assert len(late) == len(BOUNDS) * 2 * len(KEYED)


# The question that was asked


BOB = "SELECT zip, age, COUNT(*) AS n FROM data WHERE name = 'bob' GROUP BY zip, age"


def outcome(age, stored):
    table = pyarrow.table({"name": ["ann", "bob"], "zip": ["x", "y"], "age": pyarrow.array([30, age], stored)})
    rules = {"tables": {"data": {"columns": {"age": {"bounds": [0, 110]}}}}}
    answer = nz.open(table, budget=nz.Approx(1, "1e-3"), policy=rules).sql(BOB, spend=nz.Approx("0.001", "1e-9"))
    return [(column.name, str(column.values.type)) for column in answer.columns]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("age", [50, 0, 110, 111, 112, 120, -1, 127, None])
def test_no_age_of_bob_decides_whether_the_question_fails(age):
    assert outcome(age, pyarrow.int64()) == outcome(age, pyarrow.int8()) == outcome(50, pyarrow.int16())


# What the arrays do if a code were wrong


def test_codes_that_cannot_be_still_stand_for_something():
    key = Key(None, "integer", pyarrow.int64(), (5, 6, None), (5, 6, None))
    codes = pyarrow.table({"g0": pyarrow.array([-3, 0, 2, 3, 2**62, None], pyarrow.int64())})
    assert grouping.released_keys(codes, [key]).column(0).to_pylist() == [5, 5, None, None, None, 5]
    at, numbers = np.array([-1, 0, 0, 3, 99]), np.array([1, 2, 4, 8, 16])
    assert aggregating._scattered(at, numbers, 3).tolist() == [7, 0, 24]
    assert aggregating._scattered(at[:0], numbers[:0], 0).tolist() == []


def test_a_number_from_a_sub_query_is_held_to_its_domain(monkeypatch):
    """Only stored columns are known to be clean; of others the engine is not trusted with what arithmetic promises."""
    table = pyarrow.table({"age": [1, 5, 9, 300]})
    rules = {"tables": {"data": {"columns": {"age": {"bounds": [0, 9], "nullable": False}}}}}
    data = nz.open(table, budget=10**4, policy=rules)
    seen = []
    right = duckdb_source.keys_of

    def noticed(*given):
        seen.extend(right(*given))
        return right(*given)

    monkeypatch.setattr(duckdb_source, "keys_of", noticed)
    inner = "SELECT age + 1 AS older FROM data"
    older = data.sql(f"SELECT older, COUNT(*) AS n FROM ({inner}) AS s GROUP BY older", spend=1000)
    plain = data.sql("SELECT age, COUNT(*) AS n FROM data GROUP BY age", spend=1000)
    assert [key.clean for key in seen] == [False, True]
    assert older["n"].values.to_pylist() == plain["n"].values.to_pylist() == [0, 1, 0, 0, 0, 1, 0, 0, 0, 1]


def test_a_twin_that_forgets_to_clean_fails(source, monkeypatch):
    monkeypatch.setattr(aggregating, "cleaned", lambda groups, keys, others: groups)
    monkeypatch.setattr(source._session, "_texts", {})  # else the same question may have been written before
    table, domains = described("i8", (-100, 120), True, None)
    try:
        found = asked(source, ("zip", "i8"), table, domains)
    except (NoisetteError, AssertionError):
        return
    assert found != evaluated("i8", (-100, 120), True, ("zip", "i8"))
