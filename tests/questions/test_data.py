"""Questions as JSON: there and back, frames as the SQL they stand for, and one sentence for everything else."""

import datetime
import importlib
import json
import random
import sys
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.attack.questions import random_question
from tests.attack.tables import Shelf, random_world

import noisette as nz
from noisette.curator.demo import hospital
from noisette.errors import InputError
from noisette.query.canonical import canonical, canonical_text
from noisette.query.frame import Asked, Frame
from noisette.query.sql import parse
from noisette.query.sql.writer import query_sql
from noisette.query.unit_keys import unit_names
from noisette.questions import FILES, from_json
from noisette.questions.data import JsonQuestion, from_data, parameters

SPEND, ADD_REMOVE = nz.Approx(1, "1e-6"), nz.Neighbours.ADD_REMOVE


@pytest.fixture(scope="module")
def clinic():
    return hospital(nz.Approx(100, "1e-4"))


def text(question, clinic):
    return question.offer(clinic.schema, SPEND, ADD_REMOVE, 0.95).text


# Frames and functions become SQL


@pytest.mark.parametrize(
    ("rows", "sql"),
    [
        (lambda v, w: v, "SELECT * FROM visits"),
        (lambda v, w: v.where("age >= 18"), "SELECT * FROM visits WHERE visits.age >= 18"),
        (
            lambda v, w: v.where("age >= 18").join(w, on="ward").where("region = 'north'"),
            "SELECT * FROM visits JOIN wards USING (ward) WHERE visits.age >= 18 AND wards.region = 'north'",
        ),
        (
            lambda v, w: v.join(w.where("region <> 'north'"), on={"ward": "ward"}, how="left"),
            "SELECT * FROM visits LEFT JOIN (SELECT * FROM wards WHERE wards.region <> 'north') AS wards "
            "ON visits.ward = wards.ward",
        ),
        (
            lambda v, w: v.select("ward", decade="FLOOR(age / 10)"),
            "SELECT * FROM (SELECT visits.ward AS ward, FLOOR((visits.age / 10)) AS decade FROM visits) AS visits",
        ),
        (
            lambda v, w: v.per_unit("ward", n="COUNT(*)").where("n > 1"),
            "SELECT * FROM (SELECT visits.patient_id AS patient_id, visits.ward AS ward, COUNT(*) AS n FROM visits "
            "GROUP BY visits.patient_id, visits.ward) AS visits WHERE visits.n > 1",
        ),
    ],
)
def test_a_frame_is_written_as_the_sql_it_stands_for(clinic, rows, sql):
    question = nz.Mode(
        "ward" if "USING" in sql else "visits.ward", of=rows(clinic.table("visits"), clinic.table("wards"))
    )
    assert question.of == sql
    again = from_json(question.to_json())
    assert again == question
    assert text(again, clinic) == text(question, clinic)


def test_a_frame_without_an_sql_text_is_asked_all_the_same(clinic):
    visits, wards = clinic.table("visits"), clinic.table("wards")
    question = nz.Mode("age", of=visits.join(wards.join(wards, on="ward"), on={"ward": "wards.ward"}))
    assert text(question, clinic)
    with pytest.raises(InputError, match="no SQL text"):
        question.to_json()


def test_functions_and_queries_are_written_as_sql(clinic):
    visits = clinic.table("visits")
    sql = nz.Choose([18, 30], score=lambda age: f"SELECT COUNT(*) FROM visits WHERE age >= {age}")
    frames = nz.Choose([18, 30], score=lambda age: visits.where(f"age >= {age}").count())
    assert frames.score[0] == "SELECT COUNT(*) AS count FROM visits WHERE visits.age >= 18"
    for question in (
        sql,
        frames,
        nz.Best([visits.count(), visits.agg(count="COUNT(DISTINCT patient_id)")], by="count"),
    ):
        assert from_json(question.to_json()) == question
        assert text(from_json(question.to_json()), clinic) == text(question, clinic)
    assert text(sql, clinic) == text(frames, clinic)


@pytest.mark.parametrize(
    "question",
    [
        nz.Choose([datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 12)], score=["SELECT 1", "SELECT 2"]),
        nz.Choose([0.5, True, "a"], score=str, sensitivity=Decimal("0.5"), lead=True),
        nz.LeftOut("day", bounds=[(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1))]),
        nz.LeftOut("cost", bounds=[(0.5, Decimal("1e3")), ("1/3", 2)]),
        nz.OrderStatistic("age", 0.9),
        nz.Spread("age", base=Fraction(3, 2), grid="0.25"),
        nz.Above("1/2", unit="1/2", name="ü"),
        nz.Best({"a": nz.Mode("ward"), "b": nz.Best([nz.Top("x", 1), "SELECT 1"], by="x")}, by="x"),
    ],
    ids=lambda question: type(question).__name__,
)
def test_exact_values_go_there_and_back(question):
    assert from_json(question.to_json()) == question
    assert from_json(question.to_json()).to_json() == question.to_json()


def opened(rng, folder):
    """A random world that can be opened."""
    shelf = Shelf(folder)
    while True:
        try:
            return shelf.opened(random_world(rng))
        except InputError:
            continue


def plan_of(built, schema):
    if isinstance(built, str):
        return parse(built, schema)
    return built.query if isinstance(built, Asked) else None


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(8))
def test_every_plan_that_is_written_reads_as_the_same_plan(tmp_path, seed):
    rng = random.Random(seed)
    curator = opened(rng, tmp_path)
    written = 0
    for _ in range(60):
        try:
            built = random_question(rng).built(curator)
            query = plan_of(built, curator.schema)
        except InputError:
            continue
        if query is not None:
            units = unit_names(query.source, curator.schema)
            again = parse(query_sql(query, units), curator.schema)
            assert canonical_text(again) == canonical_text(query)
            assert canonical(again).outputs == canonical(query).outputs
            written += 1
        elif isinstance(built, JsonQuestion) and not isinstance(built, nz.Apply):
            if isinstance(getattr(built, "of", None), Frame):  # about a table that this world does not have
                assert "c" not in curator.schema
                continue
            assert from_json(built.to_json()) == built
            written += 1
    assert written > 10


# Nothing but one sentence


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ('{"mode": {"column": NaN}}', "not valid JSON"),
        ('{"mode": {"column": "a", "column": "b"}}', "not valid JSON"),
        ('{"mode": {"column": "\\ud800"}}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("9" * 10_000, "not valid JSON"),
        ("[]", "one name with its fields"),
        ('{"mode": {"column": "a"}, "top": {}}', "one name with its fields"),
        ('{"contract": {}}', "no question of that name"),
        ('{"os.system": "ls"}', "no question of that name"),
        ('{"mode": {}}', 'mode needs column: {"mode": {"column": "ward"}}'),
        ('{"mode": [1]}', "names and values"),
        ('{"mode": {"colum": "ward"}}', "did you mean column?"),
        ('{"mode": {"where": "ward"}}', "takes column, of, lead"),
        ('{"mode": {"column": 5}}', "column must be a text"),
        ('{"mode": {"column": "ward", "lead": "yes"}}', "lead must be"),
        ('{"mode": {"column": "ward", "of": "the visits"}}', "of must be rows"),
        ('{"top": {"column": "ward", "k": true}}', "k must be a whole number"),
        ('{"nearest": {"x": "a", "y": "b", "place": [1], "k": 1}}', "place must be two whole numbers"),
        ('{"nearest": {"x": "a", "y": "b", "place": [1, 2], "k": 1, "tell": "all"}}', '"distance" or "place"'),
        ('{"choose": {"candidates": [1, 2], "score": "SELECT 1"}}', "score must be"),
        ('{"choose": {"candidates": [[1], [2]], "score": ["a", "b"]}}', "a text, a number or a date"),
        ('{"best": {"candidates": [{"above": {"threshold": 1}}, "SELECT 1"], "by": "x"}}', "stream"),
        ('{"best": {"candidates": {"a": 1, "b": 2}, "by": "x"}}', "must be a question"),
        ('{"apply": {"function": "os.system", "blocks": 5}}', "JSON cannot carry"),
    ],
)
def test_what_is_no_question_gets_one_sentence(written, said):
    with pytest.raises(InputError) as caught:
        from_json(written)
    assert said in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted({name for file in FILES for name in parameters(getattr(nz, FILES[file]))})


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(FILES)) | st.text(max_size=8), VALUES | st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_arbitrary_json_is_a_question_or_a_sentence(name, fields):
    before, said = set(sys.modules), "."
    try:
        made = from_json(json.dumps({name: fields}))
    except InputError as error:
        made, said = None, str(error)
    assert said.endswith((".", "?"))
    if made is not None:
        assert from_data(made.to_data()) == made
    assert {
        one for one in set(sys.modules) - before if not one.startswith(("noisette", "pyarrow", "hypothesis"))
    } == set()


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_question_with_one_wrong_value_is_a_question_or_a_sentence(data):
    file = data.draw(st.sampled_from(sorted(FILES)))
    examples = importlib.import_module(f"noisette.questions.{file}").examples
    [(name, fields)] = json.loads(data.draw(st.sampled_from(examples)).to_json()).items()
    if isinstance(fields, dict):
        fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(VALUES)
    said = "."
    try:
        made = from_data({name: fields})
        hospital_offer(made)
    except InputError as error:
        said = str(error)
    assert said.endswith((".", "?"))


def hospital_offer(made):
    if hasattr(made, "offer"):
        made.offer(SCHEMA, SPEND, ADD_REMOVE, 0.95)


SCHEMA = hospital().schema


# Numbers and keys of strangers


@pytest.mark.parametrize(
    "text",
    [
        '{"workload": {"queries": [{"age": [0, 9]}, {"age": [5, 60]}], "weights": ["1e310", 1]}}',
        '{"sparse_table": {"columns": ["ward", "age"], "size": "1e-310"}}',
        '{"trimmed_mean": {"column": "cost", "trim": @}}',
        '{"oracle": {"columns": ["ward"], "updates": null}}',
        '{"hierarchy": {"column": "ward", "groups": {"a": [["surgery"]]}}}',
        '{"hierarchy": {"column": "ward", "groups": {"a": [{}]}}}',
        '{"stream": {"time": "day", "since": "2024-01-01", "until": "2024-02-01", "events": @}}',
        '{"stream": {"time": "day", "since": "2024-01-01", "until": "2024-02-01", "every": "99999999999999 days"}}',
        '{"above": {"threshold": 3, "positives": @}}',
        '{"oracle": {"columns": ["ward"], "threshold": @}}',
    ],
)
def test_unusual_numbers_are_one_sentence_and_cost_nothing(clinic, text):
    entries = len(clinic.ledger.entries)

    def ask():
        question = from_json(text.replace("@", "9" * 4000))
        ask = clinic.stream if hasattr(question, "stream") else clinic.ask
        return ask(question, spend=nz.Approx("0.1", "1e-7"))

    with pytest.raises(InputError):
        ask()
    assert len(clinic.ledger.entries) == entries


@pytest.mark.parametrize("constant", ["1/3", "1", "'x'", "NULL"])
@pytest.mark.parametrize("name", ["histogram", "mode", "top", "ranges", "fourier"])
def test_a_constant_makes_no_groups(clinic, name, constant):
    fields = {"column": constant} | ({"k": 2} if name == "top" else {})
    with pytest.raises(InputError, match=r"^A constant makes no groups"):
        clinic.explain(from_json(json.dumps({name: fields})), spend=nz.Approx("0.1", "1e-7"))
