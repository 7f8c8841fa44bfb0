"""The best of private answers: its law, its price, what it keeps, and that nothing tells how many runs there were."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from tests.goodness import ALPHA, fewest, p_value

import noisette as nz
from noisette.audit.divergence import largest_loss
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.random import SYSTEM
from noisette.mechanisms import BestOf
from noisette.privacy import Pure
from noisette.query.expected import Expected
from noisette.questions.contract import Offer, Procedure

N = 3_000
VISITS = pyarrow.table(
    {"patient": np.arange(N) // 3, "age": np.arange(N) % 90, "ward": ["a", "b", "c"] * (N // 3), "note": ["x"] * N}
)
COLUMNS = {"age": {"bounds": [0, 100], "nullable": False}, "ward": {"keys": ["a", "b", "c"], "nullable": False}}
CUTS = (18, 30, 65)
BEST = nz.Best(
    {f"from {a}": f"SELECT SUM({a}) AS score, COUNT(*) AS n FROM visits WHERE age >= {a}" for a in CUTS}, by="score"
)
SPENDS = [nz.Pure(3), nz.Approx(3, "1e-6"), nz.ZCDP(1)]
ADD_REMOVE, REPLACE = nz.Neighbours


@pytest.fixture
def curator():
    rules = {"unit": "patient", "rows": 3, "groups": 3, "rows_per_group": 3, "columns": COLUMNS}
    return nz.open({"visits": VISITS}, budget=nz.Approx(1000, "1e-4"), policy={"tables": {"visits": rules}})


def offer(curator, question=BEST, spend=SPENDS[0], neighbours=ADD_REMOVE, level=0.95):
    return question.offer(curator.schema, spend, neighbours, level)


class Coin:
    """A question whose answer, a number from 0 on, has these chances; `key` tells two of them apart."""

    def __init__(self, key, chances, costs=None):
        self.key, self.chances, self.costs, self.drawn, self.spend = key, chances, costs, 0, None

    def offer(self, schema, spend, neighbours, level):
        self.spend, self.level = spend, level
        guarantee = Pure(self.costs or spend.epsilon, neighbours=neighbours)
        return Offer(f"coin {self.key}", guarantee, "row", "It is a coin.", [], [()], Tossing(self))


class Tossing(Procedure):
    def __init__(self, coin):
        self.coin = coin

    def expected(self, sizes=()):
        return [(Expected("score", "a coin", "", 1.0, {}, None, ""),)]

    def draw(self, source, schema, secret, rng=SYSTEM):
        self.coin.drawn += 1
        left = rng.below(1000)
        for score, chance in enumerate(self.coin.chances):
            left -= chance
            if left < 0:
                return pyarrow.table({"score": [score], "score_low": [score - 1.0], "score_high": [score + 1.0]})
        raise AssertionError


def mixed(*tables):
    """The law of a run: one of the candidates, evenly."""
    return {
        (score, (which, score)): Fraction(chance, 1000 * len(tables))
        for which, table in enumerate(tables)
        for score, chance in enumerate(table)
    }


# What it releases


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 4])
def test_what_is_told_is_the_best_of_a_geometric_number_of_runs(curator, runs):
    tables = (500, 300, 200), (900, 50, 50)
    made = offer(curator, nz.Best([Coin(i, table) for i, table in enumerate(tables)], by="score", runs=runs))
    law = BestOf(runs, each=1).outcomes(mixed(*tables))
    drawn = [made.draw(None, None, None).to_pylist()[0] for _ in range(600)]
    told = [
        (one["best"], made.answers(pyarrow.table({k: [v] for k, v in one.items()}))[0][1].values[0].as_py())
        for one in drawn
    ]
    outcomes = list(law)
    assert p_value([told.count(y[1]) for y in outcomes], [law[y] for y in outcomes]) > ALPHA
    if runs != 1:
        single = BestOf(1, each=1).outcomes(mixed(*tables))
        assert p_value([told.count(y[1]) for y in outcomes], [single[y] for y in outcomes]) < ALPHA


def test_candidates_that_keep_the_price_of_a_run_keep_that_of_the_whole(curator):
    """Both candidates change by all that a run may cost. A twin that tells the best of all its runs loses far more."""
    made = offer(curator, nz.Best([Coin(0, (1000,)), Coin(1, (1000,))], by="score", runs=5), nz.Pure(1))
    laws = [
        {(score, (which, score)): p / 2 for (score, _), p in law.items() for which in range(2)}
        for law in made.procedure.mechanism.pairs()[0][:2]
    ]
    P, Q = (np.array(list(made.procedure.mechanism.outcomes(law).values())) for law in laws)
    assert 0.99 < largest_loss(P, Q) <= 1 + 1e-9
    P, Q = (np.array([best_of(made.procedure.always, law, y) for y in laws[0]]) for law in laws)
    assert largest_loss(P, Q) > 3


def best_of(k, law, y):
    """P(y is the best of k runs)."""
    below = sum(p for (score, _), p in law.items() if score < y[0])
    here = sum(p for (score, _), p in law.items() if score == y[0])
    return float(((below + here) ** k - below**k) * law[y] / here) if here else 0.0


@pytest.mark.slow
def test_there_are_always_as_many_runs_and_the_data_is_read_once(curator):
    coins = [Coin(i, (500, 300, 200)) for i in range(2)]
    made = offer(curator, nz.Best(coins, by="score", runs=3))
    for times in range(1, 6):
        made.draw(None, None, None)
        assert sum(coin.drawn for coin in coins) == times * made.procedure.always
    assert (
        (1 - Fraction(1, 3)) ** made.procedure.always
        <= Fraction(1, 2**30)
        < (1 - Fraction(1, 3)) ** (made.procedure.always - 1)
    )
    asked = []
    read = curator._source.aggregate
    curator._source.aggregate = lambda *request: (asked.append(len(curator.budget.entries)), read(*request))[1]
    curator.ask(BEST, spend=3)
    assert asked == [1] * 3  # after the charge, and once for each candidate


def test_more_runs_than_ever_are_made_if_so_many_were_drawn(curator, monkeypatch):
    coins = [Coin(i, (500, 300, 200)) for i in range(2)]
    made = offer(curator, nz.Best(coins, by="score", runs=2))
    monkeypatch.setattr(
        "noisette.mechanisms.selection.best_of.geometric_runs", lambda gamma, rng: made.procedure.always + 7
    )
    made.draw(None, None, None)
    assert sum(coin.drawn for coin in coins) == made.procedure.always + 7


@pytest.mark.slow
def test_an_answer_without_a_score_is_worse_than_all_others(curator):
    class Odd(Tossing):
        def draw(self, *_):
            return pyarrow.table({"score": pyarrow.array(self.coin.chances, pyarrow.float64())})

    for odd in ([], [1.0, 2.0], [None], [math.nan]):
        coin = Coin(1, odd)
        usual = coin.offer
        coin.offer = lambda *asked, usual=usual, coin=coin: replace(usual(*asked), procedure=Odd(coin))
        made = offer(curator, nz.Best([Coin(0, (1000,)), coin], by="score", runs=100))
        drawn = [made.draw(None, None, None).to_pylist()[0]["best"] for _ in range(6)]
        assert 0 in drawn  # fails with p < 1e-12: each draw has runs of the other one alone with a chance of 1/101


# What it costs


@pytest.mark.parametrize("neighbours", nz.Neighbours)
@pytest.mark.parametrize("spend", SPENDS, ids=repr)
def test_a_run_costs_a_little_more_than_a_third(curator, spend, neighbours):
    made = offer(curator, BEST, spend, neighbours)
    assert made.guarantee <= spend
    assert made.guarantee.neighbours is neighbours
    assert made.procedure.mechanism.each > Fraction(1, 3)
    for _, inner in made.procedure.offers:
        assert inner.guarantee <= nz.Pure(made.procedure.mechanism.each, neighbours=neighbours)
        assert not inner.guarantee <= nz.Pure(made.procedure.mechanism.each * Fraction(99, 100), neighbours=neighbours)


@pytest.mark.slow
def test_it_is_charged_once_kept_and_its_record_can_be_checked(curator):
    answer = curator.ask(BEST, spend=3)
    again = curator.ask(nz.Best(dict(reversed(BEST.candidates)), by="score"), spend=3)  # in another order
    assert again.rows() == answer.rows()
    assert len(curator.budget.entries) == 1
    assert curator.budget.spent.epsilon <= 3
    assert nz.answers.check(answer.to_json()) <= nz.Pure(3)
    [part] = json.loads(answer.to_json())["mechanisms"]
    assert set(part["candidates"]) == {f"from {a}" for a in CUTS}


@pytest.mark.slow
def test_only_the_best_is_kept(curator):
    made = offer(curator)
    drawn = made.draw(curator._source, curator.schema, bytes(16))
    assert (drawn.column_names, drawn.num_rows) == (["best", "answer"], 1)
    [(label, *told)] = made.answers(made.unpack(made.pack(drawn)))
    assert label.values[0].as_py() in {f"from {a}" for a in CUTS}
    assert [column.name for column in told] == ["score", "n"]


@pytest.mark.parametrize(
    "candidates",
    [
        [Coin(0, (1000,)), Coin(1, (1000,), costs=Fraction(1))],
        [
            "SELECT COUNT(*) AS score FROM visits",
            nz.Apply(lambda rows: "a", blocks=2, labels=["a", "b"], aggregate="mode"),
        ],
    ],
    ids=["dear", "no score"],
)
def test_candidates_that_do_not_fit_are_refused_before_anything_is_charged(curator, candidates):
    with pytest.raises(InputError):
        curator.ask(nz.Best(candidates, by="score"), spend=1)
    assert curator.budget.entries == ()


# What to expect


@pytest.mark.slow
def test_error_bars_hold_whichever_run_is_told(curator):
    """Bars of runs are wider, so that all of K hold the truth at once with the level; those of single ones do not."""
    true = {a: int((VISITS["age"].to_numpy() >= a).sum()) for a in CUTS}
    few = nz.Best({str(a): f"SELECT COUNT(*) AS score FROM visits WHERE age >= {a}" for a in CUTS}, by="score", runs=5)
    made = offer(curator, few, nz.Pure(1), level=0.8)
    assert made.procedure.offers[0][1].procedure.level == pytest.approx(1 - 0.2 / 5)
    held = 0
    source = Once(curator._source)
    for _ in range(60):
        [(label, score)] = made.answers(made.draw(source, curator.schema, bytes(16)))
        held += score.low[0] <= true[int(label.values[0].as_py())] <= score.high[0]
    assert held >= fewest(60, 0.8)  # fails with p < 1e-12 if the level is kept


class Once:
    """What an engine computes, kept between draws to save time."""

    def __init__(self, source):
        self.source, self.kept = source, {}

    release = Source.release

    def aggregate(self, request, *rest):
        if request not in self.kept:
            self.kept[request] = self.source.aggregate(request, *rest)
        return self.kept[request]


@pytest.mark.slow
def test_the_widest_bar_of_a_score_is_what_to_expect(curator):
    [(expected,)] = offer(curator).expected()
    widths = [inner.expected()[0][0].half_width for _, inner in offer(curator).procedure.offers]
    assert (expected.name, expected.half_width) == ("score", max(widths))
    assert "of single runs" in expected.assumes
    assert curator.explain(BEST, error=2000).error <= 2000


@pytest.mark.slow
def test_functions_can_be_candidates(curator):
    """The same function with different parameters: the share of ages above a number, far from a half."""

    def far(cut):
        return lambda rows: abs((rows["age"].to_numpy() > cut).mean() - 0.5)

    options = {"blocks": 2, "bounds": (0, "1/2"), "columns": ["age"], "outputs": ["score"], "seconds": 0.3}
    applied = nz.Best({str(cut): nz.Apply(far(cut), **options) for cut in (45, 88)}, by="score", runs=1)
    [row] = curator.ask(applied, spend=100).rows()
    assert row["best"] in ("45", "88")
    assert 0 <= row["score"] <= 0.5 + 0.1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nz.Best("SELECT 1", by="n"), "list"),
        (lambda: nz.Best(["SELECT COUNT(*) AS n FROM visits"], by="n"), "between 2"),
        (lambda: nz.Best(["a", "b"], by=""), "by must"),
        (lambda: nz.Best(["a", "b"], by=3), "by must"),
        (lambda: nz.Best({1: "a", 2: "b"}, by="n"), "texts"),
        (lambda: nz.Best(["a", "b"], by="n", runs="1/2"), "runs"),
        (lambda: nz.Best(["a", "b"], by="n", runs=10**6), "runs"),
        (lambda: nz.Best(["a", "b"], by="n", runs=math.nan), "runs"),
    ],
)
def test_bad_candidates_are_refused_at_once(make, said):
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "one row"),
        ("SELECT COUNT(*) AS m FROM visits", "no number n: it has m"),
        ("SELECT COUNT(*) AS n FROM nothing", "nothing"),
        (nz.Mode("note"), "delta"),
        (nz.Above(10), "stream"),
        (3, "must be a question"),
    ],
    ids=["groups", "another name", "no table", "a delta", "a stream", "a number"],
)
def test_bad_questions_are_refused_and_cost_nothing(curator, candidate, said):
    with pytest.raises(InputError, match=said):
        curator.ask(nz.Best(["SELECT COUNT(*) AS n FROM visits", candidate], by="n"), spend=1)
    assert curator.budget.entries == ()


def test_frames_and_queries_can_be_candidates(curator):
    visits = curator.table("visits")
    asked = visits.where("age < 10").count(), visits.where("age < 80").count()
    name = asked[0].query.outputs[0][0]
    found = curator.ask(nz.Best(asked, by=name), spend=100).rows()
    assert found[0]["best"] in (0, 1)  # which one is chance: with a single run, the worse candidate may be the only one
    named = nz.Best(["SELECT COUNT(*) AS best FROM visits", "SELECT SUM(age) AS best FROM visits"], by="best", runs=1)
    assert list(curator.ask(named, spend=1).rows()[0])[:2] == ["candidate", "best"]
