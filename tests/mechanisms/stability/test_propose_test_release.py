"""Propose-test-release: a median of unbounded local sensitivity, over all tables of small worlds and all neighbours."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.mechanisms.stability.test_stability import (
    ADD_REMOVE,
    REPLACE,
    delta_between,
    edges,
    to_reach,
    world,
    worst_delta,
)

from noisette.errors import InputError
from noisette.laws import DiscreteLaplace
from noisette.mechanisms.partitions.keep import Keep
from noisette.mechanisms.stability.propose_test_release import ProposeTestRelease
from noisette.mechanisms.stability.stability import check_distance
from noisette.privacy import Approx, sensitivity

BOUND = 2
WORLDS = {
    ADD_REMOVE: world([0, 1, 2, 9], range(7), ADD_REMOVE),
    REPLACE: world([0, 1, 2, 9], [7], REPLACE),
}


def median(t):
    return t[(len(t) - 1) // 2] if t else 0


def local(near, f):
    return {t: max(abs(f(t) - f(u)) for u in near[t]) for t in near}


def distances(near, f=median, bound=BOUND):
    """Steps to the nearest table whose local sensitivity exceeds the bound."""
    sizes = local(near, f)
    return to_reach(near, [t for t in near if sizes[t] > bound])


def law_by(m, distance, f=median):
    return lambda t: m.outcomes((f(t), distance(t)))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize(("epsilon", "delta", "scale"), [(1, "1/20", 2), (2, "1e-3", 1), ("1/2", "1/10", 4)])
def test_every_neighbour_keeps_the_promise_and_some_attain_delta(relation, epsilon, delta, scale):
    near = WORLDS[relation]
    m, d = ProposeTestRelease(epsilon, delta, scale=scale, bound=BOUND), distances(near)
    assert 2 <= max(d.values()) < math.inf
    promise = m.guarantee(1)
    assert promise.epsilon == m.epsilon + Fraction(BOUND, scale)
    assert promise.delta == m.delta
    found = worst_delta(law_by(m, d.get), edges(near), float(promise.epsilon))
    assert found <= float(m.delta) * (1 + 1e-9)
    assert found > 0.5 * float(m.delta)  # of answers 9 apart, noise hides a part
    assert check_distance(d.get, edges(near), answer=median, bound=BOUND) == len(edges(near))


@pytest.mark.parametrize("lower", [lambda d: d // 2, lambda d: min(d, 1), lambda d: max(0, d - 1), lambda d: 0])
def test_lower_bounds_of_the_distance_will_do(lower):
    near = WORLDS[ADD_REMOVE]
    m, d = ProposeTestRelease(1, "1/20", scale=2, bound=BOUND), distances(near)
    assert worst_delta(law_by(m, lambda t: lower(d[t])), edges(near), 2.0) <= 0.05 * (1 + 1e-9)


def geometric(centre, scale):
    z = np.arange(-250, 251)
    return dict(zip((z + centre).tolist(), DiscreteLaplace(scale).pmf(z).tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_broken_twins_are_convicted(relation):
    near, m = WORLDS[relation], ProposeTestRelease(1, "1e-2", scale=1, bound=BOUND)
    d, sizes, total = distances(near), local(near, median), 3.0
    honest = worst_delta(law_by(m, d.get), edges(near), total)
    assert honest <= 0.01 * (1 + 1e-9)
    assert worst_delta(law_by(m, lambda t: d[t] + 1), edges(near), total) > 0.02  # a distance off by one
    assert worst_delta(lambda t: geometric(median(t), BOUND / 2), edges(near), total) > 0.9  # no test at all
    by_local = {t: geometric(median(t), max(sizes[t], Fraction(1, 8)) / 3) for t in near}
    assert worst_delta(by_local.get, edges(near), total) > 0.1  # noise scaled to the local sensitivity
    assert worst_delta(law_by(m, d.get), edges(near), 1.0) > 0.05  # erratum E4: the answer is paid for as well
    jumps = {t: 2 * d[t] for t in near}
    assert worst_delta(law_by(m, jumps.get), edges(near), total) > 0.012  # a distance that moves by two


# Why the noise on the answer is pure


def with_failure(answer, epsilon, delta):
    """What dominates every (epsilon, delta)-DP answer: randomized response that names the table with chance delta."""
    truth = 1 / (1 + math.exp(-epsilon))
    told = {0: truth, 1: 1 - truth} if answer == 0 else {0: 1 - truth, 1: truth}
    return {y: (1 - delta) * p for y, p in told.items()} | {("named", answer): delta}


def after_test(kept, law):
    return {None: 1 - kept} | {y: kept * p for y, p in law.items()}


def delta_of_both(test, delta):
    """The largest delta at 2 of the best test and an answer that is (1, delta)-DP, over all neighbours."""
    return max(
        delta_between(
            after_test(float(test.chance(n + a)), with_failure(0, 1, delta)),
            after_test(float(test.chance(n + 1 - a)), with_failure(1, 1, delta)),
            2.0,
        )
        for n in range(test.certain)
        for a in (0, 1)
    )


def test_an_answer_with_a_delta_of_its_own_would_add_it_to_that_of_the_best_test():
    assert delta_of_both(Keep(1, "1/50"), 0.0) <= 0.02
    assert 0.037 < delta_of_both(Keep(1, "1/50"), 0.03) <= 0.02 + 0.98 * 0.03  # not the larger of both, 0.03
    even = Keep(1, "0.2119416")  # 1/(2 + e): the curve ends with 1 - delta, 1
    assert delta_of_both(even, 0.03) == pytest.approx(0.2119416 + (1 - 0.2119416) * 0.03, abs=1e-6)


def test_a_noisy_distance_costs_the_larger_delta():
    """Erratum E4: of neighbours within the bound the noisy distance costs no delta, of others nothing but its own."""
    law, delta, threshold = DiscreteLaplace(1), 0.03, 4
    test = float(law.upper(threshold))
    kept = [1 - float(law.cdf(threshold - d - 1)) for d in range(12)]
    inside = max(
        delta_between(
            after_test(kept[a], with_failure(0, 1, delta)), after_test(kept[b], with_failure(1, 1, delta)), 2.0
        )
        for a in range(12)
        for b in range(max(0, a - 1), min(12, a + 2))
    )
    assert test < inside <= delta
    assert inside > 0.9 * delta


# Answers on a grid, and what to expect


def test_reals_on_a_grid_move_apart_by_one_grid_more():
    m = ProposeTestRelease(1, "1e-2", scale=1, bound="1/2", grid="1/4")
    assert m.guarantee(1).epsilon == 1 + Fraction(3, 4)
    hair = 1e-9
    for x, y in (((0.125 - hair), (0.625 + 0.0)), ((-0.125 + hair), 0.375)):
        for a, b in ((3, 4), (0, 1), (7, 7)):
            assert abs(x - y) <= 0.5 + 2 * hair
            assert delta_between(m.outcomes((x, a)), m.outcomes((y, b)), 1.75) <= 0.01 * (1 + 1e-9)
    assert m((0.3, 99)) * 4 % 1 == 0
    assert type(m((0.3, 99))) is float
    fine = ProposeTestRelease.calibrated(Approx(1, "1e-6"), bound="0.1", grid=None)
    assert fine.guarantee(1) <= Approx(1, "1e-6")
    assert fine.grid < Fraction(1, 2**20)


def test_epsilon_is_split_as_asked():
    m = ProposeTestRelease.calibrated(Approx(1, "1e-6"), bound=4, test="1/5")
    assert (m.epsilon, m.scale) == (Fraction(1, 5), 5)
    two = ProposeTestRelease.calibrated(Approx(1, "1e-6"), 2, bound=4)
    assert two.guarantee(2) <= Approx(1, "1e-6")
    assert two.guarantee(sensitivity.count(neighbours=REPLACE)).neighbours is REPLACE


def test_a_group_costs_what_is_stated():
    near, d = WORLDS[ADD_REMOVE], distances(WORLDS[ADD_REMOVE])
    m = ProposeTestRelease(1, "1e-2", scale=2, bound=BOUND)
    pairs = list({(a, c) for a in near for b in near[a] for c in near[b] if a < c})[::9]
    promise = m.guarantee(2)
    assert worst_delta(law_by(m, d.get), pairs, float(promise.epsilon)) <= float(promise.delta)


@pytest.mark.slow
def test_what_composes_is_the_test_and_the_noise():
    m = ProposeTestRelease(1, "1e-2", scale=2, bound=BOUND)
    one = m.guarantee(1)
    for e in (0.5, 1, 1.5, 2):
        worst = worst_delta(law_by(m, distances(WORLDS[ADD_REMOVE]).get), edges(WORLDS[ADD_REMOVE]), e)
        assert worst <= one.delta_at(e) * (1 + 1e-9)
    assert (one * 50).epsilon_at("1/2") < 50 * 2


def test_answers_and_refusals():
    m = ProposeTestRelease(1, "1e-6", scale=1, bound=1)
    assert abs(m((10**6, 99)) - 10**6) < 60
    assert type(m((5, 99))) is int
    quiet = ProposeTestRelease(1, "1e-12", scale=1, bound=1)
    assert {quiet((5, 0)) for _ in range(50)} == {None}  # but for a chance of 5e-11
    assert m.error(None, (5, 0)) == 0
    assert m.error(8, (5, 99)) == 3
    assert m.interval(0.95) == 3


@pytest.mark.parametrize(
    "options",
    [{"bound": 0}, {"bound": -1}, {"bound": math.nan}, {"scale": 0}, {"grid": 0}, {"grid": "1/0"}, {"delta": 0}],
    ids=repr,
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError) as error:
        ProposeTestRelease(**{"epsilon": 1, "delta": "1e-6", "scale": 1, "bound": 1, **options})
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("test", [0, 1, -1, "3/2", math.nan])
def test_bad_splits_are_refused(test):
    with pytest.raises(InputError):
        ProposeTestRelease.calibrated(Approx(1, "1e-6"), bound=1, test=test)


@pytest.mark.parametrize(
    "bad", [(2.5, 3), ([1, 2], 3), ("5", 3), (True, 3), (None, 3), (5, -1), (5, 2.0), (math.inf, 3)]
)
def test_bad_answers_are_refused(bad):
    for grid in (1, "1/4"):
        if bad == (2.5, 3) and grid != 1:
            continue
        with pytest.raises(InputError) as error:
            ProposeTestRelease(1, "1e-6", scale=1, bound=1, grid=grid)(bad)
        assert str(error.value).endswith(".")
