"""Random projections: what one unit moves, estimates of products and distances with bars, recovery of a few counts."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.query.measure import Contribution
from noisette.releases.sketches.projection import Projection

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
PART = Contribution(1, 2, 2)
HELD = [some for n in range(3) for some in combinations_with_replacement(range(8), n)]


def largest(relation, key):
    made = [Projection.of(held, dimension=3, key=key).sums for held in HELD]
    pairs = [(made[0], one) for one in made] if relation is ADD_REMOVE else [(a, b) for a in made for b in made]
    change = np.abs([a - b for a, b in pairs])
    return [change.sum(axis=1).max(), (change**2).sum(axis=1).max(), change.max()]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
def test_one_unit_moves_entries_by_what_is_stated_and_no_less(relation):
    moved = Projection.of([], dimension=3).sensitivity(PART, relation)
    found = np.max([largest(relation, key) for key in range(20)], axis=0).tolist()
    assert found == [moved.l1, moved.l2_squared, moved.linf]
    assert moved.l0 == 3


def test_merged_projections_are_those_of_all_rows():
    one, two = Projection.of([1, 2], [3, 4]), Projection.of([2, 5], [1, 9])
    assert (one.merge(two).sums == Projection.of([1, 2, 5], [3, 5, 9]).sums).all()
    assert one.merge(two).sensitivity() == one.sensitivity()
    noisy = one.noised(1).merge(two.noised(1))
    assert noisy.variance == pytest.approx(2 * one.noised(1).variance)


X = np.random.default_rng(1).integers(0, 30, 400)
Y = np.random.default_rng(2).integers(0, 30, 400)


@pytest.mark.parametrize("spend", [None, nz.ZCDP("1/2"), nz.ZCDP("1/50")], ids=repr)
def test_bars_hold_for_norms_products_and_distances(spend):
    """150 keys; coins and keys are fixed, so the outcome is no chance."""
    missed = np.zeros(3)
    for key in range(150):
        x, y = (Projection.of(range(400), counts, dimension=128, key=key) for counts in (X, Y))
        if spend is not None:
            x, y = x.noised(spend), y.noised(spend)
        for i, (true, bar) in enumerate(
            [
                (X @ X, x.squared_norm(level=0.9)),
                (X @ Y, x.inner(y, level=0.9)),
                ((X - Y) @ (X - Y), x.distance(y, level=0.9)),
            ]
        ):
            assert bar[1] <= bar[0] <= bar[2]
            missed[i] += not bar[1] <= true <= bar[2]
    assert (missed <= 30).all()
    assert (missed >= 3).all()


def test_squares_that_keep_the_noise_are_noticed():
    noisy = Projection.of(range(400), X, dimension=4096).noised(nz.ZCDP("1/2000"))
    true, raw = X @ X, float((np.asarray(noisy.sums, float) ** 2).mean())
    assert abs(noisy.squared_norm()[0] - true) < 0.5 * (raw - true)


def test_a_few_large_counts_are_recovered():
    candidates = [f"value {i}" for i in range(500)]
    made = Projection.of(["value 7", "value 300"], [5000, 3000], dimension=200).noised(nz.ZCDP("1/2"))
    found = dict(zip(*made.recovered(candidates, 2).to_pydict().values(), strict=True))
    assert set(found) == {"value 7", "value 300"}
    assert found["value 7"] == pytest.approx(5000, abs=50)


def test_unlike_projections_are_refused():
    with pytest.raises(InputError, match="same dimension"):
        Projection.of([1]).distance(Projection.of([1], key=1))
    with pytest.raises(InputError, match="dimension"):
        Projection.of([1], dimension=1)
    with pytest.raises(InputError, match="one whole number"):
        Projection.of([1], [1, 2])


def test_pictures_and_tables():
    made = Projection.of([1]).noised(1)
    assert made.to_arrow().num_rows == 256
    assert "projection" in made.chart().title
