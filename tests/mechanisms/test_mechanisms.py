"""What is particular to one mechanism; what all share is in tests/contracts."""

import math
from fractions import Fraction

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.privacy.sensitivity import Sensitivity

REPLACE = nz.Neighbours.REPLACE


@pytest.mark.parametrize(("eps", "error"), [(1, 0.959517), (2, 0.425459), (4, 0.137860)])
def test_staircase_reaches_the_least_expected_error(eps, error):
    m = nz.Staircase(eps, sensitivity=1)
    assert m.law.mean_absolute() * float(m.grid) == pytest.approx(error, abs=1e-6)
    assert error == pytest.approx(math.exp(eps / 2) / math.expm1(eps), abs=1e-6)


def test_staircase_with_another_gamma_errs_more():
    best = nz.Staircase(2).law.mean_absolute()
    assert all(nz.Staircase(2, gamma=g).law.mean_absolute() > best for g in ("0.1", "0.5", 1))


def test_staircase_charges_each_started_step_and_each_number():
    m = nz.Staircase(1, sensitivity=2, grid=1)
    assert [m.guarantee(d).epsilon for d in (0, 1, 2, 3, 4)] == [0, 1, 1, 2, 2]
    two = Sensitivity(4, 8, 2, 2, neighbours=REPLACE)
    assert m.guarantee(two) == nz.Pure(2, neighbours=REPLACE)


def test_truncation_keeps_the_range_and_the_end_points():
    m = nz.TruncatedGeometric(1, low=2, high=5)
    y = m(np.full(20_000, 100))  # an answer outside is put at the end first
    assert set(np.unique(y)) == {2, 3, 4, 5}
    assert m.pmf([1, 6], 3).tolist() == [0, 0]
    assert m.pmf(5, 100) == m.pmf(5, 5)
    with pytest.raises(InputError, match="low must be below high"):
        nz.TruncatedGeometric(1, low=5, high=5)


def test_knorm_wants_its_dimension():
    m = nz.KNorm("inf", 1, dimension=3)
    with pytest.raises(InputError, match="3 numbers"):
        m([1.0, 2.0])
    assert m(np.zeros((3, 1))).shape == (3, 1)
    with pytest.raises(InputError, match="norm must be"):
        nz.KNorm(3, 1, dimension=3)


@pytest.mark.slow
def test_knorm_linf_saves_the_logarithm():
    d = 64
    cube = nz.calibrate(nz.KNorm, nz.Pure(1), norm="inf", dimension=d)
    laplace = nz.calibrate(nz.Laplace, nz.Pure(1), sensitivity=d)
    width = laplace.interval(1 - (1 - 0.95 ** (1 / d)))
    assert cube.largest_error(0.95) < 0.5 * width


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_knorm_expected_norm_is_dimension_times_scale(norm):
    m = nz.KNorm(norm, 3, dimension=5)
    lengths = [np.linalg.norm(m(np.zeros(5)), ord=norm) for _ in range(600)]
    assert np.mean(lengths) == pytest.approx(15, abs=8 * 3 * math.sqrt(5 / 600))  # fails with p < 1e-12


def test_randomized_response_of_the_lecture():
    """p = 3/4 is epsilon = ln 3, and n Var = 3/4."""
    m = nz.RandomizedResponse(math.log(3))
    assert m.keep == pytest.approx(0.75)
    assert m.variance(1000) == pytest.approx(3 / 4000)


def test_randomized_response_estimates_without_bias():
    m, shares = nz.RandomizedResponse(2, categories=4), [0.5, 0.3, 0.2, 0.0]
    people = 200_000
    truth = np.repeat(np.arange(4), [int(s * people) for s in shares])
    estimate = m.estimate(m(truth))
    for share, got in zip(shares, estimate, strict=True):
        assert abs(got - share) < 7.5 * math.sqrt(m.variance(people, share=share))  # fails with p < 1e-12, all four
        assert abs(got - share) < m.interval(1 - 1e-12, people=people)
    assert estimate.sum() == pytest.approx(1)


def test_randomized_response_names_other_answers_evenly():
    m = nz.RandomizedResponse("1/2", categories=5)
    counts = np.bincount(m(np.full(300_000, 3)), minlength=5)
    lies = counts[[0, 1, 2, 4]]
    assert abs(lies - lies.mean()).max() < 7.5 * math.sqrt(lies.mean())  # fails with p < 1e-12


def test_randomized_response_refuses_other_codes_and_add_remove():
    m = nz.RandomizedResponse(1, categories=3)
    for bad in (3, -1, [0, 5]):
        with pytest.raises(InputError, match="coded 0 to 2"):
            m(bad)
    with pytest.raises(InputError, match="add/remove"):
        m.guarantee(nz.sensitivity.count())
    assert m.guarantee(3) == nz.Pure(3, neighbours=REPLACE)


def test_laplace_scale_and_grid():
    m = nz.calibrate(nz.Laplace, nz.Pure(1), sensitivity="0.3", grid="1/100")
    assert m.scale == Fraction(31, 100)  # the sensitivity plus one grid
    assert m.guarantee("0.3") == nz.Pure(1)
    y = m(np.zeros(1))
    assert (y[0] * 100) == pytest.approx(round(y[0] * 100), abs=1e-9)
    with pytest.raises(InputError, match="coarser"):
        nz.Laplace(1, grid=2)


def test_mechanisms_are_frozen_values():
    m = nz.Geometric(2)
    with pytest.raises(AttributeError):
        m.scale = Fraction(1)  # type: ignore[misc]
    assert len({m, nz.Geometric("2"), nz.Geometric(2.0), nz.Geometric(3)}) == 2
