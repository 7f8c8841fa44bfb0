"""Fourier coefficients: norms, least squares, and a private choice of how many to keep."""

from fractions import Fraction

import numpy as np
import pytest
from tests.strategies import RELATIONS, assert_least_squares, largest, moves, worst_loss

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW
from noisette.releases.strategies.fourier import ChosenFourier, fourier

PARTS = [ONE_ROW, Contribution(2, 1, 2), Contribution(1, 2, 2)]


@pytest.mark.parametrize(("cells", "k"), [(5, 1), (5, 4), (5, 5), (8, 3), (8, 8), (9, 7)])
def test_it_is_least_squares_on_an_orthonormal_basis(cells, k):
    made = fourier(cells, k)
    basis = made.rows / (2**20 * np.sqrt(cells))
    assert np.allclose(basis @ basis.T, np.eye(k), atol=1e-5)
    assert_least_squares(made)
    assert made.biased == (k < cells)


@pytest.mark.parametrize(("k", "l1"), [(5, 0.6094), (9, 1.0704), (17, 1.9608)])
def test_known_norms(k, l1):
    (moved,) = fourier(64, k).sensitivities(ONE_ROW, Neighbours.ADD_REMOVE)
    assert float(moved.l1) / (2**20 * 8) == pytest.approx(l1, abs=1e-4)
    assert float(moved.l2) / (2**20 * 8) == pytest.approx(np.sqrt(k / 64), abs=1e-5)


def test_an_unnormalised_transform_moves_root_n_times_as_far():
    waves = np.fft.fft(np.eye(64))
    assert np.linalg.norm(waves, axis=0).max() == pytest.approx(8)
    (moved,) = fourier(64, 64).sensitivities(ONE_ROW, Neighbours.ADD_REMOVE)
    assert float(moved.l2) / (2**20 * 8) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_norms_hold_for_every_placement(neighbours, part):
    made = fourier(6, 4)
    (stated,), ((l1, l2_squared, linf, _),) = made.sensitivities(part, neighbours), largest(made, part, neighbours)
    assert min(stated.l1 - l1, stated.l2_squared - l2_squared, stated.linf - linf) >= 0
    assert part.rows < part.total or (stated.l1, stated.l2_squared) == (l1, l2_squared)


# The choice of k


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_no_neighbour_moves_a_score_or_a_choice_further_than_stated(neighbours, part):
    made, rng = ChosenFourier(Fraction(1), 5, 5, part, neighbours), np.random.default_rng(2)
    change, furthest, loss = moves(5, part, neighbours), 0, 0.0
    for _ in range(4):
        x = rng.integers(2, 9, 5)
        before = made.scores(x)
        for one in change:
            after = made.scores(x + one)
            furthest = max(furthest, int(np.abs(after - before).max()))
            k = np.arange(made.most)
            loss = max(loss, float(np.abs(np.log(made.choice.pmf(k, after) / made.choice.pmf(k, before))).max()))
    assert made.moved / 2 < furthest <= made.moved, "half the sensitivity would be too little"
    assert loss <= 0.2 * (1 + 1e-12)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_choosing_and_measuring_add_up_to_epsilon(neighbours):
    made = ChosenFourier(Fraction(1, 2), 6, 4, ONE_ROW, neighbours)
    assert made.guarantee().epsilon == Fraction(1, 2)
    for k in range(1, 5):
        assert worst_loss(made.measuring(k), ONE_ROW, neighbours) == Fraction(2, 5)


def test_smooth_counts_need_few_coefficients_and_rough_ones_more():
    at = np.arange(256) * 2 * np.pi / 256
    made = ChosenFourier(Fraction(1), 256, 128)
    smooth, rough = (10_000 + 3_000 * np.sin(f * at) for f in (1, 40))
    assert np.argmax(made.scores(smooth.astype(np.int64))) + 1 < 5
    assert np.argmax(made.scores(rough.astype(np.int64))) + 1 >= 80


def test_true_phases_tell_neighbours_apart():
    """The published code adds noise to magnitudes and keeps phases: whatever the noise, the phase shows the table."""
    x = np.arange(8)
    phases = {np.angle(np.fft.rfft(table)[1]) for table in (x, x + np.eye(8, dtype=int)[2])}
    assert len(phases) == 2
    made = ChosenFourier(Fraction(1), 8, 8).measuring(8)
    assert len(made.noise) == 1, "here all real coefficients have the same noise, cosines and sines"


@pytest.mark.parametrize(("cells", "k"), [(4, 5), (2**20, 100), (0, 1)])
def test_too_many_coefficients_are_refused(cells, k):
    with pytest.raises(InputError, match=r"fewer coefficients|cells"):
        fourier(cells, k)
    with pytest.raises(InputError):
        ChosenFourier(Fraction(1), 4, 5)
