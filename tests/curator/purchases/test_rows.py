"""A limit on rows that is bought: scored exactly, private as stated, near the best limit, and bought once.

The guarantee is checked on all tables of few units: the law of the choice on every pair of neighbours, under both
relations, against e^epsilon.
"""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import noisette as nz
from noisette.curator.purchases import for_sale
from noisette.curator.purchases.rows import Rows, scores
from noisette.errors import BudgetError, InputError, NoisetteError
from noisette.mechanisms import Exponential
from noisette.query.sql import parse
from noisette.questions.parts.queries import Queries

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
ONE = nz.Pure(1)
COUNT = "SELECT COUNT(*) AS n FROM visits"


def table(f):
    """A unit for each number of rows."""
    return pyarrow.table({"who": np.repeat(np.arange(len(f)), f)})


def opened(data, budget=100, rows="private", **more):
    rules = {"tables": {"visits": {"unit": "who", **({} if rows is None else {"rows": rows})}}}
    return nz.open({"visits": data}, budget=budget, policy=rules, **more)


def offer(data, spend=ONE, neighbours=ADD_REMOVE, **terms):
    return Rows(data.schema[for_sale(data.schema, "rows", None).table], **terms).offer(
        data.schema, spend, neighbours, 0.95
    )


def counted(data, **terms):
    made = offer(data, **terms)
    return made.procedure.limits, data._source.aggregate(
        made.procedure.prepared.request, data.schema, bytes(16)
    ).measures[0].tolist()


# Counting


UNITS = {
    "numbers": pyarrow.array([1, 1, 1, 2, None, None], pyarrow.int64()),
    "texts": pyarrow.array(["ann", "ann", "ann", "Ann", None, None]),
    "reals": pyarrow.array([0.0, -0.0, 0.0, 1.5, float("nan"), None]),
}


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
def test_rows_of_nobody_are_not_counted(units):
    assert counted(opened(pyarrow.table({"who": units})), most=4) == ((1, 2, 4), [1, 0, 1, 0])


@pytest.mark.slow
def test_units_are_counted_between_candidates():
    f = np.random.default_rng(5).geometric(0.1, 300)
    limits, found = counted(opened(table(f)), most=20)
    assert limits == (1, 2, 4, 8, 16, 20)
    assert found == np.bincount(np.searchsorted(limits, f), minlength=7).tolist()
    assert counted(opened(table([0])), most=2) == ((1, 2), [0, 0, 0])
    assert counted(opened(table([10**6, 1, 8192, 8193])))[1] == [1, *[0] * 12, 1, 2]


# The guarantee


def laws(made, f):
    """P(each candidate) for a table whose units have f rows."""
    units = np.bincount(
        np.searchsorted(made.procedure.limits, [n for n in f if n]), minlength=len(made.procedure.limits) + 1
    )
    q = scores(units, made.procedure.target)
    return q, made.procedure.mechanism.pmf(np.arange(len(q)), q)


def worst(made, neighbours, most=10, units=3):
    """(the largest move of a score, the largest move apart of two, the largest |log ratio| of a candidate)."""
    world = {f: laws(made, f) for n in range(units + 1) for f in combinations_with_replacement(range(1, most), n)}
    found = [(0, 0, 0.0)]
    for f, (q, p) in world.items():
        for i, one in enumerate(f):
            others = f[:i] + f[i + 1 :]
            changed = [()] if neighbours is ADD_REMOVE else [(n,) for n in range(one + 1, most)]
            for new in changed:
                r, s = world[tuple(sorted((*others, *new)))]
                found.append((abs(q - r).max(), np.ptp(q - r), abs(np.log(p / s)).max()))
    return tuple(max(each) for each in zip(*found, strict=True))


@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE], ids=str)
@pytest.mark.parametrize("later", [nz.Pure(1), nz.Pure(2), nz.Pure(50)], ids=["target 2", "target 1", "target 0"])
def test_no_unit_moves_the_choice_by_more_than_is_stated(neighbours, later):
    made = offer(opened(table([1])), nz.Pure("1/2"), neighbours, most=8, later=later)
    assert made.procedure.target == round(2 / later.epsilon)
    score, apart, loss = worst(made, neighbours)
    assert score <= made.procedure.sensitivity.linf == 1
    assert apart <= 2
    assert loss <= 0.5 * (1 + 1e-12)
    assert made.guarantee == nz.Pure("1/2", neighbours=neighbours)


@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE], ids=str)
def test_half_the_scale_is_noticed(neighbours):
    """Scores on both sides of the target move apart by 2: the bound is nearly attained."""
    made = offer(opened(table([1])), nz.Pure("1/2"), neighbours, most=8, later=nz.Pure(2))
    assert worst(made, neighbours)[1] == 2
    m = made.procedure.mechanism
    twin = Exponential(m.scale / 2, candidates=m.candidates, measure=m.measure)
    weaker = replace(made, procedure=replace(made.procedure, mechanism=twin))
    assert worst(weaker, neighbours)[2] > 0.5


@pytest.mark.parametrize("spend", [nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP("1/8")], ids=repr)
@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE], ids=str)
def test_an_offer_stays_within_the_promise_and_wastes_little(spend, neighbours):
    made = offer(opened(table([1])), spend, neighbours)
    assert made.guarantee <= spend
    assert made.guarantee.neighbours is neighbours
    assert not made.guarantee <= type(spend)(*(Fraction(9, 10) * part for part in parts(spend)))


def parts(spend):
    return (
        [spend.rho]
        if isinstance(spend, nz.ZCDP)
        else [spend.epsilon, *([spend.delta] if isinstance(spend, nz.Approx) else [])]
    )


# How good the choice is


def zipf(tail, n=20_000, cut=5_000):
    sizes = np.arange(1, cut + 1)
    chances = sizes ** -(tail + 1.0)
    return np.random.default_rng(5).choice(sizes, n, p=chances / chances.sum())


LAWS = {
    "geometric with mean 5": (np.random.default_rng(5).geometric(0.2, 20_000), (1.1, 0.17)),
    "log-normal": (np.ceil(np.random.default_rng(5).lognormal(1, 1, 20_000)).astype(int), (2.8, 0.35)),
    "Zipf 2": (zipf(2), (3.6, 0.85)),
    "Zipf 1.1": (zipf(1.1), (34, 12.2)),
}


def error(made, f, eps, measure):
    """Mean |error| of a count that spends 0.9 eps under the chosen limit, in percent of the rows."""
    mechanism = Exponential(made.procedure.mechanism.scale, candidates=len(made.procedure.limits), measure=measure)
    limits = np.array(made.procedure.limits)
    units = np.bincount(np.searchsorted(limits, f), minlength=len(limits) + 1)
    chances = mechanism.pmf(np.arange(len(limits)), scores(units, made.procedure.target))
    lost, scale = np.array([np.maximum(f - limit, 0).sum() for limit in limits]), limits / (0.9 * eps)
    return 100 * float(chances @ (lost + scale * np.exp(-lost / scale))) / f.sum()


@pytest.mark.parametrize(("f", "known"), LAWS.values(), ids=LAWS)
def test_the_limit_is_about_as_good_as_is_known_of_it(f, known):
    """Within a factor of 2 of the errors known for this choice, at epsilon 0.1 and 1, a tenth of which buys the limit.

    Where no unit has very many rows the prior 1/t makes it good: without it the error is some ten times as large.
    """
    data = opened(table([1]))
    for eps, percent in zip(("0.1", "1"), known, strict=True):
        made = offer(data, nz.Pure(Fraction(eps) / 10))
        found, flat = (error(made, f, float(eps), m) for m in (made.procedure.mechanism.measure, None))
        assert percent / 2 <= found <= 2 * percent
        if f.max() < 1_000:
            assert flat > 4 * found


def test_the_owners_guide_says_how_good_it_is():
    data, five = opened(table([1])), np.random.default_rng(1).geometric(0.2, 20_000)
    few = np.repeat([1, 500], [19_800, 200])
    for eps, percent in (("1", 0.2), ("0.1", 1.6)):
        made = offer(data, nz.Pure(Fraction(eps) / 10))
        assert round(error(made, five, float(eps), made.procedure.mechanism.measure), 1) == percent
        best = 512 / (0.9 * float(eps)) / few.sum() * 100  # a limit of 512 leaves nothing out
        assert error(made, few, float(eps), made.procedure.mechanism.measure) > 5 * best
    units, made = np.bincount(np.searchsorted(made.procedure.limits, five), minlength=15), offer(data, nz.Pure("1/10"))
    chances = made.procedure.mechanism.pmf(np.arange(14), scores(units, made.procedure.target))
    assert chances[:5].sum() < 1e-9  # below 32
    assert chances[5:8].sum() > 0.5


# Buying

FOURS = [4] * 300 + [8, 8]
"""Two units have more than 4 rows, which is the target at epsilon 1; another limit is chosen once in 1e12 times."""


def test_questions_wait_for_the_limit_and_use_it():
    data = opened(table(FOURS))
    with pytest.raises(
        InputError, match=r"buy the limit once, with rows\(table, spend=\.\.\.\) or `noisette buy rows`"
    ):
        data.sql(COUNT, spend=1)
    assert data.budget.spent.epsilon == 0
    assert data.rows("visits", spend=30, for_spend=1) == 4
    assert data.schema["visits"].limits.rows == 4
    assert data.explain(COUNT, spend=1).error == opened(table([1]), rows=4).explain(COUNT, spend=1).error
    data.sql(COUNT, spend=1)
    assert data.budget.spent.epsilon == 31
    with pytest.raises(InputError, match=r"bought already, for ε = 30 \(for_spend = Pure\('1'\)\)"):
        data.rows(spend=30)


def test_the_limit_is_the_one_that_the_mechanism_chose_by_the_scores():
    data, seen = opened(table([1, 1, 3, 9])), []
    whole = offer(data, most=8, later=ONE)
    made = replace(whole, procedure=replace(whole.procedure, mechanism=lambda q, rng: seen.append(q.tolist()) or 2))
    assert made.draw(data._source, data.schema, bytes(16)).to_pydict() == {"rows": [4]}
    assert seen == [
        [0, 0, -1, -1]
    ]  # two units have more than 1 and than 2 rows, one more than 4 and than 8; two should


def test_units_themselves_need_no_limit():
    data = opened(table([4] * 30))
    per = "SELECT AVG(LEAST(k, 9)) AS a FROM (SELECT who, COUNT(*) AS k FROM visits GROUP BY who) AS per"
    assert len(data.sql(per, spend=1)) == 1


def test_a_bought_limit_makes_the_same_question_as_a_declared_one():
    def text(data):
        return Queries((parse(COUNT, data.schema),)).offer(data.schema, ONE, ADD_REMOVE, 0.95).text

    bought = opened(table(FOURS))
    bought.rows(spend=30, for_spend=1)
    assert text(bought) == text(opened(table([1]), rows=4)) != text(opened(table([1]), rows=8))


@pytest.mark.slow
def test_the_same_purchase_is_free_in_every_process_and_gives_the_same(tmp_path):
    pyarrow.parquet.write_table(table(np.random.default_rng(5).geometric(0.2, 50)), tmp_path / "visits.parquet")
    found = []
    for spend in ("1/10", nz.Pure(Fraction(2, 20)), 0.1, "0.10"):
        data = opened(str(tmp_path / "visits.parquet"), ledger=tmp_path / "ledger.db")
        found.append(data.rows(spend=spend))
        assert len(data.budget.entries) == 1
    assert len(set(found)) == 1
    for terms in ({"most": 4096}, {"for_spend": "0.1"}):
        other = opened(str(tmp_path / "visits.parquet"), ledger=tmp_path / "ledger.db")
        other.rows(spend="1/10", again=True, **terms)
    assert len(other.budget.entries) == 3


@pytest.mark.parametrize("spend", [nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP("1/8")], ids=repr)
def test_a_purchase_is_paid_before_anything_is_read_and_its_record_can_be_checked(spend):
    data = opened(table([3, 1, 2]), budget=nz.Approx(10, "1e-5"))
    charges, read = [], data._source.aggregate
    data._source.aggregate = lambda *asked: (charges.append(len(data.budget.entries)), read(*asked))[1]
    answer = data.ask(Rows(data.schema["visits"]), spend=spend)
    assert charges == [1]
    assert nz.answers.check(answer.to_json()) <= spend
    [part] = json.loads(answer.to_json())["mechanisms"]
    assert (part["mechanism"], part["sensitivity"]["linf"]) == ("Exponential", "1")
    halved = answer.to_json().replace(f'"scale": "{part["parameters"]["scale"]}"', '"scale": "1/100"')
    with pytest.raises(nz.errors.PrivacyError):
        nz.answers.check(halved)


def test_what_is_refused_how_and_at_what_cost_is_the_same_without_the_victim():
    said = []
    for f in ([10**5, 1, 2, 3], [1, 2, 3]):
        data, words = opened(table(f), budget=1), []
        for buy in (
            lambda data=data: data.rows(spend=0),
            lambda data=data: data.rows("nothing", spend=1),
            lambda data=data: data.rows(spend=2),
            lambda data=data: data.rows(spend=1, most=1),
        ):
            with pytest.raises(NoisetteError) as fault:
                buy()
            words.append(str(fault.value))
        made = offer(data)
        said.append((words, made.text, repr(made.guarantee), made.parts, made.expected(), data.budget.spent.epsilon))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("buy", "why"),
    [
        (lambda data: data.rows(spend=0), "more than 0"),
        (lambda data: data.rows(spend=1, for_spend=0), "more than 0"),
        (lambda data: data.rows("other", spend=1), "one of visits"),
        (lambda data: data.rows(spend=1, most=1), "most must be a whole number, at least 2"),
        (lambda data: data.rows(spend=1, most=2**41), r"at most 2\^40"),
    ],
)
def test_refusals_cost_nothing(buy, why):
    data = opened(table([1]))
    with pytest.raises(InputError, match=why):
        buy(data)
    assert data.budget.spent.epsilon == 0


def test_limits_that_are_declared_or_missing_are_not_for_sale():
    for rows in (4, None):
        with pytest.raises(InputError, match="not for sale"):
            opened(table([1]), rows=rows).rows(spend=1)
    with pytest.raises(BudgetError):
        opened(table([1]), budget=1).rows(spend=2)


@pytest.mark.parametrize("spend", ["1e-9", 1000])
def test_every_price_has_a_target(spend):
    data = opened(table([1, 2, 3]), budget=1000)
    with pytest.raises(InputError, match="Spend at least"):
        data.rows(spend="1e-30")
    assert 1 <= data.rows(spend=spend) <= 8192


# The policy


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"rows": "private"}, "limits nobody"),
        ({"public": True, "rows": "private"}, "protects nobody: leave rows out"),
        ({"unit": "who", "rows": "private", "rows_per_group": 2}, 'cannot stand beside rows = "private"'),
        ({"unit": "who", "rows": "privat"}, "whole number"),
        ({"unit": "who", "groups": "private"}, "groups in the policy must be a whole number"),
    ],
)
def test_places_where_private_means_nothing(rules, why):
    with pytest.raises(InputError, match=why):
        nz.open({"visits": table([1])}, budget=1, policy={"tables": {"visits": rules}})


def test_a_policy_says_private_and_comes_before_what_open_says(tmp_path):
    data = opened(table([1]))
    assert 'rows = "private"  # of one unit, in all' in data.policy.to_toml()
    (tmp_path / "policy.toml").write_text(data.policy.to_toml())
    assert nz.open({"visits": table([1])}, policy=tmp_path / "policy.toml").policy == data.policy
    again = nz.open({"visits": table([1])}, unit="who", rows=3, policy=data.policy)
    assert again.schema["visits"].private_rows
    assert again.schema["visits"].limits.rows is None


def test_other_limits_stand_beside_it():
    rules = {"unit": "who", "rows": "private", "groups": 2, "columns": {"ward": {"keys": ["a", "b", "c"]}}}
    rows = pyarrow.table({"who": [1, 2, *range(400)], "ward": ["a"] * 402})  # two of them have two rows
    data = nz.open({"visits": rows}, budget=100, policy={"tables": {"visits": rules}})
    by_ward = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    with pytest.raises(InputError, match="noisette buy rows"):
        data.sql(by_ward, spend=1)
    assert data.rows(spend=30, for_spend=1) == 1
    assert math.isfinite(data.explain(by_ward, spend=1).error)
