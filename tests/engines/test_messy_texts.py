"""Texts that their owner recodes or reads as another type: the same values in every engine, whatever the texts are."""

import datetime
import itertools
import random
import sys
from dataclasses import replace
from fractions import Fraction

import pyarrow
import pytest
from tests.query.test_sensitivity import checked
from tests.query.worlds import Worlds, multisets, table

import noisette as nz
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory.source import Memory
from noisette.engines.sql import stored as cleaning
from noisette.errors import InputError
from noisette.policy.rules import column_rules
from noisette.query.canonical import canonical
from noisette.query.caveats import omissions
from noisette.query.kind import Kind
from noisette.query.plan import Scan
from noisette.query.prepare import prepare
from noisette.query.recode import Recode
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse
from noisette.query.texts import READERS
from noisette.questions.parts.offers import declared

F = Fraction
HOW = Recode(trim=True, fold=True, names=(("ICU", ("icu", "intensive")), ("é", ("é", "e"))), other="other")
TEXTS = [
    *("icu", "ICU", " Icu ", "\ticu", "icu\x00", "INTENSIVE", "intensıve", "İcu", "É", "é", "É", "e", "E ", "", " "),
    *("other", "OTHER", "ß", "ẞ", "Σ", "ς", "ǅ", "Ⅷ", "𐐀", "a'b", 'a"b', "%", "_", "\u00a0icu", "icu\n", None),
]
SAID = [
    *("0", "7", " 7", "7 ", "+7", "-0", "007", "1e3", "1.5", ".5", "5.", "1,5", "7.0", "0x7", "٧", "１", "NaN", "inf"),
    *(
        "-999999999999999",
        "1000000000000000",
        "99999999999999999999",
        "0.1",
        "-2.25",
        "123456789012345.123456789012345",
    ),
    *("2020-01-31", "2020-02-30", "0000-01-01", "0001-01-01", "9999-12-31", "2020-1-1", "31.01.2020", "2020-01-31 x"),
    *("2020-01-31 23:59:59", "2020-01-31T00:00:00.5", "2020-01-31 24:00:00", "2020-01-31 00:00:60", "infinity"),
    *("2020-01-31 00:00:00.123456", "2020-01-31 00:00:00.1234567", "2020-01-31 00:00:00+01", "-infinity", "epoch"),
    *("true", "TRUE", "t", "Yes", "n", "N ", "false", "0", "1", "on", "tRuE", "ﬀ", "", " ", "NULL", None),
]
KINDS = {
    "integer": [Kind("integer"), Kind("integer", F(0), F(9), F(1)), Kind("integer", F(2), F(9), F(2), nullable=False)],
    "real": [Kind("real"), Kind("real", F(-1), F(2), F(1, 10)), Kind("real", F(1), F(2), nullable=False)],
    "boolean": [Kind("boolean"), Kind("boolean", nullable=False)],
    "date": [Kind("date"), Kind("date", F(18000), F(18300)), Kind("date", F(1), F(18300), nullable=False)],
    "timestamp": [Kind("timestamp"), Kind("timestamp", F(0), F(10**15)), Kind("timestamp", nullable=False)],
}


def both(texts, kind):
    """What two engines make of a column of texts."""
    schema = {"t": Table("t", (Column("x", kind),))}
    data = {"t": pyarrow.table({"x": pyarrow.array(texts, pyarrow.string())})}
    sources = (Memory(data), DuckDB(data, threads=1))
    return [s.rows(Scan("t", "t"), {"t.x": "x"}, schema, b"").column("x").to_pylist() for s in sources]


# Recoding


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("trim", "fold"), list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("names", [(), HOW.names], ids=["no names", "names"])
@pytest.mark.parametrize("other", [None, "other"])
def test_every_engine_recodes_alike(trim, fold, names, other, nullable):
    how = Recode(trim, fold, names, other)
    one, two = both(TEXTS, Kind("text", nullable=nullable, recode=how))
    assert one == two == [(None if nullable else "") if text is None else how(text) for text in TEXTS]


@pytest.mark.slow
def test_every_letter_is_folded_alike():
    """Beyond these planes no letter has two cases."""
    letters, how = [chr(i) for i in range(1, 0x20000) if not 0xD800 <= i <= 0xDFFF], Recode(fold=True)
    assert all(chr(i).lower() == chr(i) for i in range(0x20000, sys.maxunicode + 1))
    schema = {"t": Table("t", (Column("x", Kind("text", recode=how)),))}
    engine = DuckDB({"t": pyarrow.table({"x": letters})}, threads=1)
    assert engine.rows(Scan("t", "t"), {"t.x": "x"}, schema, b"").column("x").to_pylist() == list(map(how, letters))


def test_an_enumeration_is_recoded_as_the_texts_it_stands_for():
    data = {"t": pyarrow.table({"x": pyarrow.array(TEXTS, pyarrow.string()).dictionary_encode()})}
    schema = {"t": Table("t", (Column("x", Kind("text", recode=HOW)),))}
    rows = DuckDB(data, threads=1).rows(Scan("t", "t"), {"t.x": "x"}, schema, b"").column("x").to_pylist()
    assert rows == both(TEXTS, Kind("text", recode=HOW))[0]


@pytest.mark.slow
def test_a_value_is_recoded_before_anything_sees_it():
    """Filters, joins, keys and sub-queries."""
    visits = pyarrow.table({"id": range(6), "ward": ["ICU ", "icu", "Intensive", "north", "x", None]})
    places = pyarrow.table({"ward": ["icu", "NORTH "], "floor": [1, 2]})
    ward = {"keys": ["icu", "north"], "trim": True, "fold": True, "map": {"icu": ["intensive"]}, "other": "other"}
    tables = {"visits": {"unit": "id", "rows": 1, "columns": {"ward": ward}}}
    tables["places"] = {"public": True, "columns": {"ward": {"trim": True, "fold": True}}}
    data = nz.open({"visits": visits, "places": places}, budget=10_000, policy={"tables": tables})

    def answer(text):
        return list(zip(*(c.values.to_pylist() for c in data.sql(text, spend=100).columns), strict=True))

    by_ward = [("icu", 3), ("north", 1), ("other", 1), (None, 1)]
    assert answer("SELECT ward, count(*) AS n FROM visits GROUP BY ward") == by_ward
    assert answer("SELECT count(*) AS n FROM visits WHERE ward = 'icu'") == [(3,)]
    assert answer("SELECT count(*) AS n FROM visits WHERE ward = 'ICU '") == [(0,)]
    joined = "SELECT floor, count(*) AS n FROM visits v JOIN places p ON v.ward = p.ward GROUP BY floor"
    assert answer(joined) == [(1, 3), (2, 1)]
    per_unit = "SELECT w, count(*) AS n FROM (SELECT id, max(ward) AS w FROM visits GROUP BY id) s GROUP BY w"
    assert answer(per_unit) == by_ward


# Texts as other types


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("type", "place"), [(t, i) for t, kinds in KINDS.items() for i in range(len(kinds))])
def test_every_engine_reads_texts_alike(type, place):
    rng = random.Random(7)
    near = ["".join(rng.choice("0123456789-+. :T") for _ in range(rng.randint(1, 20))) for _ in range(300)]
    one, two = both(SAID + near, KINDS[type][place])
    assert one == two
    assert repr(one) == repr(two)  # 0.0 is not -0.0
    if place == 0:
        assert one == [None if text is None else READERS[type](text) for text in SAID + near]
        assert sum(value is not None for value in one) >= 3


def test_a_policy_gives_text_a_type():
    ages = pyarrow.table({"age": ["12", "x", "130"], "day": ["2020-01-02", "", "2020-03-01"]})
    bounds = {"age": {"type": "integer", "bounds": [0, 100]}}
    bounds["day"] = {"type": "date", "bounds": [datetime.date(2020, 1, 1), datetime.date(2020, 12, 31)]}
    data = nz.open(ages, budget=10_000, policy={"tables": {"data": {"columns": bounds}}})
    found = data.sql("SELECT month(day) AS m, count(age) AS n FROM data GROUP BY 1", spend=1000)
    pairs = zip(*(c.values.to_pylist() for c in found.columns), strict=True)
    assert {m: n for m, n in pairs if n} == {1: 1, 3: 1}
    with pytest.raises(InputError, match="says integer, but the column is stored as boolean"):
        nz.open(
            pyarrow.table({"x": [True]}), budget=1, policy={"tables": {"data": {"columns": {"x": {"type": "integer"}}}}}
        )


# What one unit can change

WHOLE, TEXT = pyarrow.int64(), pyarrow.string()
ROWS = [(u, ward, x) for u in (1, 2) for ward in (" A", "b", "q") for x in ("2", " 9", "x")]
QUESTION = "SELECT {w} ward, count(*), count(x), sum(x), median(x), count(distinct x), count(distinct u) FROM v{g}ward"


def worlds(limits):
    how = Recode(trim=True, fold=True, names=(("a", ("a",)),), other="z")
    columns = {"u": Kind("integer", nullable=False), "ward": Kind("text", keys=("a", "z"), recode=how)}
    v = table("v", {**columns, "x": Kind("integer", F(0), F(3), F(1))}, unit="u", limits=limits)
    stored = {"v": {"u": WHOLE, "ward": TEXT, "x": TEXT}}
    return Worlds({"v": v}, stored, [{"v": world} for world in multisets(ROWS, 2)], {})


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("limits", [Limits(rows=1), Limits(groups=1, rows_per_group=2), Limits(rows=2)], ids=str)
def test_sensitivity_of_messy_columns(limits):
    assert checked(QUESTION, worlds(limits)) == []
    assert checked(QUESTION, worlds(limits), share=F(1, 2)) != []


def test_texts_that_are_not_clamped_are_noticed(monkeypatch):
    """A twin that forgets the bounds of a number that was read from a text."""
    right = cleaning._clean

    def loose_texts(column, kind, stored):
        return right(column, replace(kind, low=None, high=None) if stored == "VARCHAR" else kind, stored)

    monkeypatch.setattr(cleaning, "_clean", loose_texts)
    question = "SELECT {w} ward, sum(x) FROM v{g}ward"
    loose = [("sum", "l1")]
    found = checked(question, worlds(Limits(rows=1)))
    assert loose[0] in [(what, norm) for what, norm, *_ in found]


# What the owner writes


def test_declared_keys_are_the_values_that_texts_are_mapped_to():
    rules = column_rules({"map": {"icu": ["ICU", "itu"], "ward": "w"}, "other": "rest"}, "ward")
    assert rules.keys == ("icu", "rest", "ward")
    assert rules.recode == Recode(names=(("icu", ("icu", "ICU", "itu")), ("ward", ("ward", "w"))), other="rest")
    spelled = column_rules({"keys": ["North", "South"], "fold": True}, "ward")
    assert spelled.keys == ("North", "South")
    assert [spelled.recode(text) for text in ("NORTH", "south", "East")] == ["North", "South", "east"]
    assert column_rules({"trim": True}, "ward").keys is None


WRONG = {
    "other without keys": ({"other": "x"}, "other in the policy is for what is no key: declare keys as well"),
    "a number": ({"keys": ["a"], "other": 3}, "other in the policy must be a text"),
    "two meanings": ({"fold": True, "map": {"a": ["x"], "b": ["X"]}}, "map in the policy must not give one text two"),
    "keys that fold together": ({"fold": True, "keys": ["a", "A"]}, "keys in the policy must not give one text two"),
    "no list": ({"map": {"a": 3}}, "map.a in the policy must be a list of texts"),
    "private": ({"keys": "private", "map": {"a": ["b"]}}, 'map in the policy cannot stand beside keys = "private"'),
    "numbers": ({"keys": [1, 2], "fold": True}, "is recoded, so its keys must be texts"),
    "half a character": ({"map": {"a": ["\ud800"]}}, "must be valid Unicode"),
    "a typo": ({"trimm": True}, "did you mean trim"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(name):
    given, sentence = WRONG[name]
    with pytest.raises(InputError, match=sentence.replace(".", r"\.")):
        column_rules(given, "ward")


def test_only_texts_are_recoded():
    with pytest.raises(InputError, match="holds integer, and trim, fold, map and other are for texts"):
        nz.open(pyarrow.table({"x": [1]}), budget=1, policy={"tables": {"data": {"columns": {"x": {"trim": True}}}}})


def test_a_question_about_a_column_that_is_recoded_otherwise_is_another_question():
    """Plain ones keep the text that they always had."""

    def text(how):
        schema = {"t": Table("t", (Column("ward", Kind("text", keys=("a", "b"), recode=how)),))}
        query = canonical(parse("SELECT ward, count(*) FROM t GROUP BY ward", schema))
        return declared([prepare(query, schema)])

    assert len({text(how) for how in (None, Recode(fold=True), Recode(trim=True), HOW, replace(HOW, other=None))}) == 5
    assert "recode" not in repr(Kind("text"))


@pytest.mark.parametrize(("trim", "fold"), list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("other", [None, "rest"])
def test_the_sentence_below_an_answer_says_what_is_done(trim, fold, merged, other):
    how = Recode(trim, fold, (("a", ("a", "b") if merged else ("a",)),), other)
    schema = {"t": Table("t", (Column("x", Kind("text", keys=("a",), recode=how)),))}
    query = canonical(parse("SELECT x, count(*) FROM t GROUP BY x", schema))
    said = [part.sentence for part in omissions(prepare(query, schema)) if part.sentence.startswith("Texts of x")]
    text = said[0] if said else ""
    assert ("without blanks at their ends" in text) == (how(" a") == "a")
    assert ("without upper and lower case" in text) == (how("A") == "a")
    assert ("are merged by a list of the policy" in text) == (how("b") == "a")
    assert ('those of no key are "rest"' in text) == (how("q") == "rest")
    left_out = [part for part in omissions(prepare(query, schema)) if "other than its 1 declared keys" in part.sentence]
    assert bool(left_out) == (how("q") not in ("a", "rest"))
