"""The helpers' own tests: a check that cannot fail, or that fails by chance, is a defect."""

from fractions import Fraction

import numpy as np
import pytest

from noisette.exact.random import SYSTEM
from tests import goodness, tapes
from tests.goodness import ALPHA


def two_coins_and_a_die(sides, rng):
    return None if rng.flip(1, 3) else rng.bits(2) + rng.below(sides)


def test_walk_counts_every_tape():
    masses, dropped = tapes.walk(two_coins_and_a_die, 2)
    assert dropped == 0
    assert masses == {None: Fraction(1, 3), **{v: Fraction(2 - (v in (0, 4)), 12) for v in range(5)}}


def test_walk_drops_what_is_unlikely_and_says_how_much():
    def first_head(rng):
        return next(k for k in range(99) if rng.flip(1, 2))

    masses, dropped = tapes.walk(first_head, least=Fraction(1, 100))
    assert masses == {k: Fraction(1, 2 << k) for k in range(6)}
    assert dropped == Fraction(1, 64)


def test_sure_flips_do_not_branch():
    assert tapes.walk(lambda rng: (rng.flip(0, 3), rng.flip(3, 3))) == ({(False, True): 1}, 0)


def test_misfits_condition_on_acceptance_and_see_missing_values():
    walked = tapes.walk(two_coins_and_a_die, 2)
    truth = {v: Fraction(2 - (v in (0, 4)), 8) for v in range(5)}
    assert not tapes.misfits(walked, truth.__getitem__, range(5))
    assert set(tapes.misfits(walked, lambda v: Fraction(1, 5))) == set(range(5))
    assert set(tapes.misfits(walked, lambda v: truth.get(v, Fraction(1, 99)), [7])) == {7}


@pytest.mark.slow
def test_p_values_are_uniform_even_for_the_smallest_cells():
    chances = np.full(100, 0.01)
    draws = SYSTEM.words(2000 * 1000, np.uint16).reshape(2000, 1000) % 100  # 1000 draws: each cell expects ten
    p = np.array([goodness.p_value(np.bincount(row, minlength=100), chances) for row in draws])
    assert (p < 0.5).sum() <= goodness.most(2000, 0.51)  # fails with p < 1e-12: at so small cells p is nearly uniform
    assert (p < 0.01).sum() <= goodness.most(2000, 0.015)


@pytest.mark.parametrize("counts", [[620, 380], [500, 500, 50], [0, 1000]])
def test_wrong_counts_have_small_p(counts):
    chances = [0.5, 0.5, 0][: len(counts)]
    assert goodness.p_value(counts, chances) < ALPHA


def test_right_counts_have_large_p():
    assert goodness.p_value([500, 501], [0.5, 0.5]) > 0.9
    assert goodness.p_value([500, 501, 3, 2, 1], [0.5, 0.494, 0.003, 0.002, 0.001]) > 0.1


def test_small_cells_are_pooled_not_forgotten():
    many = np.full(100, 0.001)
    assert goodness.p_value([900, *[1] * 100], [0.9, *many]) > 0.9
    assert goodness.p_value([1000, *[0] * 100], [0.9, *many]) < ALPHA


@pytest.mark.parametrize("law", [goodness.geometric, goodness.laplace, goodness.gaussian])
def test_laws_are_distribution_functions(law):
    at = np.arange(-400, 400)
    below = law(Fraction(10))(at)
    assert below[0] < 1e-12
    assert below[-1] > 1 - 1e-12
    assert (np.diff(below) >= 0).all()


def test_gaussian_law_agrees_with_its_pmf():
    below = goodness.gaussian(Fraction(1, 4))(np.arange(-3, 5))
    assert np.diff(below) == pytest.approx(
        [float(goodness.gaussian_pmf(Fraction(1, 4), z)) for z in range(-3, 4)], abs=1e-15
    )
    assert float(goodness.gaussian_pmf(Fraction(1), 0)) == pytest.approx(0.3989422, abs=1e-6)
