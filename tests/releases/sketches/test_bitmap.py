"""Flipped bitmaps: what one unit changes, the promise of all bits together, and estimates of merged ones."""

from itertools import combinations

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms import RandomizedResponse
from noisette.releases.sketches.bitmap import Bitmap, changed_bits

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
HELD = [some for n in range(3) for some in combinations(range(6), n)]  # a unit with at most two of six values


@pytest.mark.parametrize("base", [(), (0,), (1, 4, 5)], ids=str)
def test_one_unit_changes_as_many_bits_as_is_stated(base):
    made = [Bitmap.of([*base, *held], bits=16).set_bits for held in HELD]
    added = max(np.abs(one - made[0]).sum() for one in made)
    replaced = max(np.abs(one - two).sum() for one in made for two in made)
    assert added <= changed_bits(2, ADD_REMOVE)
    assert replaced <= changed_bits(2, REPLACE)
    if not base:
        assert (added, replaced) == (2, 4)  # so half of it is noticed


def law(bits, epsilon):
    """P of all reports of a bitmap."""
    response = RandomizedResponse(epsilon)
    chances = np.ones(1)
    for bit in bits:
        chances = np.multiply.outer(chances, response.pmf([0, 1], bit)).ravel()
    return chances


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
def test_all_bits_together_keep_the_promise(relation):
    flipped = Bitmap.of([], bits=4).flipped(1, values=2, neighbours=relation)
    assert flipped.guarantee(values=2, neighbours=relation) == nz.Pure(1, neighbours=relation)
    maps = [Bitmap.of(held, bits=4).set_bits for held in HELD]
    pairs = [(maps[0], one) for one in maps] if relation is ADD_REMOVE else [(a, b) for a in maps for b in maps]
    worst = max(np.abs(np.log(law(a, flipped.epsilon) / law(b, flipped.epsilon))).max() for a, b in pairs)
    assert worst <= 1 + 1e-9
    twin = max(np.abs(np.log(law(a, 2 * flipped.epsilon) / law(b, 2 * flipped.epsilon))).max() for a, b in pairs)
    assert twin > 1  # epsilon for each bit, as if a unit had half of its values


def test_zeros_of_the_union_are_estimated_without_bias():
    """The mean over all reports of two parties, exactly."""
    one, two = Bitmap.of([0, 1], bits=3), Bitmap.of([1, 2], bits=3)
    true = float(((one.set_bits + two.set_bits) == 0).sum())
    epsilon = one.flipped(2).epsilon
    mean = 0.0
    for i, p in enumerate(law(one.set_bits, epsilon)):
        for j, r in enumerate(law(two.set_bits, epsilon)):
            reports = [np.array([(n >> (2 - at)) & 1 for at in range(3)]) for n in (i, j)]
            merged = Bitmap(3, 0, reports[0], 1, epsilon).merge(Bitmap(3, 0, reports[1], 1, epsilon))
            mean += p * r * merged.zeros()[0]
    assert mean == pytest.approx(true, abs=1e-9)


@pytest.mark.parametrize(("parties", "spend", "bits"), [(1, 1, 4096), (2, 3, 4096), (3, 4, 8192), (1, 30, 1024)])
def test_bars_hold_for_merged_bitmaps(parties, spend, bits):
    """200 releases under as many keys; coins and keys are fixed, so the outcome is no chance."""
    missed, widths = 0, []
    for key in range(200):
        shared = range(400)
        maps = [
            Bitmap.of([*shared, *range(1000 * p, 1000 * p + 500)], bits=bits, key=key) for p in range(1, parties + 1)
        ]
        merged = maps[0].flipped(spend)
        for other in maps[1:]:
            merged = merged.merge(other.flipped(spend))
        value, low, high = merged.estimate(level=0.9)
        assert low <= value <= high
        missed += not low <= 400 + 500 * parties <= high
        widths.append(high - low)
    assert 2 <= missed <= 40


def test_flipped_twice_exact_or_unlike_bitmaps_are_refused():
    exact = Bitmap.of([1], bits=64)
    with pytest.raises(InputError, match="flipped already"):
        exact.flipped(1).flipped(1)
    with pytest.raises(InputError, match="promises nothing"):
        exact.guarantee()
    for one, two in ((exact, exact), (exact.flipped(1), exact.flipped(2)), (exact.flipped(1), exact)):
        with pytest.raises(InputError, match="merge when both"):
            one.merge(two)
    with pytest.raises(InputError, match="bits"):
        Bitmap.of([], bits=1)


def test_a_full_bitmap_says_that_it_cannot_say_more():
    value, _, high = Bitmap.of(range(5000), bits=64).flipped(5).estimate()
    assert high == float("inf")
    assert value > 200
    assert Bitmap.of([], bits=64).estimate()[1] == 0


def test_pictures_and_tables():
    merged = Bitmap.of([1, 2], bits=64).flipped(1).merge(Bitmap.of([2], bits=64).flipped(1))
    assert merged.to_arrow().num_rows == 64
    assert "parties" in merged.chart().title
