"""Sparse tables: filled combinations are those of GROUP BY, whatever the rows hold; parts of the table are counted."""

import datetime
import json
import math
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.curator.demo import hospital
from noisette.errors import InputError, PrivacyError
from noisette.query.kind import Kind
from noisette.questions.parts.key_domains import KeyDomain, domain_of

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3, 4)]
COLUMNS = {
    "zone": {"keys": ["a", "b", "=c"]},
    "age": {"bounds": [0, 120]},
    "cost": {"bounds": [0, 10_000], "grid": "0.01"},
    "day": {"bounds": [DAYS[0], datetime.date(2024, 12, 31)]},
    "open": {"nullable": False},
    "code": {"bounds": [0, 2**50]},
}
MUCH = 60  # of epsilon: noise is 0, except with probability 1e-25


def opened(table, rows=None, unit=None, **columns):
    rules = {name: rule for name, rule in {**COLUMNS, **columns}.items() if name in table.column_names}
    policy = {"columns": rules} | ({"unit": unit, "rows": rows} if unit else {})
    return nz.open({"visits": table}, budget=10_000, policy={"tables": {"visits": policy}})


ODD = pyarrow.table(
    {
        "zone": ["a", "a", "b", None, "z", "=c", "a", ""],
        "age": pyarrow.array([30, 30, 500, 7, 30, None, -5, 8], pyarrow.int64()),
        "cost": [0.1, 0.1, math.inf, math.nan, 1.0, -0.0, None, 1.0],
        "day": [
            DAYS[0],
            DAYS[0],
            datetime.date(1900, 1, 1),
            None,
            DAYS[0],
            datetime.date(9999, 1, 1),
            DAYS[3],
            DAYS[1],
        ],
        "open": [True, True, False, True, True, False, None, True],
    }
)


@pytest.mark.parametrize(
    "columns",
    [["zone"], ["zone", "age"], ["age", "zone", "open"], ["day", "cost"], ["zone", "age", "cost", "day", "open"]],
)
def test_filled_combinations_are_those_of_group_by(columns):
    data = opened(ODD)
    answer = data.ask(nz.SparseTable(columns, threshold=1), spend=MUCH)
    found = {tuple(row[name] for name in columns): row["n"] for row in answer.rows()}
    expected = {}
    for row in ODD.to_pylist():
        if "zone" in columns and row["zone"] in ("z", ""):
            continue  # no declared key
        cost = None if row["cost"] is None or math.isnan(row["cost"]) else row["cost"]
        clean = {**row, "cost": cost, "open": bool(row["open"])}
        ends = {"age": (0, 120), "cost": (0, 10_000), "day": (DAYS[0], datetime.date(2024, 12, 31))}
        known = {name: clean[name] for name in columns if name in ends and clean[name] is not None}
        if not all(ends[name][0] <= value <= ends[name][1] for name, value in known.items()):
            continue  # beyond its bounds
        key = tuple(clean[name] for name in columns)
        expected[key] = expected.get(key, 0) + 1
    assert found == expected


def test_the_same_numbers_as_sql():
    rng = np.random.default_rng(2)
    table = pyarrow.table({"who": rng.integers(0, 300, 2_000), "zone": rng.choice(["a", "b", "z"], 2_000)})
    data = opened(table.append_column("age", pyarrow.array(rng.integers(0, 9, 2_000))), rows=5, unit="who")
    answer = data.ask(nz.SparseTable(["zone", "age"], threshold=1), spend=500)
    total = data.ask("SELECT COUNT(*) AS n FROM visits WHERE zone IN ('a', 'b')", spend=500).value
    assert answer.value.count().n <= total  # rows of z take the place of others in both
    assert answer.value.count().n > 0.9 * total
    assert set(answer.to_arrow().column_names) == {"zone", "age", "n", "n_low", "n_high"}


def test_expressions_and_conditions():
    data = opened(ODD)
    asked = nz.SparseTable(["FLOOR(age / 10)", "zone"], threshold=1, of="SELECT * FROM visits WHERE age >= 10")
    rows = data.ask(asked, spend=MUCH).rows()
    assert sorted(tuple(row.values())[:3] for row in rows) == [(3, "a", 2)]  # and not what is beyond 120


def test_a_large_cube_is_asked_like_a_small_one():
    """10^15 x 3 x 122 combinations and more."""
    table = pyarrow.table({"code": np.arange(1000) * 10**12, "zone": ["a"] * 1000, "age": [44] * 1000})
    data = opened(table)
    question = nz.SparseTable(["code", "zone", "age"], size=20)
    answer = data.ask(question, spend=1)
    assert len(answer) < 200  # ones drown: only empty combinations reach the threshold
    assert any("expected to have no row" in caveat for caveat in answer.caveats)
    assert any("rarely" in caveat for caveat in answer.caveats)
    assert 1e17 < answer.value.procedure.made.cells < 2**62
    again = opened(table).ask(nz.SparseTable(["code", "zone", "age"], threshold=1), spend=2 * MUCH)
    assert len(again) == 1000


def test_empty_tables_and_tables_without_a_declared_key():
    empty = pyarrow.table({"zone": pyarrow.array([], pyarrow.string()), "age": pyarrow.array([], pyarrow.int64())})
    other = pyarrow.table({"zone": ["z", "y"], "age": [1, 2]})
    for table in (empty, other):
        for question in (nz.SparseTable(["zone", "age"], threshold=1), nz.SparseTable(["zone", "age"], sample=5)):
            answer = opened(table).ask(question, spend=MUCH)
            assert len(answer) == 0
            assert answer.value.count({"zone": ["a"]}).n == 0
            with pytest.raises(InputError, match="nothing to draw"):
                answer.plot()


# Refusals


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"columns": []}, "columns must name"),
        ({"columns": 3}, "columns must name"),
        ({"columns": ["a", ""]}, "columns must name"),
        ({"columns": "age", "size": 5, "threshold": 5}, "not both"),
        ({"columns": "age", "size": 0}, "above 0"),
        ({"columns": "age", "threshold": 0}, "threshold"),
        ({"columns": "age", "threshold": 1.5}, "threshold"),
        ({"columns": "age", "sample": -1}, "sample"),
        ({"columns": "age", "of": 3}, "of must be rows"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_at_once(fields, match):
    with pytest.raises(InputError, match=match) as refused:
        nz.SparseTable(**fields)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("question", "match"),
    [
        (nz.SparseTable("name"), "unknown"),
        (nz.SparseTable(["code", "code + 1", "cost"]), "2\\^62"),
        (nz.SparseTable(["code", "age"], threshold=1), "empty cells would be released"),
        (nz.SparseTable(["age"], sample=10**9), "at most 10,000,000"),
        (nz.SparseTable(["height"]), "height"),
        (nz.SparseTable(["age", "age"]), "once"),
    ],
)
def test_what_is_refused_costs_nothing(question, match):
    table = pyarrow.table({"code": [1], "age": [2], "cost": [1.5], "name": ["x"]})
    data = opened(table)
    with pytest.raises(InputError, match=match) as refused:
        data.ask(question, spend=1)
    assert str(refused.value).endswith(".")
    assert not data.budget.entries


# Parts of the table


def some_rows(number=3_000):
    rng = np.random.default_rng(3)
    return pyarrow.table(
        {
            "zone": rng.choice(["a", "b", "=c"], number),
            "age": rng.integers(0, 50, number),
            "day": pyarrow.array([DAYS[i] for i in rng.integers(0, 4, number)]),
        }
    )


PARTS = [
    ({}, lambda row: True),
    ({"zone": "a"}, lambda row: row["zone"] == "a"),
    ({"zone": ["a", "=c"], "age": (10, 19)}, lambda row: row["zone"] != "b" and 10 <= row["age"] <= 19),
    ({"age": [3, 4]}, lambda row: row["age"] in (3, 4)),
    ({"age": (-10, 7.5)}, lambda row: row["age"] <= 7),
    ({"day": (DAYS[1], "2024-01-03")}, lambda row: DAYS[1] <= row["day"] <= DAYS[2]),
    ({"age": None}, lambda row: False),
    ({"age": (40, 30)}, lambda row: False),
    ({"zone": np.array(["b"]), "age": np.int64(5)}, lambda row: row["zone"] == "b" and row["age"] == 5),
]


@pytest.mark.parametrize(("where", "holds"), PARTS, ids=[str(where) for where, _ in PARTS])
@pytest.mark.parametrize("rule", [{"threshold": 1}, {"sample": 10**6}])
def test_parts_of_the_table_are_counted(where, holds, rule):
    table = some_rows()
    answer = asked(table, **rule)
    truth = sum(map(holds, table.to_pylist()))
    found = answer.value.count(where)
    assert found.n == truth
    assert found.low <= truth <= found.high


_ANSWERS: dict[str, nz.answers.Release] = {}


def asked(table, **rule):
    key = json.dumps(rule)
    if key not in _ANSWERS:
        _ANSWERS[key] = opened(table).ask(nz.SparseTable(["zone", "age", "day"], **rule), spend=MUCH)
    return _ANSWERS[key]


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ({"ward": "a"}, "no such column"),
        ({"zone": "q"}, "declared values of zone"),
        ({"zone": ("a", "b")}, "takes a list"),
        ({"age": 121}, "declared values of age"),
        ({"age": 1.5}, "declared values of age"),
        ({"age": "x"}, "must be a finite number"),
        ({"age": (1, 2, 3)}, "pair"),
        ({"day": 5}, "holds dates"),
        ({"day": "2024-13-01"}, "cannot be read"),
        ({"zone": 5}, "declared values of zone"),
    ],
)
def test_parts_that_there_are_not_are_refused(where, match):
    with pytest.raises(InputError, match=match):
        asked(some_rows(), threshold=1).value.count(where)


def test_a_sample_says_what_it_covers_and_draws_itself():
    data = hospital(100)
    answer = data.ask(nz.SparseTable(["ward", "FLOOR(age / 10)"], sample=15), spend=2)
    assert len(answer) == 15
    total = answer.value.count()
    assert "sampling" in total.covers
    assert total.low <= total.n <= total.high
    table = answer.value.to_arrow()
    assert table.column_names == ["ward", "floor", "n", "n_low", "n_high", "n_weight"]
    assert sum(table["n_weight"].to_pylist()) == pytest.approx(total.n)
    assert "ε = 2" in str(answer.plot().spec)
    assert any("sample" in caveat for caveat in answer.caveats)
    narrower = answer.value.count(level=0.5)
    assert narrower.high - narrower.low < total.high - total.low


def test_columns_may_be_called_like_the_count():
    table = pyarrow.table({"n": [1, 2, 2], "rows_low": [1, 1, 1]})
    data = opened(table, n={"bounds": [0, 5]}, rows_low={"bounds": [0, 5]})
    answer = data.ask(nz.SparseTable(["n", "rows_low"], threshold=1), spend=MUCH)
    assert [(row["n"], row["rows_low"], row["number"]) for row in answer.rows()] == [(1, 1, 1), (2, 1, 2)]
    assert answer.value.to_arrow()["number_weight"].to_pylist() == [1, 2]
    assert answer.value.count({"n": 2}).n == 2
    with pytest.raises(InputError, match="level"):
        answer.value.count(level=95)


def test_rows_are_in_the_order_of_their_keys():
    """Not in one that depends on who is filled: keys ascend, the last one of the canonical form fastest."""
    answer = asked(some_rows(), threshold=1)
    cells = answer.value.released.codes
    assert (np.diff(cells) > 0).all()
    reordered = some_rows().take(np.random.default_rng(1).permutation(3_000))
    again = opened(reordered).ask(nz.SparseTable(["zone", "age", "day"], threshold=1), spend=MUCH)
    assert again.rows() == answer.rows()


def test_one_text_for_one_measurement():
    data = hospital()
    one, other = nz.SparseTable(["ward", "age"]), nz.SparseTable(["age", "ward"], size=100)
    texts = [q.offer(data.schema, nz.Pure(1), ADD_REMOVE, 0.95).text for q in (one, other)]
    assert texts[0] == texts[1]
    other = nz.SparseTable(["age", "ward"], size=99)
    assert other.offer(data.schema, nz.Pure(1), ADD_REMOVE, 0.95).text != texts[0]


def test_a_replaced_person_needs_twice_the_noise():
    data = hospital()
    scales = [
        nz.SparseTable("ward", threshold=9).offer(data.schema, nz.Pure(1), relation, 0.95).procedure.made.noise.scale
        for relation in (ADD_REMOVE, REPLACE)
    ]
    assert scales == [8, 16]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
def test_one_unit_moves_what_is_noised_by_no_more_than_the_promise_allows(relation):
    """The exact loss of neighbours on the worst cell, through the engine; with half the noise it would be too much."""
    others = [(str(i), "b", 5) for i in range(20)]
    mine = [("me", "a", 7)] * 9 + [("me", "a", 8)] * 9
    instead = [("me", "b", 7)] * 9
    pair = [others + mine, others + instead if relation is REPLACE else others]
    found, offers = [], []
    for rows in pair:
        who, zone, age = zip(*rows, strict=True)
        data = opened(pyarrow.table({"who": who, "zone": zone, "age": age}), rows=4, unit="who")
        offers.append(nz.SparseTable(["zone", "age"], threshold=2).offer(data.schema, nz.Pure(1), relation, 0.95))
        exact = data._source.aggregate(offers[-1].procedure.prepared.request, data.schema, bytes(16))
        keys = exact.keys.to_pylist()
        found.append({tuple(key.values()): int(n) for key, n in zip(keys, exact.measures[0], strict=True)})
    moved = sum(abs(found[0].get(key, 0) - found[1].get(key, 0)) for key in found[0] | found[1])
    scale = offers[0].procedure.made.noise.scale
    assert moved / scale == 1
    assert moved / (scale / 2) > 1  # the twin with half the noise


def test_kept_bytes_of_another_table_are_refused():
    data = hospital()
    offer = nz.SparseTable("ward", threshold=9).offer(data.schema, nz.Pure(1), ADD_REMOVE, 0.95)
    other = pyarrow.table({"n": [1]})
    with pytest.raises(PrivacyError):
        offer.unpack(nz.questions.parts.tables.pack_table(other))


# Keys as codes

KINDS = {
    "text": Kind("text", keys=("a", "b")),
    "boolean": Kind("boolean", nullable=False),
    "integer": Kind("integer", Fraction(-3), Fraction(4), Fraction(1)),
    "fives": Kind("integer", Fraction(-7), Fraction(21), Fraction(5), nullable=False),
    "cents": Kind("real", Fraction(-1), Fraction(1), Fraction(1, 100)),
    "date": Kind("date", Fraction(-2), Fraction(3)),
    "real keys": Kind("real", keys=(Fraction(1, 10), Fraction(3, 2))),
    "times": Kind("timestamp", keys=(datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 12))),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_value_has_a_code_and_every_code_a_value(kind):
    domain = domain_of(kind, "x")
    codes = np.arange(domain.size)
    values = domain.values(codes)
    expected = [float(v) if isinstance(v, Fraction) and kind.type == "real" else v for v in kind.values()]
    assert values.to_pylist() == expected
    there, back = domain.codes(values)
    assert there.all()
    assert back.tolist() == codes.tolist()
    assert [domain.code(value) for value in values.to_pylist()] == codes.tolist()


def test_values_that_are_not_declared_have_no_code():
    there, _ = KeyDomain(KINDS["text"], "x").codes(pyarrow.array(["a", "c", None, "b "]))
    assert there.tolist() == [True, False, True, False]
    there, codes = KeyDomain(KINDS["fives"], "x").codes(pyarrow.array([0, None, 10**18]))
    assert (there.tolist(), codes.tolist()) == ([True, False, True], [1, 5])
    with pytest.raises(InputError, match="unknown"):
        domain_of(Kind("text"), "x")
    with pytest.raises(InputError, match="no value"):
        domain_of(Kind("integer", Fraction(1), Fraction(4), Fraction(10)), "x")
