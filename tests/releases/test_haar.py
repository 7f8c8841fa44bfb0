"""The Haar wavelet: against dense least squares, every placement of rows, and published variances."""

from fractions import Fraction

import numpy as np
import pytest
from tests.strategies import (
    RELATIONS,
    all_ranges,
    assert_attained,
    assert_least_squares,
    largest,
    worst_loss,
    worst_rho,
)

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW, Linear, placed
from noisette.releases.strategies.haar import Haar

PARTS = [ONE_ROW, Contribution(2, 1, 2), Contribution(2, 2, 3), Contribution(1, 3, 3)]


@pytest.mark.parametrize("cells", [1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 16, 17, 24, 31])
def test_it_is_least_squares_also_where_the_line_ends_before_a_power_of_two(cells):
    assert_least_squares(Haar(cells))


def test_knowing_that_padding_is_empty_helps():
    low, high, _ = all_ranges(17)
    v = [2.0] * 6
    padded = Haar(32).variances(low, high, v)
    found = Haar(17).variances(low, high, v)
    assert (found <= padded + 1e-12).all()
    assert found[-1] < padded[-1] / 2, "the last cell is measured six times"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("cells", [4, 6, 7])
def test_no_placement_of_rows_moves_a_level_further(cells, neighbours, part):
    assert_attained(Haar(cells), part, neighbours)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_where_the_last_half_is_short_norms_are_bounds(neighbours, part):
    stated = Haar(5).sensitivities(part, neighbours)
    for one, (l1, l2_squared, linf, l0) in zip(stated, largest(Haar(5), part, neighbours), strict=True):
        assert min(one.l1 - l1, one.l2_squared - l2_squared, one.linf - linf, one.l0 - l0) >= 0


def test_root_k_at_upper_levels_and_forgotten_signs_are_too_little():
    part = Contribution(2, 1, 2)
    top = largest(Haar(4), part, Neighbours.ADD_REMOVE)[1]
    assert placed(part, 1, Neighbours.ADD_REMOVE).l2_squared < top[1] == 4
    both = largest(Haar(4), ONE_ROW, Neighbours.REPLACE)[1]
    assert placed(ONE_ROW, 2, Neighbours.REPLACE).l2_squared < both[1] == 4


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_no_pair_of_neighbours_loses_more_than_promised(neighbours, part):
    made = Linear.calibrated(1, Haar(6), part=part, neighbours=neighbours)
    worst = worst_loss(made, part, neighbours)
    attained = part.rows == part.total and neighbours is Neighbours.ADD_REMOVE  # one placement is worst in all levels
    assert worst == 1 if attained else Fraction(1, 2) < worst < 1
    smooth = Linear.calibrated("1, 1e-6", Haar(6), part=part, neighbours=neighbours)
    assert worst_rho(smooth, part, neighbours) <= smooth.guarantee().rho
    less = Fraction(4, 5) if attained else Fraction(1, 2)
    twin = Linear(made.strategy, tuple(type(noise)(noise.scale * less) for noise in made.noise), made.moved)
    assert worst_loss(twin, part, neighbours) > 1


@pytest.mark.parametrize(("cells", "most", "mean"), [(8, 38, 20.7778), (16, 71.0938, 37.7987), (64, 182.506, 102.247)])
def test_published_shares_have_the_published_variances(cells, most, mean):
    wavelet = Haar(cells, equal=True)
    low, high, _ = all_ranges(cells)
    found = wavelet.variances(low, high, [2 / share**2 for share in wavelet.shares(gaussian=False)])
    assert found.max() == pytest.approx(most, rel=1e-5)
    assert found.mean() == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("prefixes", [False, True])
def test_no_other_shares_are_better(gaussian, prefixes):
    cells, rng = 64, np.random.default_rng(1)
    low, high, _ = all_ranges(cells)
    low, high = (low[:cells], high[:cells]) if prefixes else (low, high)

    def error(shares):
        shares = np.array(shares) / (np.sqrt(np.sum(np.square(shares))) if gaussian else np.sum(shares))
        return Haar(cells).variances(low, high, 1 / shares**2).mean()

    best = Haar(cells, prefixes=prefixes).shares(gaussian=gaussian)
    for _ in range(40):
        assert error(best) <= error(best * rng.uniform(0.8, 1.25, len(best)))
    assert error(best) < error(Haar(cells, equal=True).shares(gaussian=gaussian))


def test_gaussian_ranges_of_256_cells():
    low, high, _ = all_ranges(256)
    equal = Haar(256).variances(low, high, [9.0] * 9)
    assert np.sqrt(equal.mean()) == pytest.approx(3.505, abs=5e-4)
    best = Haar(256).variances(low, high, [1 / share**2 for share in Haar(256).shares(gaussian=True)])
    assert 2.876 < np.sqrt(best.mean()) < 3.45, "above the bound of singular values"


def test_zero_noise_gives_the_counts_back():
    x = np.random.default_rng(3).integers(0, 2**40, 1000)
    wavelet = Haar(1000)
    assert np.array_equal(np.round(wavelet.infer([np.asarray(y, float) for y in wavelet.measure(x)], [1.0] * 11)), x)


@pytest.mark.parametrize("cells", [0, -3, 2**26 + 1])
def test_impossible_lines_are_refused(cells):
    with pytest.raises(InputError, match="cells"):
        Haar(cells)
