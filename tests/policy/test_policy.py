"""Policies: every mistake gets one sentence that names its place, and what is written reads back equal."""

import datetime
import tomllib
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noisette as nz
from noisette.errors import InputError
from noisette.policy.policy import Policy, read_policy
from noisette.policy.rules import ColumnRules, TableRules
from noisette.privacy import ZCDP, Approx, Neighbours, Pure
from noisette.query.kind import in_order
from noisette.query.periods import PERIODS
from noisette.query.schema import Limits, Link, RowsPerPeriod

BUDGET = {"epsilon": "2", "delta": "1e-6"}


def column(**rules):
    return {"budget": BUDGET, "tables": {"visits": {"columns": {"age": rules}}}}


def table(**rules):
    return {"budget": BUDGET, "tables": {"visits": rules}}


MISTAKES = [
    ({"budget": BUDGET, "table": {}}, "table in the policy is unknown: did you mean tables?"),
    ({"budget": BUDGET, "xyz": {}}, "xyz in the policy is unknown: there may be budget, tables, rules, pinned."),
    ({"budget": {"epsilom": 1}}, "budget.epsilom in the policy is unknown: did you mean epsilon?"),
    ({"budget": 2}, "budget in the policy must be a section"),
    ({"budget": {"epsilon": 1, "rho": 1}}, "budget in the policy must be one of"),
    ({"budget": {"delta": "1e-6"}}, "budget in the policy must be one of"),
    ({"budget": {"rho": 1, "delta": "1e-6"}}, "budget in the policy must be one of"),
    ({"budget": {"epsilon": "two"}}, "The budget in the policy cannot be used: epsilon must be a finite number"),
    ({"budget": {"epsilon": -1}}, "The budget in the policy cannot be used: epsilon must"),
    ({"budget": {"epsilon": 0}}, "The budget must be above 0"),
    ({"budget": {"epsilon": 1, "neighbours": "swap"}}, 'budget.neighbours in the policy must be "add/remove" or'),
    ({"budget": BUDGET, "tables": []}, "tables in the policy must be a section"),
    ({"budget": BUDGET, "tables": {1: {}}}, "tables in the policy may hold names only"),
    ({"budget": BUDGET, "tables": {"visits": 3}}, "tables.visits in the policy must be a section"),
    (table(units="p"), "tables.visits.units in the policy is unknown: did you mean unit?"),
    (table(Unit="p"), "tables.visits.Unit in the policy is unknown: did you mean unit?"),
    (table(unit=3), "tables.visits.unit in the policy must be the name of a column."),
    (table(unit=""), "tables.visits.unit in the policy must be the name of a column."),
    (table(unit="p", rows=0), "tables.visits.rows in the policy must be a whole number, at least 1."),
    (table(unit="p", groups=1.5), "tables.visits.groups in the policy must be a whole number, at least 1."),
    (table(unit="p", rows_per_group=True), "tables.visits.rows_per_group in the policy must be a whole number"),
    (table(rows=3), "tables.visits.rows in the policy limits nobody: add unit"),
    (table(public="yes"), "tables.visits.public in the policy must be true or false, without quotes."),
    (table(public=True, unit="p"), "tables.visits in the policy is public, so it protects nobody: leave unit out."),
    (table(public=True, groups=3), "tables.visits in the policy is public, so it protects nobody: leave groups out."),
    (table(columns=["age"]), "tables.visits.columns in the policy must be a section"),
    (table(columns={"age": [0, 1]}), "tables.visits.columns.age in the policy must be a section"),
    (table(columns={"my age": 3}), 'tables.visits.columns."my age" in the policy must be a section'),
    (column(bound=[0, 1]), "tables.visits.columns.age.bound in the policy is unknown: did you mean bounds?"),
    (column(type="int"), "tables.visits.columns.age.type in the policy must be one of integer, real, text"),
    (column(type=["integer"]), "tables.visits.columns.age.type in the policy must be one of integer, real, text"),
    (column(bounds=[1, 0]), "age.bounds in the policy must be two different values, the lower one first."),
    (column(bounds=[1, 1]), "age.bounds in the policy must be two different values, the lower one first."),
    (column(bounds=[1]), "age.bounds in the policy must be two values, [low, high], or"),
    (column(bounds=120), "age.bounds in the policy must be two values, [low, high], or"),
    (column(bounds="secret"), "age.bounds in the policy must be two values, [low, high], or"),
    (
        column(bounds=[0, float("nan")]),
        "each of tables.visits.columns.age.bounds in the policy must be a finite number",
    ),
    (
        column(bounds=[0, float("inf")]),
        "each of tables.visits.columns.age.bounds in the policy must be a finite number",
    ),
    (column(bounds=[0, None]), "each of tables.visits.columns.age.bounds in the policy must be a number"),
    (column(bounds=[0, datetime.date(2020, 1, 1)]), "age.bounds in the policy must be two values of one sort"),
    (
        column(bounds=[datetime.date(2020, 1, 1), datetime.datetime(2021, 1, 1)]),
        "age.bounds in the policy must be two values of one sort",
    ),
    (
        column(bounds=[datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)] * 2),
        "age.bounds in the policy must be times without a time zone",
    ),
    (column(grid=0), "age.grid in the policy must be above 0"),
    (column(grid="x"), "age.grid in the policy must be a finite number"),
    (column(keys=[]), "age.keys in the policy must be a list of values"),
    (column(keys="north"), "age.keys in the policy must be a list of values"),
    (column(keys=["a", 1]), "age.keys in the policy must be all of one sort"),
    (column(keys=[True, 1]), "age.keys in the policy must be all of one sort"),
    (column(keys=[0.5]), "age.keys in the policy must be texts, whole numbers, dates or truth values."),
    (column(keys=["a", "a"]), "age.keys in the policy must not repeat"),
    (column(keys=[2**63]), "age.keys in the policy must be whole numbers of at most 64 bits."),
    (column(keys=["\ud800"]), "age.keys in the policy must be valid Unicode"),
    (column(nullable="no"), "age.nullable in the policy must be true or false, without quotes."),
    ({"tables": {}}, "Say how much may be spent in all"),
    (3, "policy must be a Policy, a dictionary or the path of a TOML file."),
]


@pytest.mark.parametrize(("policy", "message"), MISTAKES, ids=[message[:60] for _, message in MISTAKES])
def test_every_mistake_is_named_with_its_place(policy, message):
    with pytest.raises(InputError) as caught:
        read_policy(policy)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_with_a_syntax_error_names_the_line(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('[budget]\nepsilon = "1"\n[tables\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"policy\.toml is not valid TOML at line 3"):
        read_policy(path)
    path.write_text("[budget\n[tables]\nepsilon", encoding="utf-8")
    with pytest.raises(InputError, match="at line 1"):
        read_policy(str(path))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"The policy file none\.toml cannot be read"):
        read_policy(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_policy(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="save it as UTF-8"):
        read_policy(tmp_path / "binary.toml")


def test_a_dictionary_is_left_alone_and_read_the_same_twice():
    rules = {"budget": dict(BUDGET), "tables": {"visits": {"unit": "p", "columns": {"ward": {"keys": ["b", "a"]}}}}}
    before = repr(rules)
    first, second = read_policy(rules), read_policy(rules)
    assert first == second
    assert repr(rules) == before
    rules["tables"]["visits"]["columns"]["ward"]["keys"].append("c")
    assert first == second
    assert first.tables["visits"].columns["ward"].keys == ("a", "b")


def test_a_budget_beside_the_policy():
    assert read_policy({"tables": {}}, Pure(1)).budget == Pure(1)
    assert read_policy({"budget": {"epsilon": 1}}, Pure(1)).budget == Pure(1)
    assert read_policy({"budget": {"neighbours": "replace"}}, Pure(1)).neighbours is Neighbours.REPLACE
    assert read_policy(None, Pure(1, neighbours=Neighbours.REPLACE)).neighbours is Neighbours.REPLACE
    for policy in ({"budget": {"epsilon": 2}}, Policy(Pure(2))):
        with pytest.raises(InputError, match="names another budget"):
            read_policy(policy, Pure(1))
    with pytest.raises(InputError, match="The budget is meant under replace, the policy under add/remove"):
        Policy(Pure(1, neighbours=Neighbours.REPLACE))
    with pytest.raises(InputError, match="must be Pure, Approx or ZCDP"):
        Policy(1)


def test_a_delta_of_zero_is_kept():
    assert read_policy({"budget": {"epsilon": 1, "delta": 0}}).budget == Approx(1, 0)


# What is written reads back equal

numbers = st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=10**6)
dates = st.dates()
times = st.datetimes()
texts = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


def pairs(values):
    return st.tuples(values, values).filter(lambda pair: pair[0] != pair[1]).map(lambda pair: tuple(sorted(pair)))


def some(values):
    return st.lists(values, min_size=1, max_size=4, unique=True).map(in_order)


@st.composite
def columns(draw):
    bounds = draw(st.none() | pairs(numbers) | pairs(dates) | pairs(times))
    keys = draw(st.none() | some(texts) | some(st.integers(-(2**62), 2**62)) | some(dates) | some(times))
    return ColumnRules(
        draw(st.sampled_from([None, "integer", "real", "text", "boolean", "date", "timestamp"])),
        bounds,
        draw(st.none() | numbers.filter(lambda n: n > 0)),
        keys,
        draw(st.booleans()),
        bounds is None and draw(st.booleans()),
        keys is None and draw(st.booleans()),
    )


@st.composite
def tables(draw):
    rules = draw(st.dictionaries(names, columns(), max_size=3))
    if draw(st.booleans()):
        return TableRules(public=True, columns=rules)
    keys = st.lists(st.tuples(names, names), min_size=1, max_size=3, unique_by=(lambda p: p[0], lambda p: p[1]))
    unit = draw(st.none() | names | st.builds(Link, names, keys.map(tuple)))
    limit = st.none() | st.integers(1, 10**6)
    limits = Limits(draw(limit), draw(limit), draw(limit)) if unit else Limits()
    dated = st.builds(RowsPerPeriod, st.integers(1, 10**6), st.sampled_from(PERIODS), names)
    per_period = draw(dated) if unit and limits == Limits() else None
    return TableRules(unit, limits, False, rules, today=draw(st.none() | st.dates()), per_period=per_period)


amounts = st.fractions(min_value=Fraction(1, 10**9), max_value=100, max_denominator=10**9)
budgets = st.one_of(
    amounts.map(Pure),
    amounts.map(ZCDP),
    st.builds(Approx, amounts, st.fractions(min_value=0, max_value=Fraction(1, 100), max_denominator=10**12)),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.builds(Policy, budgets, st.dictionaries(names, tables(), max_size=3), st.sampled_from(Neighbours)))
def test_what_is_written_reads_back_equal(tmp_path_factory, policy):
    path = tmp_path_factory.getbasetemp() / "policy.toml"
    path.write_text(policy.to_toml(), encoding="utf-8", newline="\n")
    assert read_policy(path) == policy


def test_the_file_can_be_read_by_people():
    text = nz.Policy(Approx(2, "1e-6"), {"visits": TableRules("patient_id", Limits(rows=10))}).to_toml()
    assert 'epsilon = "2"\ndelta = "1e-6"  # far below one in all units\n' in text
    assert "rows = 10  # of one unit, in all" in text
    assert max(map(len, text.splitlines())) < 110


def test_a_limit_per_period_is_written_and_read():
    bounds = (datetime.date(2020, 1, 1), datetime.date(2022, 12, 31))
    rules = TableRules("patient", columns={"d": ColumnRules(bounds=bounds)}, per_period=RowsPerPeriod(8, "year", "d"))
    policy = nz.Policy(Approx(2, "1e-6"), {"visits": rules})
    text = policy.to_toml()
    assert 'rows = { most = 8, per = "year", of = "d" }  # of one unit in each calendar period' in text
    assert "# rows beyond them are left out" in text
    assert "clamped" not in text
    assert read_policy(tomllib.loads(text)) == policy
