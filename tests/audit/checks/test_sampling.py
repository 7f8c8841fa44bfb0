import numpy as np
import pytest
from tests.goodness import most

from noisette.audit.checks.sampling import ALPHA, by_cdf, by_pmf, fit, mode_or_not, p_value
from noisette.mechanisms import Gaussian, Geometric, KNorm, Laplace, RandomizedResponse, Staircase, TruncatedGeometric

ALL = [
    Geometric("5/2"),
    Laplace(1, grid="1/8"),
    Gaussian(2, grid="1/10"),
    Staircase(1, grid="1/8"),
    TruncatedGeometric(10, high=1),
    RandomizedResponse(4, categories=3),
    KNorm(1, 1, dimension=2, grid=1),
]


@pytest.mark.parametrize("m", ALL, ids=repr)
@pytest.mark.parametrize("parts", [2, 4, 64])
def test_cells_are_a_partition_of_like_size(m, parts):
    x = m.pairs()[0][0]
    for _, chances in (by_pmf(m, x, parts), mode_or_not(m, x)):
        assert chances.sum() == pytest.approx(1)
    assert (by_pmf(m, x, parts)[1] >= min(1 / parts, 1) * (1 - 1e-9)).all()


@pytest.mark.parametrize("m", [Laplace(1, grid="1/1024"), Gaussian(1), Staircase(1, grid="1/64")], ids=repr)
def test_cells_by_cdf(m):
    cell, chances = by_cdf(m, 0, 16)
    assert chances.sum() == pytest.approx(1)
    drawn = cell(m(np.zeros(1000)))
    assert 0 <= drawn.min() <= drawn.max() < len(chances)


def test_small_cells_join_and_two_cells_are_exact():
    assert p_value([1000, 1], [0.9999, 0.0001]) > 0.01
    assert p_value([0, 100], [0.5, 0.5]) == pytest.approx(2 * 0.5**100)
    assert p_value([100, 0], [0.5, 0.5]) == pytest.approx(2 * 0.5**100)
    assert p_value([10], [1.0]) == 1


@pytest.mark.slow
def test_p_values_are_not_too_small_too_often():
    m = Geometric(2)
    p = np.array([fit(m, 0, m(np.zeros(2000, int))) for _ in range(1000)])
    assert (p < 0.01).sum() <= most(1000, 0.01)  # fails with p < 1e-12


def test_a_wrong_scale_is_seen():
    assert fit(Geometric(2), 0, Geometric("8/5")(np.zeros(20_000, int))) < ALPHA
