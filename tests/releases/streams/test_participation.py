"""What one unit can move, against all patterns of its events."""

from itertools import pairwise, product

import numpy as np
import pytest

from noisette.releases.streams.participation import Participation

WEIGHTS = np.array([1.0, 0.5, 0.375, 0.3125])


def worst(who: Participation, weights: np.ndarray) -> float:
    """The largest square over all ways to place a unit's events: of one key each, since keys have their own noise."""
    steps = len(weights)
    columns = np.array([np.pad(weights, (i, 0))[:steps] for i in range(steps)])
    largest = 0.0
    for times in product(range(who.events + 1), repeat=steps):
        places = [i for i, n in enumerate(times) for _ in range(n)]
        near = any(b - a < who.apart for a, b in pairwise(places))
        if sum(times) <= who.events and not near:
            largest = max(largest, float(((np.array(times) @ columns) ** 2).sum()))
    return who.groups * largest


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("apart", [0, 1, 2])
@pytest.mark.parametrize("events", [1, 2, 3])
def test_no_pattern_of_events_moves_further_and_one_moves_that_far(events, apart, groups):
    who = Participation(events, apart=apart, groups=groups)
    stated = who.square(WEIGHTS, len(WEIGHTS), lambda start, stop: 0.0)
    assert stated == pytest.approx(worst(who, WEIGHTS), rel=1e-8)


def test_several_keys_of_one_unit_all_count():
    alone, in_three = (Participation(2, groups=groups) for groups in (1, 3))
    assert in_three.total == 3 * alone.total
    assert in_three.square(WEIGHTS, 4, lambda *_: 0.0) == pytest.approx(3 * alone.square(WEIGHTS, 4, lambda *_: 0.0))
