"""Distinct counts by credits: exact on all tiny tables, moved by one person as stated, private as a whole."""

import math
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from tests.goodness import most as at_most
from tests.timing import times_as_long

import noisette as nz
from noisette.errors import InputError
from noisette.releases.sketches.distinct import STEPS, DistinctCount, credited, powers

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
PEOPLE, VALUES, LIMITS = 3, 3, (1, 2, 3)
HELD = range(2**VALUES)  # what one person may hold, as bits
TABLES = list(product(HELD, repeat=PEOPLE))


def by_hand(table, limit):
    """The most values that can be credited: all subsets of at most `limit` of each person's values are tried."""
    choices = [
        [
            sum(some)
            for n in range(limit + 1)
            for some in combinations([1 << v for v in range(VALUES) if held >> v & 1], n)
        ]
        for held in table
    ]
    return max(np.bitwise_or.reduce(chosen).item().bit_count() for chosen in product(*choices))


@cache
def exact():
    """f_l of every table, by hand."""
    return {table: tuple(by_hand(table, limit) for limit in LIMITS) for table in TABLES}


def neighbours(relation):
    """All pairs of tables that differ in the first person, who is there or not, or holds other values."""
    for table in TABLES:
        for other in [0] if relation is ADD_REMOVE else HELD:
            yield table, (other, *table[1:])


def largest(f, relation):
    """The largest move of each number of f."""
    return np.abs([np.subtract(f[a], f[b]) for a, b in neighbours(relation)]).max(axis=0).tolist()


def pairs(table):
    found = [(p, v) for p, held in enumerate(table) for v in range(VALUES) if held >> v & 1]
    return tuple(np.array(found, int).reshape(-1, 2).T)


def test_credits_are_those_found_by_hand():
    assert all(tuple(credited(*pairs(table), LIMITS)) == f for table, f in exact().items())


def test_larger_tables_agree_with_a_flow_that_takes_no_shortcuts():
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    rng = np.random.default_rng(1)
    for people, values, n in [(20, 60, 150), (60, 40, 200), (7, 300, 300), (200, 150, 500), (30, 5, 90)]:
        who, what = rng.integers(0, people, n), rng.integers(0, values, n)
        for limit, found in zip(powers(16), credited(who, what, powers(16)), strict=True):
            graph = np.zeros((people + values + 2,) * 2, np.int32)
            graph[-2, :people], graph[people:-2, -1], graph[who, people + what] = limit, 1, 1
            assert found == maximum_flow(csr_matrix(graph), people + values, people + values + 1).flow_value


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
def test_one_person_moves_credits_by_the_limit_and_no_less(relation):
    assert largest(exact(), relation) == list(LIMITS)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
def test_numbers_that_move_further_are_noticed(relation):
    """All different values, without any limit; credits of one value too many; values without a common credit."""
    different = {table: (np.bitwise_or.reduce(table).item().bit_count(),) * 3 for table in TABLES}
    one_more = {table: (*f[1:], f[-1]) for table, f in exact().items()}
    summed = {table: tuple(2 * x for x in f) for table, f in exact().items()}
    assert [any(np.greater(largest(f, relation), LIMITS)) for f in (different, one_more, summed)] == [True] * 3


def releases(spend, relation):
    made = DistinctCount.calibrated(spend, most=3, neighbours=relation)
    assert made.limits == LIMITS
    return made


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
def test_one_person_moves_scores_by_one_step_of_the_choice(relation):
    made = releases(nz.Pure(1), relation)
    scores = {table: made.scores(f) for table, f in exact().items()}
    assert max(largest(scores, relation)) <= STEPS
    plain = {table: [STEPS * x for x in f] for table, f in exact().items()}  # not compared in pairs
    assert max(largest(plain, relation)) > STEPS


def law(made, f, far=60):
    """P(limit, number), by limits and numbers from -far to far."""
    chosen = made.chooser.pmf(np.arange(len(made.limits)), made.scores(f))
    at = np.arange(-far, far + 1)
    return np.array([p * noise.pmf(at, x) for p, noise, x in zip(chosen, made.noise, f, strict=True)])


def losses(made, relation, law=law):
    laws = {f: law(made, f) for f in set(exact().values())}
    seen = {(exact()[a], exact()[b]) for a, b in neighbours(relation)}
    return max(np.abs(np.log(laws[f] / laws[g])).max() for f, g in seen)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
def test_the_whole_release_keeps_its_promise_on_all_neighbours(relation):
    made = releases(nz.Pure(1), relation)
    assert made.guarantee() == nz.Pure(1, neighbours=relation)
    assert losses(made, relation) <= 1 + 1e-9


def test_releases_with_too_little_noise_are_noticed():
    made = releases(nz.Pure(1), ADD_REMOVE)
    halves = [DistinctCount(made.limits, made.chooser, tuple(made.noise[:1]) * 3, ADD_REMOVE)]  # the noise of limit 1
    halves.append(DistinctCount(made.limits, made.chooser, releases(nz.Pure(3), ADD_REMOVE).noise, ADD_REMOVE))

    def unpaired(made, f):
        chosen = made.chooser.pmf(np.arange(3), [20 * STEPS * x for x in f])
        return law(made, f) / law(made, f).sum(axis=1, keepdims=True) * chosen[:, None]

    assert all(losses(twin, ADD_REMOVE) > 1.2 for twin in halves)
    assert losses(made, ADD_REMOVE, unpaired) > 1.2


def test_what_is_drawn_follows_the_law():
    """2,000 draws; too many misses by chance with probability below 1e-11."""
    made, f, draws = DistinctCount.calibrated(nz.Pure(1), most=8), [20, 26, 30, 30], 2_000
    found = [made(f) for _ in range(draws)]
    chosen = made.chooser.pmf(np.arange(4), made.scores(f))
    for limit, p, x in zip(made.limits, chosen, f, strict=True):
        at = [noisy for l, noisy in found if l == limit]  # noqa: E741
        assert abs(len(at) - draws * p) <= 8 * math.sqrt(draws * p * (1 - p)) + 10
        missed = sum(noisy - made.half_width(limit, 0.9) > x for noisy in at)
        assert missed <= at_most(len(at), 0.05)


def test_few_values_for_everybody_choose_the_smallest_limit_and_many_a_larger_one():
    made = DistinctCount.calibrated(nz.Pure(1), most=64)
    flat = made.chooser.pmf(np.arange(7), made.scores([100] * 7))
    assert flat.argmax() == 0
    assert flat @ np.array(made.limits) < 3
    held = made.chooser.pmf(np.arange(7), made.scores([1000, 2000, 4000, 8000, 10000, 10000, 10000]))
    assert held.argmax() == 4


def test_one_limit_needs_no_choice():
    made = DistinctCount.calibrated(nz.Pure(1), most=1)
    assert (made.limits, made.chooser, made.noise[0].scale) == ((1,), None, 1)


def test_no_pairs_and_too_large_a_limit():
    assert credited([], [], [1, 2]) == [0, 0]
    with pytest.raises(InputError, match="most must be at most"):
        DistinctCount.calibrated(nz.Pure(1), most=2**21)


@pytest.mark.slow
def test_ten_times_as_many_pairs_take_ten_times_as_long():
    rng = np.random.default_rng(1)
    who, what = rng.integers(0, 100_000, 10**6), rng.zipf(1.3, 10**6) % 10**7
    assert credited(who, what, powers(64))[-1] > 10_000
    few = 10**5
    longer = times_as_long(
        lambda: credited(who, what, powers(64)), lambda: credited(who[:few], what[:few], powers(64)), rounds=3
    )
    assert longer < 50  # about 11; a comparison of all pairs takes a hundred
