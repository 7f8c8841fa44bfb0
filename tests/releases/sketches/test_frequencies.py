"""Count-min and count sketch: moved by one unit as stated for every hash, merged as stated, with bars that hold."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import noisette as nz
from noisette.errors import InputError
from noisette.query.measure import Contribution
from noisette.releases.sketches import hashing
from noisette.releases.sketches.cell_errors import beyond, most_likely_tail, upper_end
from noisette.releases.sketches.frequencies import CountMin, CountSketch
from noisette.releases.sketches.hashing import buckets, canonical_bytes, fingerprints, public_order, signs

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
KINDS = [CountMin, CountSketch]
ROWS = 3
VALUES = [f"value {i}" for i in range(5)]
HELD = [some for n in range(ROWS + 1) for some in combinations_with_replacement(VALUES, n)]


def norms(change):
    size = np.abs(change)
    return np.array([(size > 0).sum(), size.sum(), (size**2).sum(), size.max()])


def moves(kind, relation, key):
    """The largest move of cells in each norm, over all that one unit may hold and what may take its place."""
    made = [kind.of(held, depth=3, width=2, key=key).cells for held in HELD]
    pairs = [(made[0], one) for one in made] if relation is ADD_REMOVE else product(made, repeat=2)
    return np.max([norms(a - b) for a, b in pairs], axis=0)


def stated(kind, relation, rows=ROWS):
    moved = kind.of([], depth=3, width=2).sensitivity(Contribution(1, rows, rows), relation)
    return np.array([moved.l0, moved.l1, moved.l2_squared, moved.linf], float)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_one_unit_moves_cells_by_what_is_stated_and_no_less(kind, relation):
    found = np.max([moves(kind, relation, key) for key in range(12)], axis=0)
    assert (found <= stated(kind, relation)).all()
    assert found[1:].tolist() == stated(kind, relation)[1:].tolist()  # of two cells, few can be touched
    assert (found > stated(kind, relation, ROWS - 1))[1:].all()  # one row less is noticed


def test_signs_that_are_forgotten_are_noticed():
    assert (moves(CountSketch, REPLACE, 0) > stated(CountMin, REPLACE))[2:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_merged_sketches_are_those_of_all_rows_and_move_as_one(kind):
    one, other = kind.of(VALUES[:3], [5, 1, 2]), kind.of(VALUES[2:], [4, 4, 1])
    assert (one.merge(other).cells == kind.of(VALUES, [5, 1, 6, 4, 1]).cells).all()
    assert (one.add(VALUES[2:], [4, 4, 1]).cells == one.merge(other).cells).all()
    assert one.merge(other).sensitivity() == one.sensitivity()
    noisy = one.noised(1).merge(other.noised(2))
    assert sum(noise.variance() for noise in noisy.noises) > one.noised(1).noises[0].variance()
    with pytest.raises(InputError, match="same depth"):
        one.merge(kind.of(VALUES, key=1))


def test_noise_is_calibrated_for_all_rows_of_cells():
    assert CountSketch.of([], depth=5).noised(1).noises[0].scale == 5
    assert CountSketch.of([], depth=5).noised(1, part=Contribution(1, 4, 4)).noises[0].scale == 20
    assert CountSketch.of([], depth=5).noised(1, neighbours=REPLACE).noises[0].scale == 10
    assert type(CountSketch.of([]).noised("rho=0.1").noises[0]).__name__ == "Gaussian"


# Hashes


def test_equal_values_have_equal_bytes_and_others_have_not():
    import datetime

    day = datetime.date(2020, 1, 1)
    values = ["", "1", 1, 1.5, None, True, False, day, datetime.datetime(2020, 1, 1), "n", 2**70, float("inf"), -1]
    assert len({canonical_bytes(value) for value in values}) == len(values)
    assert canonical_bytes(0.0) == canonical_bytes(-0.0) == canonical_bytes(0)
    with pytest.raises(InputError, match="A key must be"):
        canonical_bytes([1])


def test_hashes_are_the_same_everywhere():
    """Stored sketches rest on these numbers."""
    prints = fingerprints(["oak", 7, None], 3)
    assert [hex(x) for x in prints.tolist()] == ["0x71a0aa2a6ffc7cd7", "0x6dbcfef808f80d5a", "0xb7651b5a1f4af8de"]
    assert buckets(prints, 1, 1000).tolist() == [316, 241, 721]
    assert signs(prints, 2).tolist() == [-1, -1, 1]


@given(
    values=st.lists(st.sampled_from(["oak", "", "o", None, 7, -7, 2.5, True, "i7", "n"]), unique_by=repr),
    data=st.data(),
)
def test_the_public_order_is_that_of_the_values_alone(values, data):
    """Also where all fingerprints are equal; a value that is missing changes the order of no others."""
    other = data.draw(st.permutations(values))
    with pytest.MonkeyPatch.context() as patched:
        if data.draw(st.booleans()):
            patched.setattr(hashing, "fingerprints", lambda values, key: np.zeros(len(values), np.uint64))
        first = [values[i] for i in public_order(values)]
        assert [other[i] for i in public_order(other)] == first
        assert [values[1:][i] for i in public_order(values[1:])] == [value for value in first if value in values[1:]]


def test_hashes_fill_cells_evenly_and_rows_are_independent():
    """100,000 values in 64 x 64 pairs of cells: the largest deviates by 7 standard deviations with p < 1e-8."""
    prints = fingerprints(range(100_000), 0)
    both = buckets(prints, 0, 64) * 64 + buckets(prints, 1, 64)
    expected = len(prints) / 4096
    assert np.abs(np.bincount(both, minlength=4096) - expected).max() < 8 * np.sqrt(expected)
    assert abs((signs(prints, 0) * signs(prints, 1)).sum()) < 7 * np.sqrt(len(prints))


# Error bars


def test_tails_of_binomials():
    assert beyond(0.5, 3, 2) == 0.5
    assert beyond(most_likely_tail(5, 3, 0.05), 5, 3) == pytest.approx(0.05)
    assert upper_end(np.zeros((5, 4)), 2, 0.05) == float("inf")  # too narrow to say
    assert upper_end(np.arange(100.0)[None], 0, 0.1) == 99 - 9


def zipf(values=3000, rows=60_000):
    shares = 1 / np.arange(1, values + 1)
    return np.random.default_rng(2).multinomial(rows, shares / shares.sum())


@pytest.mark.parametrize("spend", [1, "1/10", None], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_bars_hold_for_random_hashes(kind, spend):
    """30 values under each of 50 keys of the hash; coins and keys are fixed, so the outcome is no chance."""
    counts = zipf()
    missed, keys = 0, 50
    asked = np.random.default_rng(3).choice(3000, 30, replace=False)
    for key in range(keys):
        sketch = kind.of(range(3000), counts, width=256, key=key)
        sketch = sketch if spend is None else sketch.noised(spend)
        found = sketch.estimate(asked, level=0.9)
        low, high = found["count_low"].to_numpy(), found["count_high"].to_numpy()
        missed += ((low > counts[asked]) | (high < counts[asked])).sum()
    assert missed <= 0.1 * keys * len(asked)
    assert missed >= 1  # they are not much too wide


def test_bars_that_forget_collisions_are_noticed():
    counts = zipf()
    sketch = CountSketch.of(range(3000), counts, width=256).noised(1)
    half = sketch.noises[0].interval(0.9)
    found = sketch.estimate(range(3000))["count"].to_numpy()
    assert (np.abs(found - counts) > half).mean() > 0.2
    assert (np.abs(found - counts) > sketch.half_width(0.9)).mean() < 0.1


def test_without_collisions_and_noise_estimates_are_exact():
    for kind in KINDS:
        found = kind.of(["oak", "ash"], [900, 40], width=512).estimate(["oak", "ash", "elm"])
        assert found["count"].to_pylist() == [900, 40, 0]


def test_the_smallest_of_noisy_cells_is_corrected():
    """Without rows the smallest of five noises is about -11 at scale 5; the estimate is centred."""
    sketch = CountMin.of([], width=1024).noised(1)
    found = sketch.estimate(range(2000))["count"].to_numpy()
    assert abs(np.median(found)) <= 2


def test_pictures_and_tables_show_cells():
    sketch = CountSketch.of(VALUES, width=8).noised(1)
    assert sketch.to_arrow().num_rows == 40
    assert "count sketch" in sketch.chart(note="ε = 1").title
    assert "900" not in repr(CountSketch.of(["oak"], [900]))


@pytest.mark.parametrize(
    "shape", [{"depth": 4}, {"depth": 0}, {"width": 1}, {"width": 2**24}, {"key": -1}, {"key": 2**128}], ids=str
)
def test_shapes_that_cannot_be(shape):
    with pytest.raises(InputError):
        CountSketch.of([], **shape)
