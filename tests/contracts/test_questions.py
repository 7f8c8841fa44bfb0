"""What every question must do, whatever its kind: offer for nothing, within the promise, and draw once it is paid.

A new kind of question is tested by adding an example of it here.
"""

from fractions import Fraction

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.query.sql import parse
from noisette.questions.contract import Queries

WARDS = ["east", "north", "south"]
N = 3_000
VISITS = pyarrow.table(
    {
        "patient": np.arange(N) // 3,
        "age": np.arange(N) % 90,
        "ward": [WARDS[i % 3] for i in range(N)],
        "illness": [f"illness {i % 7}" for i in range(N)],
    }
)
PLACES = pyarrow.table({"ward": WARDS, "floor": [1, 2, 2]})
COLUMNS = {
    "age": {"bounds": [0, 100], "nullable": False},
    "ward": {"keys": WARDS, "nullable": False},
    "patient": {"nullable": False},
}
RULES = {"unit": "patient", "rows": 3, "groups": 2, "rows_per_group": 2, "columns": COLUMNS}
PUBLIC = {"public": True, "columns": {"floor": {"bounds": [1, 3]}, "ward": {"keys": WARDS}}}

ASKED = {
    "count": ["SELECT COUNT(*) AS n FROM visits"],
    "numbers": ["SELECT ward, SUM(age) AS s, AVG(age) AS a, STDDEV(age) AS d FROM visits GROUP BY ward"],
    "bins": ["SELECT FLOOR(age / 30) * 30 AS decade, COUNT(DISTINCT patient) AS n FROM visits GROUP BY 1"],
    "quantiles": ["SELECT ward, MEDIAN(age) AS m, MAX(age) AS top FROM visits GROUP BY ward"],
    "unknown keys": ["SELECT illness, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY illness"],
    "keys alone": ["SELECT DISTINCT illness FROM visits"],
    "join": ["SELECT p.floor, COUNT(*) AS n FROM visits v JOIN places p ON v.ward = p.ward GROUP BY p.floor"],
    "per unit": [
        "SELECT AVG(LEAST(k, 9)) AS a FROM (SELECT patient, COUNT(*) AS k FROM visits GROUP BY patient) AS per",
    ],
    "after the release": ["SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 0 ORDER BY n DESC LIMIT 2"],
    "batch": ["SELECT COUNT(*) AS n FROM visits", "SELECT ward, AVG(age) AS a FROM visits GROUP BY ward"],
}


def two(rows):
    ages = rows["age"].to_numpy()
    return ages.mean(), ages.max()


QUICK = {"seconds": 0.3, "memory": "128 MiB", "columns": ["age"]}
VALUES = {
    "apply": nz.Apply(lambda rows: rows["age"].to_numpy().mean(), blocks=2, bounds=(0, 100), **QUICK),
    "apply, winsorized": nz.Apply(two, blocks=2, bounds=(0, 100), outputs=2, aggregate="winsorized", **QUICK),
    "apply, median": nz.Apply(two, blocks=2, bounds=(0, 100), outputs=2, aggregate="median", **QUICK),
    "apply, mode": nz.Apply(lambda rows: "a", blocks=2, labels=["a", "b"], aggregate="mode", **QUICK),
    "mode": nz.Mode("ward"),
    "mode of an expression": nz.Mode("FLOOR(age / 10)"),
    "mode with its lead": nz.Mode("ward", lead=True),
    "choose": nz.Choose([30, 60, 90], score=lambda age: f"SELECT COUNT(*) FROM visits WHERE age < {age}"),
    "choose by sums": nz.Choose(WARDS, score=lambda ward: f"SELECT SUM(age - 40) FROM visits WHERE ward = '{ward}'"),
    "choose with a lead": nz.Choose(
        WARDS, score=lambda ward: f"SELECT SUM(age - 40) FROM visits WHERE ward = '{ward}'", lead=True
    ),
    "best": nz.Best(
        {f"below {age}": f"SELECT SUM({age}) AS s, AVG(age) AS a FROM visits WHERE age < {age}" for age in (30, 60)},
        by="s",
        runs=2,
    ),
    "top": nz.Top("ward", 2),
    "top ages": nz.Top("age", 5),
    "nearest": nz.Nearest("FLOOR(age / 10)", "age - 5", place=(3, 4), k=20),
    "nearest place": nz.Nearest("FLOOR(age / 10)", "age - 5", place=(3, 4), k=20, tell="place"),
    "mode of unknown keys": nz.Mode("illness"),
    "spread": nz.Spread("age"),
    "centre": nz.Centre("age", width=5),
    "centre and spread": nz.Centre("age"),
    "trimmed mean": nz.TrimmedMean("age", trim=100),
    "order statistic": nz.OrderStatistic("age"),
    "order statistic by smooth sensitivity": nz.OrderStatistic("age", "9/10", by="smooth"),
    "triangles": nz.Triangles("age", "age + 1"),
    "triangles on a ladder": nz.Triangles("age", "FLOOR(age / 2)", by="inverse"),
    "left out by limits on rows": nz.LeftOut(rows=[1, 2, 4, 8, 16]),
    "left out by limits on groups": nz.LeftOut(groups=[1, 2], by=["ward", "illness"]),
    "left out by bounds": nz.LeftOut("age", bounds=[(0, 50), (10, 80)]),
}
EVERY = [*ASKED, *VALUES]
SPENDS = [nz.Pure(2), nz.Approx(2, "1e-7"), nz.ZCDP("1/4")]
NEED_DELTA = ("unknown keys", "keys alone", "mode of unknown keys", "spread", "centre", "centre and spread")


@pytest.fixture(scope="module")
def curator():
    tables = {"tables": {"visits": RULES, "places": PUBLIC}}
    return nz.open({"visits": VISITS, "places": PLACES}, budget=nz.Approx(1000, "1e-4"), policy=tables)


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


def offers(curator, name, neighbours=nz.Neighbours.ADD_REMOVE):
    for spend in SPENDS[1:2] if name in NEED_DELTA else SPENDS:
        yield spend, question(name, curator.schema).offer(curator.schema, spend, neighbours, 0.95)


@pytest.mark.parametrize("neighbours", nz.Neighbours, ids=str)
@pytest.mark.parametrize("name", EVERY)
def test_an_offer_stays_within_the_promise(curator, name, neighbours):
    for spend, offer in offers(curator, name, neighbours):
        assert offer.guarantee <= spend
        assert offer.guarantee.neighbours is neighbours
        assert offer.why.endswith(".")
        assert offer.unit == "patient"


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
    for (_, one), (_, other) in zip(offers(curator, name), offers(curator, name), strict=True):
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
        assert source.times == len(offer.design.tasks)
        for columns, query in zip(offer.answers(drawn), question(name, curator.schema).queries, strict=True):
            assert [column.name for column in columns] == [n for n, _ in query.outputs]
            assert len({len(column.values) for column in columns}) == 1
            for column in columns:
                if column.measured:
                    values, (low, high) = column.values.to_numpy(zero_copy_only=False), column.unmoved
                    assert (low <= values + 1e-9).all()
                    assert (values <= high + 1e-9).all()
                    assert ((column.low >= column.span[0]) & (column.high <= column.span[1])).all()


@pytest.mark.parametrize("name", VALUES)
def test_a_value_says_what_to_expect_and_answers(curator, name):
    for _, offer in offers(curator, name):
        [expected] = offer.expected()
        [columns] = offer.answers(offer.draw(curator._source, curator.schema, bytes(16)))
        assert {column.name for column in expected} <= {column.name for column in columns}
        assert all((column.half_width or column.ranks) > 0 for column in expected)
        assert len({len(column.values) for column in columns}) == 1


@pytest.mark.parametrize("name", VALUES)
def test_what_is_kept_is_what_was_drawn(curator, name):
    for _, offer in offers(curator, name):
        drawn = offer.draw(curator._source, curator.schema, bytes(16))
        assert offer.unpack(offer.pack(drawn)).equals(drawn)
        with pytest.raises(nz.errors.PrivacyError):
            offer.unpack(b"something else")


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_asked_explained_and_recorded(curator, name):
    spend = SPENDS[1] if name in NEED_DELTA else SPENDS[0]
    explained = curator.explain(VALUES[name], spend=spend)
    assert explained.error > 0
    assert explained.columns[0].name in repr(explained)
    answer = curator.ask(VALUES[name], spend=spend)
    assert nz.answers.check(answer.to_json()) <= spend
    assert curator.ask(VALUES[name], spend=spend).rows() == answer.rows()


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_read_before_it_is_drawn(curator, name):
    for _, offer in offers(curator, name):
        with pytest.raises(AssertionError, match="touched"):
            offer.draw(Untouched(), curator.schema, bytes(16))


@pytest.mark.parametrize("name", NEED_DELTA)
@pytest.mark.parametrize("spend", [SPENDS[0], SPENDS[2]], ids=repr)
def test_unknown_keys_need_a_delta(curator, name, spend):
    with pytest.raises(InputError, match="delta"):
        question(name, curator.schema).offer(curator.schema, spend, nz.Neighbours.ADD_REMOVE, 0.95)
