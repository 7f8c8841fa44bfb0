"""Keys that conditions exclude: none of them is a group, and no row that passes loses its group."""

import datetime
import random
from fractions import Fraction
from itertools import product

import pyarrow
import pytest

import noisette as nz
from noisette.engines.memory.values import value_of
from noisette.errors import InputError
from noisette.query import excluded
from noisette.query.excluded import possible_combinations, possible_keys
from noisette.query.expression import Call, Literal, Name
from noisette.query.kind import Kind
from noisette.query.operations import kind_of
from noisette.query.plan import Scan, Where
from noisette.query.schema import Column, Table

DAY, F = datetime.date, Fraction
PORTS = ["EWR", "JFK", "LGA"]


@pytest.fixture(scope="module")
def flights():
    n = 60
    rows = {"u": [i // 2 for i in range(n)], "o": (PORTS * n)[:n], "w": [i % 7 for i in range(n)]}
    table = pyarrow.table({**rows, "d": [DAY(2025, 12, 20) + datetime.timedelta(i % 12) for i in range(n)]})
    days = {"bounds": [DAY(2025, 12, 20), DAY(2026, 1, 2)], "nullable": False}
    columns = {"o": {"keys": PORTS, "nullable": False}, "w": {"bounds": [0, 6]}, "d": days}
    ports = pyarrow.table({"o": PORTS, "city": ["Newark", "New York", "New York"], "w": [0, 1, 2]})
    policy = {"tables": {"t": {"unit": "u", "rows": 2, "columns": columns}, "ports": {"public": True}}}
    return nz.open({"t": table, "ports": ports}, budget=1000, policy=policy)


LAST = [DAY(2026, 1, 1), DAY(2026, 1, 2)]
SHOWN = {
    "SELECT o AS k, COUNT(*) AS n FROM t WHERE o IN ('JFK', 'LGA') GROUP BY o": ["JFK", "LGA"],
    "SELECT o AS k, COUNT(*) AS n FROM t WHERE o <> 'JFK' AND w > 3 GROUP BY o": ["EWR", "LGA"],
    "SELECT o AS k, COUNT(*) AS n FROM t WHERE NOT (o = 'JFK' OR o = 'LGA') GROUP BY o": ["EWR"],
    "SELECT o AS k, COUNT(*) AS n FROM t WHERE o = 'JFK' OR w > 3 GROUP BY o": PORTS,
    "SELECT LOWER(o) AS k, COUNT(*) AS n FROM t WHERE o = 'JFK' GROUP BY k": ["jfk"],
    "SELECT o LIKE 'J%' AS k, COUNT(*) AS n FROM t WHERE o = 'JFK' GROUP BY k": [False, True],
    "SELECT d AS k, COUNT(*) AS n FROM t WHERE d >= DATE '2026-01-01' GROUP BY d": LAST,
    "SELECT YEAR(d) AS k, COUNT(*) AS n FROM t WHERE d >= DATE '2026-01-01' GROUP BY k": [2026],
    "SELECT MONTH(d) AS k, COUNT(*) AS n FROM t WHERE MONTH(d) = 1 GROUP BY k": [1],
    "SELECT d AS k, COUNT(*) AS n FROM t WHERE d BETWEEN DATE '2026-01-01' AND DATE '2027-01-01' GROUP BY d": LAST,
    "SELECT w AS k, COUNT(*) AS n FROM t WHERE w < 2.5 GROUP BY w": [0, 1, 2],
    "SELECT w AS k, COUNT(*) AS n FROM t WHERE w > 4 OR w IS NULL GROUP BY w": [5, 6, None],
    "SELECT w AS k, COUNT(*) AS n FROM t WHERE w IS NOT NULL AND w % 2 = 0 GROUP BY w": [*range(7)],
    "SELECT w > 3 AS k, COUNT(*) AS n FROM t WHERE w > 3 GROUP BY k": [True],
    "SELECT k, COUNT(*) AS n FROM (SELECT o AS k FROM t WHERE o <> 'EWR') AS s WHERE k <> 'JFK' GROUP BY k": ["LGA"],
    "SELECT k, COUNT(*) AS n FROM (SELECT u, o AS k FROM t WHERE o = 'EWR' GROUP BY u, o) AS s GROUP BY k": ["EWR"],
    "SELECT t.o AS k, COUNT(*) AS n FROM t JOIN ports ON t.o = ports.o WHERE t.o = 'JFK' GROUP BY t.o": ["JFK"],
    "SELECT city AS k, COUNT(*) AS n FROM t JOIN ports ON t.o = ports.o WHERE t.o = 'EWR' GROUP BY city": [
        *("New York", "Newark")
    ],
    "SELECT s.o AS k, COUNT(*) AS n FROM t LEFT JOIN (SELECT u, o FROM t WHERE o = 'EWR') s ON t.u = s.u GROUP BY k": [
        *PORTS,
        None,  # who has no row at EWR
    ],
    "SELECT o AS k, COUNT(*) AS n FROM t WHERE o <> 'EWR' GROUP BY ROLLUP (o) ORDER BY o": ["JFK", "LGA", None],
}


COMBINED = {
    "SELECT o, w, COUNT(*) AS n FROM t WHERE o = 'EWR' AND w = 1 OR o = 'JFK' AND w = 2 GROUP BY o, w": [
        *(("EWR", 1), ("JFK", 2))
    ],
    "SELECT o, w, COUNT(*) AS n FROM t WHERE w < 2 AND (o = 'EWR' OR w = 1) AND o <> 'LGA' GROUP BY o, w": [
        *(("EWR", 0), ("EWR", 1), ("JFK", 1))
    ],
    "SELECT YEAR(d) AS o, w, COUNT(*) AS n FROM t WHERE w < 2 AND (YEAR(d) = 2026 OR w = 0) GROUP BY 1, w": [
        *((2025, 0), (2026, 0), (2026, 1))
    ],
    "SELECT a.city AS o, b.city AS w, COUNT(*) AS n FROM t JOIN ports a ON t.o = a.o JOIN ports b ON t.w = b.w "
    "WHERE a.city = 'Newark' AND b.city = 'New York' OR a.city = 'New York' AND b.city = 'Newark' GROUP BY 1, 2": [
        *(("New York", "Newark"), ("Newark", "New York"))
    ],
}


@pytest.mark.parametrize("question", COMBINED)
def test_combinations_that_conditions_exclude_are_no_groups(flights, question):
    rows = flights.sql(question, spend="0.5").rows()
    assert sorted((row["o"], row["w"]) for row in rows) == COMBINED[question]


@pytest.mark.parametrize("question", SHOWN)
def test_excluded_keys_are_no_groups(flights, question):
    found = [row["k"] for row in flights.sql(question, spend="0.5").rows()]
    assert sorted(found, key=str) == sorted(SHOWN[question], key=str)


def test_numbers_stay_at_their_keys(flights):
    rows = flights.sql("SELECT o, COUNT(*) AS n FROM t WHERE o <> 'EWR' AND w = 0 GROUP BY o", spend=100).rows()
    table = dict.fromkeys(["JFK", "LGA"], 0)
    for i in range(60):
        if i % 7 == 0 and PORTS[i % 3] in table:
            table[PORTS[i % 3]] += 1
    assert {row["o"]: row["n"] for row in rows} == table  # fails with p < 1e-12


def test_nothing_left_is_refused_before_the_charge(flights):
    before = len(flights.budget.entries)
    with pytest.raises(InputError, match="No declared value of the keys meets the conditions"):
        flights.sql("SELECT o, COUNT(*) AS n FROM t WHERE o = 'SFO' GROUP BY o", spend=1)
    assert len(flights.budget.entries) == before


def test_other_questions_count_on_every_key(flights):
    whole = flights.ask(nz.Histogram("w", of="SELECT * FROM t WHERE w < 3"), spend="0.5")
    assert len(whole.rows()) == 7


def test_long_conditions_about_many_keys_exclude_none():
    """Looking at all of them would take too long for a plan."""
    scan, o = Scan("t", "t"), Name("t.d")
    schema = {"t": Table("t", (Column("d", Kind("date", F(0), F(9_998), nullable=False)),))}
    values = kind_of(o, {"t.d": schema["t"].columns[0].kind}).values()
    first = Call("unequal", (o, Literal(values[0])))
    assert possible_keys(o, values, Where(scan, first), schema) == values[1:]
    many = Call("and", tuple(Call("unequal", (o, Literal(value))) for value in values[:100]))
    assert possible_keys(o, values, Where(scan, many), schema) == values


# No row that passes loses its group

COLUMNS = {
    "t.o": Kind("text", keys=("a", "b")),
    "t.n": Kind("integer", F(-1), F(2), F(1)),
    "t.b": Kind("boolean"),
    "t.x": Kind("real", F(0), F(3, 10), F(1, 10), nullable=False),
    "t.d": Kind("date", F(18260), F(18263)),
}
SCHEMA = {"t": Table("t", tuple(Column(name[2:], kind) for name, kind in COLUMNS.items()))}
VALUES = {name: kind.values() for name, kind in COLUMNS.items()}
CONSTANTS = {
    "t.o": ["a", "b", "c"],
    "t.n": [0, 1, F(1, 2), F(3)],
    "t.b": [True, False],
    "t.x": [F(1, 10), F(0.1), F(3, 10), F(1, 3), 0],
    "t.d": [DAY(2020, 1, 1), DAY(2019, 12, 31)],
}
KEYS = [
    *map(Name, COLUMNS),
    Call("upper", (Name("t.o"),)),
    Call("year", (Name("t.d"),)),
    Call("negate", (Name("t.n"),)),
    Call("floor", (Name("t.x"),)),
    Call("equal", (Name("t.n"), Literal(1))),
    Call("concat", (Name("t.o"), Call("as_text", (Name("t.b"),)))),
    Call("coalesce", (Name("t.n"), Literal(9))),
]


def condition(chance, depth=3):
    """A random condition: comparisons with constants, and some that look at two columns."""
    name = chance.choice(list(COLUMNS))
    if depth == 0 or chance.random() < 0.3:
        of = Name(name)
        sign = chance.choice(["equal", "unequal", "less", "at_most", "more", "at_least", "in", "is_null", "two"])
        if sign == "is_null":
            return Call(sign, (of,))
        if sign == "two":
            return Call("less", (Name("t.n"), Name("t.x")))
        constants = [Literal(chance.choice(CONSTANTS[name])) for _ in range(2 if sign == "in" else 1)]
        pair = (of, *constants)
        return Call(sign, pair if sign == "in" or chance.random() < 0.5 else pair[::-1])
    operation = chance.choice(["and", "or", "not"])
    return Call(operation, tuple(condition(chance, depth - 1) for _ in range(1 if operation == "not" else 2)))


def clean(name, value):
    return float(value) if COLUMNS[name].type == "real" else value


ROWS = [
    {name: clean(name, value) for name, value in zip(VALUES, values, strict=True)}
    for values in product(*VALUES.values())
]


def lost(key, *conditions, some=ROWS):
    """Rows that pass conditions and whose key, which was among the groups, is none any more."""
    rows = Scan("t", "t")
    for each in conditions:
        rows = Where(rows, each)
    values = kind_of(key, COLUMNS).values()
    left, every = ({float(v) if isinstance(v, F) else v for v in them} for them in (_left(key, values, rows), values))
    holds, of = [value_of(each, COLUMNS) for each in conditions], value_of(key, COLUMNS)
    passing = [of(row) for row in some if all(each(row) for each in holds)]
    return [value for value in passing if value in every and value not in left]


def _left(key, values, rows):
    return possible_keys(key, values, rows, SCHEMA)


def at_random(seed):
    """What is lost under two random conditions, of some rows."""
    chance = random.Random(seed)
    return lost(chance.choice(KEYS), condition(chance), condition(chance), some=chance.sample(ROWS, 60))


def combinations_at_random(seed):
    """Combinations of two keys that rows have and a random condition is said to exclude."""
    chance = random.Random(seed)
    keys, holding = chance.sample(KEYS, 2), condition(chance)
    values = [kind_of(key, COLUMNS).values() for key in keys]
    left = possible_combinations(keys, values, Where(Scan("t", "t"), holding), SCHEMA)
    places = [{float(v) if isinstance(v, F) else v: i for i, v in enumerate(each)} for each in values]
    holds, of = value_of(holding, COLUMNS), [value_of(key, COLUMNS) for key in keys]
    met = [[each(row) for each in of] for row in chance.sample(ROWS, 60) if holds(row)]
    return [pair for pair in met if not left[tuple(known[v] for known, v in zip(places, pair, strict=True))]]


def test_no_row_that_passes_loses_its_combination():
    assert not any(map(combinations_at_random, range(200)))


@pytest.mark.slow
def test_no_row_of_many_loses_its_combination():
    assert not any(map(combinations_at_random, range(1000, 9000)))


def test_no_row_that_passes_loses_its_group():
    assert not any(map(at_random, range(60)))


@pytest.mark.slow
def test_no_row_of_many_loses_its_group():
    assert not any(map(at_random, range(1000, 4000)))


TWINS = {
    "what is unknown is false": ("_UNKNOWN", False),
    "what is unknown is NULL": (
        "_connected",
        lambda parts, *, decisive: decisive if any(part is decisive for part in parts) else None,
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_twins_are_convicted(name, monkeypatch):
    monkeypatch.setattr(excluded, *TWINS[name])
    assert any(map(at_random, range(60)))
    assert any(map(combinations_at_random, range(200)))


def test_numbers_are_compared_as_doubles(monkeypatch):
    """The double nearest to 1/10 is above it: a row at 1/10 passes x >= 0.1 in an engine."""
    near = Call("at_least", (Name("t.x"), Literal(F(0.1))))
    assert not lost(Name("t.x"), near)
    monkeypatch.setattr(excluded, "float", lambda value: value, raising=False)
    assert lost(Name("t.x"), near)


def test_what_is_left_out_is_said_of_all_declared_keys(flights):
    """Two of three keys are groups here; the third one is declared as well."""
    for condition in ("o IN ('JFK', 'LGA')", "o <> 'EWR'", "w > 3"):
        said = flights.sql(f"SELECT o, COUNT(*) AS n FROM t WHERE {condition} GROUP BY o", spend=1).caveats
        assert "Rows whose o is a value other than its 3 declared keys are left out." in said
