"""Stable: every table of small worlds against every neighbour, for any function; nothing more could be released."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mechanisms.stability.test_stability import (
    ADD_REMOVE,
    REPLACE,
    delta_between,
    edges,
    to_alter,
    world,
    worst_delta,
)
from tests.tapes import Script

from noisette.mechanisms.partitions.keep import Keep, _table
from noisette.mechanisms.stability.stable import Stable
from noisette.privacy import Approx

WORLDS = {
    ADD_REMOVE: world([0, 1, 2], range(6), ADD_REMOVE),
    REPLACE: world([0, 1, 2, 3], [5], REPLACE),
}
FUNCTIONS = {
    "lower median": lambda t: t[(len(t) - 1) // 2] if t else 0,
    "largest": lambda t: max(t, default=0),
    "is there a 2": lambda t: 2 in t,
    "first of the most frequent": lambda t: min(range(4), key=lambda v: (-t.count(v), v)),
    "sum over four": lambda t: sum(t) // 4,
}


def law_by(m, value, changes, shift=0):
    return lambda t: m.outcomes((value(t), min(changes[t], 99) - 1 + shift))


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1/20"), (3, "1e-3"), ("1/4", "1/8")])
def test_any_function_keeps_the_promise_and_attains_delta(f, relation, epsilon, delta):
    m, near = Stable(epsilon, delta), WORLDS[relation]
    changes = to_alter(near, f)
    found = worst_delta(law_by(m, f, changes), edges(near), float(m.epsilon))
    assert found == pytest.approx(float(m.delta), rel=1e-9)
    for shift in (1, 2):  # a distance off by one
        assert worst_delta(law_by(m, f, changes, shift), edges(near), float(m.epsilon)) > 1.2 * float(m.delta)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9), st.integers(2, 5), st.sampled_from([ADD_REMOVE, REPLACE]))
def test_random_functions_keep_the_promise(seed, kinds, relation):
    near, coins = WORLDS[relation], random.Random(seed)
    centre = coins.choice(sorted(near))
    values = {t: coins.randrange(kinds) if sum(t) % 3 == sum(centre) % 3 else 0 for t in near}
    m = Stable(1, "1/20")
    assert worst_delta(law_by(m, values.get, to_alter(near, values.get)), edges(near), 1.0) <= 0.05 * (1 + 1e-9)


def test_changes_under_replace_must_not_be_counted_in_additions_and_removals():
    f = FUNCTIONS["lower median"]
    replace, both = WORLDS[REPLACE], world([0, 1, 2, 3], range(3, 8), ADD_REMOVE)
    m, changes = Stable(1, "1/20"), to_alter(both, f)
    assert worst_delta(law_by(m, f, changes), edges(replace), 1.0) > 0.06
    twice = float(m.guarantee(2).delta)
    assert worst_delta(law_by(m, f, changes), edges(replace), 2.0) <= twice * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("1/2", "1/50"), (3, "1e-4")])
def test_the_chance_is_that_of_d_plus_one_units_and_no_larger_one_is_private(epsilon, delta):
    m, keep = Stable(epsilon, delta), Keep(epsilon, delta)
    for d in range(m.certain):
        assert m.outcomes((5, d))[5] == keep.chance(d + 1)
    assert m.outcomes((5, 0))[5] == pytest.approx(float(m.delta), rel=1e-15)
    assert m.outcomes((5, m.certain - 1))[5] == 1
    e, most = float(m.epsilon), float(m.delta) * (1 + 1e-9)
    for d in range(m.certain - 1):
        here = m.outcomes((5, d))[5]
        more = here + 1e-3 * float(m.delta)
        before = {5: m.outcomes((5, d - 1))[5], None: m.outcomes((5, d - 1))[None]} if d else {6: here, None: 1 - here}
        assert delta_between({5: more, None: 1 - more}, before, e) > most


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_several_people_cost_what_is_stated(steps):
    """Same values with distances up to `steps` apart, or different ones with distances below it."""
    m = Stable(1, "1e-3")
    promise = m.guarantee(steps)
    same = [((5, a), (5, a + steps)) for a in range(30)]
    other = [((5, a), (6, b)) for a in range(steps) for b in range(steps)]
    for pairs in (same, other):
        found = max(delta_between(m.outcomes(x), m.outcomes(y), float(promise.epsilon)) for x, y in pairs)
        assert found == pytest.approx(float(promise.delta), rel=1e-9)


def test_it_releases_more_often_than_the_noisy_distance():
    from noisette.mechanisms.stability.stable_distance import StableDistance

    promise = Approx("0.1", "1e-6")
    bit, noisy = Stable.calibrated(promise), StableDistance.calibrated(promise)
    assert bit.least(0.5) - 1 == 108
    assert noisy.least(0.5) == 132
    assert bit.least(0.99) < noisy.least(0.99)


def test_one_draw_decides():
    m = Stable(1, "1e-6")
    cut = _table(m.epsilon, m.delta)[10]
    assert m(("oak", 9), Script(cut - 1)) == "oak"
    assert m(("oak", 9), Script(cut)) is None


def test_values_may_be_anything_hashable():
    m = Stable(1, "1e-6")
    for value in (0, False, "", (), (1, "a"), frozenset({3}), 2.5):
        assert m((value, 99)) == value
        assert m((value, 10**30)) == value
    assert math.isclose(sum(m.outcomes(((1, 2), 13)).values()), 1)


def test_delta_zero_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="delta must be above 0"):
        Stable(1, 0)
