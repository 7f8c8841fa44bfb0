"""The noisy distance with its value: the promise over small worlds, its threshold, its broken twins."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.mechanisms.stability.test_stability import (
    ADD_REMOVE,
    REPLACE,
    delta_between,
    edges,
    to_alter,
    world,
    worst_delta,
)

from noisette.errors import InputError
from noisette.mechanisms.stability.stable_distance import StableDistance
from noisette.privacy import Approx

WORLDS = {ADD_REMOVE: world([0, 1, 2], range(5), ADD_REMOVE), REPLACE: world([0, 1, 2], [6], REPLACE)}


def median(t):
    return t[(len(t) - 1) // 2] if t else 0


def law_by(m, changes, shift=0):
    return lambda t: m.outcomes((median(t), changes[t] - 1 + shift))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize(("scale", "threshold"), [(1, 3), ("1/3", 2), ("5/2", 9)])
def test_the_promise_is_kept_and_delta_attained(relation, scale, threshold):
    m, near = StableDistance(scale, threshold), WORLDS[relation]
    promise, changes = m.guarantee(1), to_alter(near, median)
    a = math.exp(-1 / float(m.scale))
    assert float(promise.delta) == pytest.approx(a**threshold / (1 + a), rel=1e-12)
    found = worst_delta(law_by(m, changes), edges(near), float(promise.epsilon))
    assert found == pytest.approx(float(promise.delta), rel=1e-9)
    assert worst_delta(law_by(m, changes), edges(near), 0.99 * float(promise.epsilon)) > 1.001 * found  # no less holds
    assert float(promise.epsilon) == pytest.approx(1 / float(m.scale) + math.log1p(-(a**threshold)), rel=1e-12)
    lower = replace(m, threshold=threshold - 1)
    quiet = replace(m, scale=m.scale * Fraction(4, 5))
    for broken in (law_by(lower, changes), law_by(m, changes, shift=1), law_by(quiet, changes)):
        assert worst_delta(broken, edges(near), float(promise.epsilon)) > 1.05 * float(promise.delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(2, "1e-3"), (3, "1e-3"), ("1/2", "1e-6"), (1, "0.4")])
def test_calibration_takes_the_least_threshold(epsilon, delta):
    promise = Approx(epsilon, delta)
    m = StableDistance.calibrated(promise)
    assert m.guarantee(1) <= promise
    assert m.scale == 1 / promise.epsilon
    a = math.exp(-float(promise.epsilon))
    least = next(t for t in range(100) if a**t / (1 + a) <= float(promise.delta))  # erratum E2
    assert m.threshold == least
    if least:
        assert not replace(m, threshold=least - 1).guarantee(1) <= promise


def test_several_people_cost_what_is_stated():
    m = StableDistance(1, 6)
    for steps in (1, 2, 3):
        promise = m.guarantee(steps)
        pairs = [((5, a), (5, a + steps)) for a in range(12)]
        pairs += [((5, a), (6, b)) for a in range(steps) for b in range(steps)]
        found = max(delta_between(m.outcomes(x), m.outcomes(y), float(promise.epsilon)) for x, y in pairs)
        assert found == pytest.approx(float(promise.delta), rel=1e-9)


def test_the_value_is_told_where_the_noisy_distance_says_so():
    m = StableDistance(2, 5)
    for _ in range(300):
        value, noisy = m(("oak", 5))
        assert value == ("oak" if noisy >= 5 else None)
    assert m.least(0.5) == 5
    assert sum(p for (value, _), p in m.outcomes(("oak", m.least(0.9))).items() if value) >= 0.9


@pytest.mark.parametrize(("scale", "threshold"), [(0, 3), (1, -1), (1, 1.5), (1, True), (math.nan, 3), (None, 1)])
def test_bad_parameters_are_refused(scale, threshold):
    with pytest.raises(InputError):
        StableDistance(scale, threshold)
