"""The stable location: changes against breadth-first search, every neighbour of small tables, broken twins."""

import numpy as np
import pytest
from tests.mechanisms.stability.test_stability import ADD_REMOVE, REPLACE, edges, to_alter, world, worst_delta

from noisette.errors import InputError
from noisette.mechanisms.stability.stable_location import StableLocation
from noisette.privacy import Approx, sensitivity

VALUES = [-7, 0, 1, 3, 9]
WORLDS = {ADD_REMOVE: world(VALUES, range(1, 7), ADD_REMOVE), REPLACE: world(VALUES, [5, 6], REPLACE)}


def cells(t, width):
    """The median's bin in either partition, by going through all bins."""
    median = t[(len(t) - 1) // 2]
    starts = range(-20 * width, 20 * width, width)
    return [
        next((s + o, s + o + width - 1) for s in starts if s + o <= median < s + o + width) for o in (0, width // 2)
    ]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("width", [2, 3, 4])
def test_changes_are_those_of_a_search(relation, width):
    near, m = WORLDS[relation], StableLocation(1, "1/20", width=width, neighbours=relation)
    for part in (0, 1):
        found = to_alter(near, lambda t, part=part: cells(t, width)[part])
        for t in near:
            cell, changes = m._both(t)[part]
            assert cell == cells(t, width)[part]
            assert changes <= found[t]
            if 0 <= min(t) <= max(t) <= 3 and (len(t) <= 3 or relation is REPLACE):
                assert changes == found[t]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_every_neighbour_keeps_the_promise_and_some_attain_it(relation):
    m = StableLocation(1, "1/20", width=3, neighbours=relation)
    promise = m.guarantee(1)
    assert (promise.epsilon, float(promise.delta)) == (2, pytest.approx(1 - 0.95**2))
    found = worst_delta(m.outcomes, edges(WORLDS[relation]), 2.0)
    assert found == pytest.approx(float(promise.delta), rel=1e-9)
    assert found > 0.05  # one test's delta would be a lie


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_the_other_relation_costs_what_is_stated(relation):
    m = StableLocation(1, "1/50", width=3, neighbours=relation)
    for other in (ADD_REMOVE, REPLACE):
        promise = m.guarantee(sensitivity.histogram(neighbours=other))
        assert worst_delta(m.outcomes, edges(WORLDS[other]), float(promise.epsilon)) <= float(promise.delta) * (
            1 + 1e-9
        )


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_a_change_too_many_is_convicted(relation, monkeypatch):
    m = StableLocation(1, "1/20", width=3, neighbours=relation)
    right = StableLocation._both
    monkeypatch.setattr(StableLocation, "_both", lambda self, x: [(cell, c + 1) for cell, c in right(self, x)])
    assert worst_delta(m.outcomes, edges(WORLDS[relation]), 2.0) > 1.3 * float(m.guarantee(1).delta)


def test_what_is_released_holds_the_median():
    m, values = StableLocation(1, "1e-6", width=100), np.random.default_rng().normal(12_345, 30, 3000).astype(int)
    median = int(np.sort(values)[1499])
    told = [bin_ for bin_ in m(values) if bin_]
    assert told
    assert all(low <= median <= high == low + 99 for low, high in told)


def test_a_median_on_an_edge_of_one_partition_is_inside_the_other():
    values = [99] * 500 + [100] * 500
    for _ in range(5):
        assert StableLocation(1, "1e-9", width=100)(values) == (None, (50, 149))


def test_calibration_pays_for_both_tests():
    m = StableLocation.calibrated(Approx(1, "1e-6"), width=10)
    assert m.epsilon == pytest.approx(0.5)
    assert m.guarantee(1) <= Approx(1, "1e-6")


@pytest.mark.parametrize("width", [1, 0, -5, 2.5, True, "10"])
def test_bad_widths_are_refused(width):
    with pytest.raises(InputError):
        StableLocation(1, "1e-6", width=width)


@pytest.mark.parametrize("bad", [[[1, 2], [3, 4]], [2**60], [-(2**63) + 1], 5, [1.0, 2.0]])
def test_bad_values_are_refused(bad):
    with pytest.raises(InputError):
        StableLocation(1, "1e-6", width=10)(bad)
