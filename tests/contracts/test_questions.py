"""What every question must do, whatever its kind: offer for nothing, within the promise, and draw after the charge.

A question is tested by its file: the suite finds the `examples` in it, which are about the made-up hospital.
"""

import importlib
import json
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import noisette as nz
from noisette import questions
from noisette.answers import Column
from noisette.curator.demo import POLICY, tables
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.privacy import as_promise
from noisette.query.sql import parse
from noisette.questions.contract import Offer
from noisette.questions.parts.queries import Queries

TABLES = tables(600)
VISITS, WARDS = TABLES["visits"], TABLES["wards"]
RULES = POLICY["tables"]["visits"] | {"rows": 3, "groups": 2, "rows_per_group": 2}
PUBLIC = POLICY["tables"]["wards"]

ASKED = {
    "count": ["SELECT COUNT(*) AS n FROM visits"],
    "numbers": ["SELECT ward, SUM(age) AS s, AVG(age) AS a, STDDEV(age) AS d FROM visits GROUP BY ward"],
    "bins": ["SELECT FLOOR(age / 30) * 30 AS decade, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY 1"],
    "quantiles": ["SELECT ward, MEDIAN(age) AS m, MAX(age) AS top FROM visits GROUP BY ward"],
    "unknown keys": ["SELECT diagnosis, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY diagnosis"],
    "keys alone": ["SELECT DISTINCT diagnosis FROM visits"],
    "join": ["SELECT w.region, COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.region"],
    "per unit": [
        "SELECT AVG(LEAST(k, 9)) AS a FROM (SELECT patient_id, COUNT(*) AS k FROM visits GROUP BY patient_id) AS per",
    ],
    "after the release": ["SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 0 ORDER BY n DESC LIMIT 2"],
    "batch": ["SELECT COUNT(*) AS n FROM visits", "SELECT ward, AVG(age) AS a FROM visits GROUP BY ward"],
}


def examples():
    """The examples of every question by name; streams have a suite of their own."""
    for file in questions.FILES:
        for i, example in enumerate(importlib.import_module(f"noisette.questions.{file}").examples):
            yield f"{file} {i}", example


EXAMPLES = dict(examples())
VALUES = {name: value for name, value in EXAMPLES.items() if hasattr(value, "offer")}
EVERY = [*ASKED, *VALUES]
DEAR = {"apply 0", "apply 1", "best 0", "synthetic 0", "synthetic 2", "triangles 0"}
SPENDS = [nz.Pure(2), nz.Approx(2, "1e-7"), nz.ZCDP("1/4")]


def drawn(quick=()):
    """The values by name; those that take long to draw are slow, except some."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in DEAR - set(quick) else name for name in VALUES]


@pytest.fixture(scope="module")
def curator():
    return opened()


@cache
def opened():
    policy = {"tables": {"visits": RULES, "wards": PUBLIC}}
    return nz.open(TABLES, budget=nz.Approx(1000, "1e-4"), policy=policy)


class Untouched:
    """A source that must not be asked."""

    release = Source.release

    def aggregate(self, *_):
        raise AssertionError("the data was touched")

    rows = aggregate


class Counting:
    """A source that counts how often it is asked."""

    def __init__(self, source):
        self.source, self.times = source, 0

    release = Source.release

    def aggregate(self, *asked):
        self.times += 1
        return self.source.aggregate(*asked)


def question(name, schema):
    if name in VALUES:
        return VALUES[name]
    return Queries(tuple(parse(text, schema) for text in ASKED[name]))


@cache
def needs_delta(name):
    """Whether a question is refused without a delta, in a sentence that says so."""
    schema = opened().schema
    try:
        question(name, schema).offer(schema, SPENDS[0], nz.Neighbours.ADD_REMOVE, 0.95)
    except InputError as error:
        return "delta" in str(error) or "δ" in str(error)
    return False


def made(curator, name, neighbours=nz.Neighbours.ADD_REMOVE):
    for spend in SPENDS[1:2] if needs_delta(name) else SPENDS:
        yield spend, question(name, curator.schema).offer(curator.schema, spend, neighbours, 0.95)


@cache
def offers(curator, name, neighbours=nz.Neighbours.ADD_REMOVE):
    """The offers of a question, made once for all tests: a frozen value tells the same each time."""
    return list(made(curator, name, neighbours))


@pytest.mark.parametrize("neighbours", nz.Neighbours, ids=str)
@pytest.mark.parametrize("name", EVERY)
def test_an_offer_stays_within_the_promise(curator, name, neighbours):
    for spend, offer in offers(curator, name, neighbours):
        assert offer.guarantee <= spend
        assert offer.guarantee.neighbours is neighbours
        assert offer.why.endswith(".")
        assert offer.unit == "patient_id"
        assert isinstance(offer, Offer)


@pytest.mark.parametrize("name", EVERY)
def test_an_offer_wastes_little(curator, name):
    for spend, offer in offers(curator, name):
        more = type(spend)(*(Fraction(9, 10) * part if i == 0 else part for i, part in enumerate(parts(spend))))
        assert not offer.guarantee <= more


def parts(spend):
    return (
        [spend.rho]
        if isinstance(spend, nz.ZCDP)
        else [spend.epsilon, *([spend.delta] if isinstance(spend, nz.Approx) else [])]
    )


@pytest.mark.parametrize("name", EVERY)
def test_the_same_question_makes_the_same_offer(curator, name):
    for (_, one), (_, other) in zip(offers(curator, name), made(curator, name), strict=True):
        assert (one.text, repr(one.guarantee), one.parts) == (other.text, repr(other.guarantee), other.parts)


@pytest.mark.parametrize("name", ASKED)
def test_every_number_has_an_error_to_expect(curator, name):
    for _, offer in offers(curator, name):
        for columns, query in zip(offer.expected(), question(name, curator.schema).queries, strict=True):
            numbers = [n for n, result in query.outputs if type(result).__name__ != "Key"]
            assert [column.name for column in columns] == numbers
            for column in columns:
                assert (column.half_width or column.ranks or min(column.by_size.values())) > 0


@pytest.mark.parametrize("name", ASKED)
def test_answers_have_the_columns_that_were_asked_for(curator, name):
    for _, offer in offers(curator, name):
        source = Counting(curator._source)
        drawn = offer.draw(source, curator.schema, bytes(16))
        assert source.times == len(offer.procedure.design.tasks)
        for columns, query in zip(offer.answers(drawn), question(name, curator.schema).queries, strict=True):
            assert [column.name for column in columns] == [n for n, _ in query.outputs]
            assert len({len(column.values) for column in columns}) == 1
            for column in columns:
                if column.measured:
                    values, missing = column.values.to_numpy(zero_copy_only=False), column.values.is_null()
                    assert (np.asarray(missing) | ((column.low <= values) & (values <= column.high))).all()
                    ends = [np.fmin(column.low, column.span[0]), np.fmax(column.high, column.span[1])]
                    assert column.adds or ((ends[0] == column.span[0]).all() and (ends[1] == column.span[1]).all())


@pytest.mark.parametrize("name", drawn())
def test_a_value_says_what_to_expect_and_answers(curator, name):
    for _, offer in offers(curator, name):
        [expected] = offer.expected()
        [columns] = offer.answers(offer.draw(curator._source, curator.schema, bytes(16)))
        assert {column.name for column in expected} <= {column.name for column in columns}
        assert all((column.half_width or column.ranks or min(column.by_size.values())) > 0 for column in expected)
        assert len({len(column.values) for column in columns}) == 1


@pytest.mark.parametrize("name", drawn())
def test_every_number_lies_within_its_bar_which_is_no_point(curator, name):
    """At a small spend, where most is noise: what is cut at an edge reaches as far from there as from the number."""
    spend = as_promise("1/20,1e-6" if needs_delta(name) else "1/20")
    offer = question(name, curator.schema).offer(curator.schema, spend, nz.Neighbours.ADD_REMOVE, 0.95)
    for _ in range(3):
        for part in offer.answers(offer.draw(curator._source, curator.schema, bytes(16))):
            for column in part:
                assert not column.measured or within(column), column.name


def within(column):
    numbers = np.asarray(column.values.to_numpy(zero_copy_only=False), dtype=float)
    near = 1e-9 * np.abs(numbers)
    inside = (column.low <= numbers + near) & (numbers - near <= column.high) & (column.low < column.high)
    return bool((inside | np.isnan(numbers)).all())


def test_a_number_outside_of_its_bar_and_a_point_are_convicted():
    ends = np.array([0.0, 0.0]), np.array([5.0, 5.0])
    assert within(Column("n", pyarrow.array([0.0, 4.0]), *ends))
    assert not within(Column("n", pyarrow.array([-2.0, 4.0]), *ends))
    assert not within(Column("n", pyarrow.array([0.0, 5.0]), ends[0], np.array([5.0, 0.0])))


@pytest.mark.parametrize("name", drawn())
def test_what_is_kept_is_what_was_drawn(curator, name):
    for _, offer in offers(curator, name):
        kept = offer.pack(offer.draw(curator._source, curator.schema, bytes(16)))
        assert offer.pack(offer.unpack(kept)) == kept
        with pytest.raises(nz.errors.PrivacyError):
            offer.unpack(b"something else")


@pytest.mark.parametrize("name", drawn(quick={"apply 0", "best 0", "triangles 0"}))
def test_a_value_is_asked_explained_and_recorded(curator, name):
    spend = SPENDS[1] if needs_delta(name) else SPENDS[0]
    explained = curator.explain(VALUES[name], spend=spend)
    assert explained.error > 0
    assert explained.columns[0].name in repr(explained)
    answer = curator.ask(VALUES[name], spend=spend)
    assert nz.answers.check(answer.to_json()) <= spend
    assert repr(curator.ask(VALUES[name], spend=spend).rows()) == repr(answer.rows())  # NaN is NaN


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_read_before_it_is_drawn(curator, name):
    for _, offer in offers(curator, name):
        with pytest.raises(AssertionError, match="touched"):
            offer.draw(Untouched(), curator.schema, bytes(16))


@pytest.fixture(scope="module")
def on_spark(spark, tmp_path_factory):
    """The same tables as files that Spark reads."""
    folder = tmp_path_factory.mktemp("spark")
    for name, table in TABLES.items():
        parquet.write_table(table, folder / f"{name}.parquet")
    paths = {name: str(folder / f"{name}.parquet") for name in TABLES}
    policy = {"tables": {"visits": RULES, "wards": PUBLIC}}
    return nz.open(spark, tables=paths, budget=nz.Approx(1000, "1e-4"), policy=policy)


def answered_on(curator, name):
    spend = SPENDS[1] if needs_delta(name) else SPENDS[0]
    for asked in ASKED.get(name, [VALUES.get(name)]):
        assert nz.answers.check(curator.ask(asked, spend=spend).to_json()) <= spend


class Watching:
    """A source that writes down what kind of requests it gets: an engine sees these, and no question."""

    def __init__(self, source):
        self.source, self.kinds = source, []

    def aggregate(self, request, *more):
        measures = {(m.what, m.of is None) for m in request.measures}
        keys = {domain is None for domain in request.domains}
        self.kinds.append((type(request.source), frozenset(measures), frozenset(keys), request.limits is None))
        return self.source.aggregate(request, *more)

    def release(self, request, draw, *more):
        self.kinds.append("released where the cells are")
        return Source.release(self, request, draw, *more)

    def rows(self, *asked):
        self.kinds.append("rows")
        return self.source.rows(*asked)

    def __getattr__(self, name):
        return getattr(self.source, name)


@pytest.mark.slow
def test_every_kind_of_request_is_answered_on_spark(curator, on_spark):
    seen = set()
    for name in EVERY:
        watching = Watching(curator._source)
        for _, offer in offers(curator, name)[:1]:
            offer.draw(watching, curator.schema, bytes(16))
        if not seen.issuperset(watching.kinds):
            seen.update(watching.kinds)
            answered_on(on_spark, name)
    assert len(seen) > 10


@pytest.mark.nightly("every question on Spark: of each kind of request one question is asked there by every run")
@pytest.mark.parametrize("name", EVERY)
def test_every_question_is_answered_on_spark(on_spark, name):
    answered_on(on_spark, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - VALUES.keys()))
def test_every_stream_goes_on_on_spark(on_spark, name):
    begun = on_spark.stream(EXAMPLES[name], spend=SPENDS[1])
    match EXAMPLES[name]:
        case nz.Stream():
            begun.step()
            assert len(begun.to_arrow())
        case nz.Above():
            left, alert = begun.left, begun.ask("SELECT COUNT(DISTINCT patient_id) AS n FROM visits")
            assert begun.left == left - (alert is not None)
        case nz.Oracle(columns):
            assert begun.ask({columns[-1]: [18, 65]}).value >= 0


def test_unknown_keys_need_a_delta(curator):
    found = [name for name in EVERY if needs_delta(name)]
    assert {"unknown keys", "keys alone", "spread 0", "centre 0"} <= set(found)
    for name in found:
        with pytest.raises(InputError, match=r"delta|δ"):
            question(name, curator.schema).offer(curator.schema, SPENDS[2], nz.Neighbours.ADD_REMOVE, 0.95)


# JSON


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_question_goes_to_json_and_back(curator, name):
    example = EXAMPLES[name]
    if name.startswith("apply"):
        [fields] = json.loads(example.to_json()).values()
        assert set(fields["function"]) == {"name", "sha256"}
        with pytest.raises(InputError, match="JSON cannot carry"):
            questions.from_json(example.to_json())
        return
    again = questions.from_json(example.to_json())
    assert again == example
    assert again.to_json() == example.to_json()
    for _, offer in offers(curator, name) if name in VALUES else ():
        spend, relation = SPENDS[1], nz.Neighbours.ADD_REMOVE
        texts = {one.offer(curator.schema, spend, relation, 0.95).text for one in (again, example)}
        assert texts == {question(name, curator.schema).offer(curator.schema, spend, relation, 0.95).text}
        assert offer.text.startswith("{")
        break


def test_every_question_has_examples_and_a_name():
    assert {name.partition(" ")[0] for name in EXAMPLES} == set(questions.FILES)
    for file, name in questions.FILES.items():
        assert name in questions.__all__
        assert getattr(nz, name) is getattr(questions, name)
        assert type(EXAMPLES[f"{file} 0"]) is getattr(questions, name)
