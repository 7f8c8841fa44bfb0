"""Laws of who is nearest, on a made-up town."""

import numpy as np
import pytest

import noisette as nz
from noisette.accuracy.nearest import good, laws, town
from noisette.mechanisms.spatial.nearest_place import NearestPlace

SMALL = NearestPlace(2, k=2, columns=(3, 9), rows=(-2, 2), place=(4, 0))
PEOPLE = [(3, -2), (4, 1), (5, 1), (8, 2), (9, 2), (9, 2)]


def test_both_laws_are_of_the_same_points():
    ours, other = laws(SMALL, PEOPLE)
    assert ours.shape == other.shape == (5, 7)
    assert ours[2, 1] == SMALL.outcomes(PEOPLE)[4, 0]
    assert ours.sum() == pytest.approx(1)
    assert other.sum() == pytest.approx(1)


def test_minus_the_distance_is_even_but_for_half_of_epsilon():
    """Its best point is the k-th nearest person's, (4, 1) or (5, 1), and its worst no less likely than e^-1/2 of it."""
    other = laws(SMALL, PEOPLE)[1]
    assert SMALL.guarantee(1).epsilon == 1
    best = np.unravel_index(other.argmax(), other.shape)
    assert (best[1] + 3, best[0] - 2) == (5, 1)
    assert 1 < other.max() / other.min() <= np.exp(0.5) + 1e-12


def test_good_points_are_those_whose_rank_is_nearly_k():
    ours, _ = good(SMALL, PEOPLE)
    law = SMALL.outcomes(PEOPLE)
    assert ours == pytest.approx(sum(p for y, p in law.items() if SMALL.error(y, PEOPLE) <= 1), rel=1e-12)


def test_the_town_is_always_the_same_and_on_its_map():
    assert (town() == town()).all()
    assert town().min() >= 0
    assert (town(5000).max(axis=0) <= (119, 79)).all()
    assert (town(300)[:, 0] > 60).sum() == pytest.approx(200, abs=30)


@pytest.mark.slow
def test_the_pages_numbers_hold_at_other_places():
    """The story does not hang on one spot."""
    for place in ((0, 0), (70, 42), (119, 40)):
        ranks, distance = good(
            NearestPlace.calibrated(nz.Pure(1), k=30, columns=(0, 119), rows=(0, 79), place=place), town()
        )
        assert ranks > 0.97
        assert distance < 0.4
