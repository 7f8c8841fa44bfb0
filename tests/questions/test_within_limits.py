"""Every question about a table whose policy leaves the limit on rows to questions: found by its file, as its examples.

Its plan at each limit is the one that it has where that limit is declared. Of one question the joint law of the limit,
of the units above it and of the answer is enumerated on all small tables; broken twins must exceed the promise.
"""

import itertools
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pyarrow
import pytest
from tests.contracts.test_questions import DEAR, PUBLIC, TABLES, VALUES, Untouched
from tests.questions.chosen import ADD_REMOVE, BOTH, REPLACE, opened, table

import noisette as nz
from noisette.answers.check import check
from noisette.curator.asking import question_of
from noisette.curator.demo import POLICY
from noisette.errors import InputError, LimitError, PrivacyError
from noisette.query.schema import with_limits
from noisette.questions.parts.chosen_limits import Adaptive, Terms, adaptive, chosen_for
from noisette.questions.parts.limit_choice import REST, more_than, scores

DECLARED = POLICY["tables"]["visits"]
RULES = {k: v for k, v in DECLARED.items() if k not in ("rows", "groups", "rows_per_group")} | {
    "rows": "each question",
    "most_rows": 4,
}
SPEND, WITHOUT = nz.Approx(2, "1e-7"), {"apply", "distinct"}
"""Questions that need no limit on the rows of one table: they use a unit's rows as they are."""

CHOOSING = [name for name in VALUES if name.split()[0] not in {*WITHOUT, "best", "left_out"}] + ["left_out 2"]
LONG = {*DEAR, "workload 1", "cube 0", "cube 1", "cube 2"}
DRAWN = [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in CHOOSING]


@pytest.fixture(scope="module")
def hospital():
    policy = {"tables": {"visits": RULES, "wards": PUBLIC}}
    return nz.open(TABLES, budget=nz.Approx(10_000, "1e-3"), policy=policy)


def offered(data, question, spend=SPEND, neighbours=ADD_REMOVE):
    return question_of(question, data.schema).offer(data.schema, spend, neighbours, 0.95)


# Every question


@pytest.mark.slow_after(12)
@pytest.mark.parametrize("name", CHOOSING)
def test_a_plan_is_the_one_of_a_declared_limit(hospital, name):
    """For each candidate, with the share of the answer; and all of the promise is used."""
    found, rest = offered(hospital, VALUES[name]), SPEND.share(REST, delta=1)
    assert isinstance(found.procedure, Adaptive)
    for places, plan in found.procedure.plans.items():
        limits = {name: vars(one) for name, one in found.procedure.limits(places).items()}
        given = {name: {k: v for k, v in one.items() if v} for name, one in limits.items()}
        declared = question_of(VALUES[name], hospital.schema).offer(
            with_limits(hospital.schema, given), rest, ADD_REMOVE, 0.95
        )
        assert (plan.text, plan.parts, repr(plan.guarantee)) == (
            declared.text,
            declared.parts,
            repr(declared.guarantee),
        )
        assert plan.guarantee <= rest
    assert found.guarantee <= SPEND
    assert not found.guarantee <= SPEND.share("9/10", delta=1)


@pytest.mark.slow_after(12)
@pytest.mark.parametrize("name", DRAWN)
def test_it_is_answered_kept_and_can_be_checked(hospital, name):
    answer = hospital.ask(VALUES[name], spend=SPEND)
    assert check(answer.to_json()) <= answer.guarantee
    assert hospital.ask(VALUES[name], spend=SPEND).to_json() == answer.to_json()
    assert sum("as this question chose; about " in one for one in answer.caveats) in (1, 2)
    assert not any("the owner can raise the limits" in one.lower() for one in answer.caveats)
    explained = hospital.explain(VALUES[name], spend=SPEND)
    assert "at a limit of 4 " in str(explained)
    assert "The question chooses its limit with 30% of the spend" in " ".join(str(explained).split())
    assert {c.name for c in explained.columns} <= set(answer.to_arrow().column_names)
    assert all(next(iter(c.by_limit)).startswith("1 ") for c in explained.columns)


@pytest.mark.parametrize("name", CHOOSING[::6])
def test_an_offer_reads_nothing_and_draws_by_the_limit_that_was_chosen(hospital, name):
    found = offered(hospital, VALUES[name])
    with pytest.raises(AssertionError, match="the data was touched"):
        found.draw(Untouched(), hospital.schema, bytes(16))
    noting = Noting(hospital._source)
    drawn = found.draw(noting, hospital.schema, bytes(16))
    [choice] = found.procedure.choices
    limit = choice.limits[drawn.chosen[0].place]
    first, *others = noting.asked
    assert first == (None, None)  # how many rows each unit has
    assert others
    assert set(others) == {(limit, limit)}


class Noting:
    """A source that notes the limits of each request, and of the table."""

    def __init__(self, source):
        self.source, self.asked = source, []

    def __getattr__(self, name):
        return getattr(self.source, name)

    def aggregate(self, request, schema, secret):
        rows = None if request.limits is None else request.limits.rows
        self.asked.append((rows, schema["visits"].limits.rows))
        return self.source.aggregate(request, schema, secret)

    def release(self, request, draw, schema, secret, rng):
        return draw(self.aggregate(request, schema, secret), rng)


def test_what_goes_on_answering_does_so_within_the_limit():
    data = opened(table([4] * 300), most_rows=8)
    answer = data.ask(nz.Histogram("y"), spend=200)
    assert answer.value.count(0, 8).value == pytest.approx(1200, abs=30)  # e^-40 at a scale below 1
    assert data.ask(nz.Histogram("y"), spend=200).value.count(1, 1).value == answer.value.count(1, 1).value


def test_the_best_of_several_lets_each_choose(hospital):
    best = nz.Best([nz.OrderStatistic("age"), "SELECT SUM(age) AS value FROM visits"], by="value", runs=2)
    found = offered(hospital, best, nz.Pure(2))
    assert found.guarantee <= nz.Pure(2)
    assert len(hospital.ask(best, spend=2)) == 1


@pytest.mark.parametrize("house", [{}, {"minimum_frequency": 5}], ids=str)
def test_bounds_are_bought_within_a_limit_that_the_purchase_chooses(house):
    """With 300 people and e = 65 for the bounds, both ends are in the cells of the only value."""
    data = opened(table([2] * 300), columns={"y": {"bounds": "private"}}, most_rows=4, house=house)
    low, high = data.bounds("y", spend=100)
    assert low <= 1 <= high <= 2


# What is refused, before anything is spent


REFUSED = [
    (nz.Apply(len, blocks=2, bounds=(0, 1), of="SELECT a.x FROM visits a JOIN visits b ON a.who = b.who"), "joined"),
    (nz.Distinct("x", of="SELECT a.x FROM visits a JOIN visits b ON a.who = b.who"), "joined"),
    (nz.Histogram("x", of="SELECT a.x FROM visits a JOIN bills b ON a.who = b.who"), "in the policy how many rows"),
    (nz.Mode("nothing", of="visits"), "no column nothing"),
]


@pytest.mark.parametrize(("question", "sentence"), REFUSED)
def test_what_cannot_choose_is_refused_before_anything_is_spent(question, sentence):
    rules = {"visits": {"unit": "who", "rows": "each question"}, "bills": {"unit": "who"}}
    data = nz.open({"visits": table([2, 3]), "bills": table([1])}, budget=10, policy={"tables": rules})
    for ask in (data.ask, data.explain):
        with pytest.raises(InputError, match=sentence):
            ask(question, spend=1)
    assert data.budget.spent.epsilon == 0


NUMBER = pytest.raises(LimitError, match=r"rows = 10.*streams need a number")


def test_a_stream_needs_a_number():
    data = opened()
    with NUMBER:
        data.stream(nz.Oracle(["g"], updates=1), spend=1)
    assert data.budget.spent.epsilon == 0
    watching = data.stream(nz.Above(10, positives=1), spend=1)
    with NUMBER:
        watching.ask("SELECT COUNT(*) AS n FROM visits")


def test_other_questions_keep_no_minimum_frequency_here_either():
    data = opened(house={"minimum_frequency": 5}, most_rows=4)
    with pytest.raises(InputError, match="which only SQL and a table's methods keep"):
        data.ask(nz.Histogram("y"), spend=1)
    assert data.budget.spent.epsilon == 0


# The joint law, of a mode


SIZES = [(a, b) for a, b in itertools.product(range(4), repeat=2) if 0 < a + b < 4]


def worlds(units=2):
    """All tables of at most two units, each with some rows of a and of b."""
    return [w for n in range(units + 1) for w in itertools.combinations_with_replacement(SIZES, n)]


@cache
def small(world):
    """The table of a world: a unit has the same name in neighbours, so that the same of its rows are retained."""
    names = [9 * SIZES.index(one) + world[:i].count(one) for i, one in enumerate(world)]
    who = [name for name, (a, b) in zip(names, world, strict=True) for _ in range(a + b)]
    g = [key for a, b in world for key in "a" * a + "b" * b]
    rows = pyarrow.table({"who": pyarrow.array(who, pyarrow.int64()), "g": pyarrow.array(g, pyarrow.string())})
    columns = {"g": {"keys": ["a", "b"], "nullable": False}}
    rules = {"unit": "who", "rows": "each question", "most_rows": 2, "columns": columns}
    return nz.open({"visits": rows}, budget=100, policy={"tables": {"visits": rules}})


def laws(found, world):
    """log P(limit), N in scales, and log P(mode) of both candidates, at each limit: from the engine's own numbers."""
    data, [choice] = small(world), found.procedure.choices
    above = more_than(data._source.aggregate(choice.prepared.request, data.schema, bytes(16)).measures[0])
    chances = np.log(choice.chooser.pmf(np.arange(len(choice.limits)), scores(above)))
    modes = []
    for places, plan in found.procedure.plans.items():
        exact = plan.procedure.scores.read(data._source, found.procedure.settled(data.schema, places), bytes(16))
        modes.append(np.log(np.asarray(plan.procedure.mechanism.pmf(np.arange(2), exact), float)))
    return chances[:, None], (above / float(choice.counter.scale))[:, None], np.array(modes)


def neighbouring(world, relation):
    for i in range(len(world)):
        rest = world[:i] + world[i + 1 :]
        yield rest
        yield from [] if relation is ADD_REMOVE else [tuple(sorted((*rest, one))) for one in SIZES]


def worst(found, relation):
    """The largest loss of any outcome (limit, units above, mode)."""
    law = {world: laws(found, world) for world in worlds()}
    pairs = [(law[w], law[v]) for w in law for v in neighbouring(w, relation)]
    return max(sum(np.abs(a - b) for a, b in zip(*pair, strict=True)).max() for pair in pairs)


def modes(neighbours):
    return chosen_for(nz.Mode("g"), small(()).schema, Terms(nz.Pure(1), neighbours, 0.95))


@pytest.mark.slow
@BOTH
def test_limit_number_above_and_mode_together_keep_the_promise(neighbours):
    """The twins: the noise of the least limit on the rows of the larger one, and a plan for the whole spend."""
    found = modes(neighbours)
    assert 0.6 < worst(found, neighbours) <= 1 + 1e-9
    plans, settled = found.procedure.plans, partial(found.procedure.settled, small(()).schema)
    least, larger = (plans[place,] for place in range(2))
    loose = replace(larger, procedure=replace(larger.procedure, mechanism=least.procedure.mechanism))
    whole = {at: nz.Mode("g").offer(settled(at), nz.Pure(1), neighbours, 0.95) for at in plans}
    for twin in ({**plans, (1,): loose}, whole):
        assert worst(replace(found, procedure=replace(found.procedure, plans=twin)), neighbours) > 1.01


def test_a_plan_that_takes_more_than_its_share_is_noticed():
    found = modes(REPLACE)
    dear = {place: replace(plan, guarantee=nz.Pure("7/10")) for place, plan in found.procedure.plans.items()}
    with pytest.raises(PrivacyError, match="costs more than its share"):
        adaptive(replace(found.procedure, plans={}), dear, Terms(nz.Pure(1), REPLACE, 0.95))
