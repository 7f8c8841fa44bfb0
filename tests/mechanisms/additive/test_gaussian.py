"""The Gaussian mechanism: its three bounds on delta, and its calibration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noisette as nz
from noisette.errors import InputError
from noisette.laws import DiscreteGaussian
from noisette.privacy.convert import gaussian_delta, zcdp_delta
from noisette.privacy.sensitivity import Sensitivity


@pytest.mark.parametrize("s", [0.3, 0.5, 0.7, 1, 1.5, 2, 5, 20, 100])
def test_rounded_and_discrete_gaussians_are_as_near_as_the_proof_says(s):
    from scipy.special import ndtr

    y = np.arange(-math.ceil(12 * s) - 3, math.ceil(12 * s) + 4)
    rounded = ndtr((y + 0.5) / s) - ndtr((y - 0.5) / s)
    distance = 0.5 * np.abs(rounded - DiscreteGaussian(Fraction(s) ** 2).pmf(y)).sum()
    assert distance <= 1 / (8 * s * s)
    assert s < 1 or distance >= 0.01 / (s * s), "the bound should be of the right order"


def enumerated_delta(sigma2: Fraction, shifts: tuple[int, ...], eps: float) -> float:
    """Hockey-stick divergence of product noise, from the law of its privacy loss."""
    law, atoms = DiscreteGaussian(sigma2), {0.0: 1.0}
    y = np.arange(-math.ceil(12 * math.sqrt(sigma2)) - 2, math.ceil(12 * math.sqrt(sigma2)) + 3)
    for shift in shifts:
        loss = (2 * shift * y + shift * shift) / (2 * float(sigma2))
        combined: dict[float, float] = {}
        for (old, mass), (new, p) in itertools.product(atoms.items(), zip(loss, law.pmf(y), strict=True)):
            key = round(old + float(new), 9)
            combined[key] = combined.get(key, 0.0) + mass * float(p)
        atoms = combined
    return sum(mass * -math.expm1(eps - loss) for loss, mass in atoms.items() if loss > eps)


def summed_delta(sigma2: Fraction, shifts: tuple[int, ...], eps: float) -> float:
    """The same, from the law of the weighted sum of noises."""
    y = np.arange(-math.ceil(14 * math.sqrt(sigma2)) - 2, math.ceil(14 * math.sqrt(sigma2)) + 3)
    pmf, law = DiscreteGaussian(sigma2).pmf(y), np.ones(1)
    for shift in shifts:
        apart = np.zeros((len(y) - 1) * shift + 1)
        apart[::shift] = pmf
        law = np.convolve(law, apart)
    total = np.arange(len(law)) - len(law) // 2
    loss = (2 * total + sum(k * k for k in shifts)) / (2 * float(sigma2))
    return float((law * -np.expm1(np.minimum(0.0, eps - loss))).sum())


@pytest.mark.parametrize("eps", [0, 0.5, 1, 3])
@pytest.mark.parametrize("shifts", [(1,), (1, 1), (2,), (1, 1, 1), (3,), (2, 1)])
def test_delta_of_whole_vectors_is_never_below_the_enumerated_one(shifts, eps):
    m, square = nz.Gaussian(2, grid=1), sum(k * k for k in shifts)
    moved = Sensitivity(sum(shifts), square, max(shifts), len(shifts), neighbours=nz.Neighbours.ADD_REMOVE)
    truth = enumerated_delta(Fraction(4), shifts, eps)
    assert m.delta_at(eps, moved) >= truth * (1 - 1e-9)
    assert m.delta_at(eps, moved) == pytest.approx(truth, rel=1e-6), "delta is exact"


VECTORS = [(2, 8, 2, 8), (3, 8, 2, 3), ("3/2", 9, 3, 9), (1, 5, 2, 5), ("4/5", 3, 1, 3), (4, 13, 3, 4), (9, 17, 4, 17)]


@pytest.mark.parametrize(("sigma", "square", "largest", "count"), VECTORS)
def test_no_whole_vector_loses_more_than_the_worst(sigma, square, largest, count):
    """All vectors within the limits, up to order: the largest delta among them is what is stated; so is it composed."""
    m = nz.Gaussian(sigma, grid=1)
    moved = Sensitivity(square, square, largest, count, neighbours=nz.Neighbours.ADD_REMOVE)
    vectors = [
        v
        for n in range(1, min(count, square) + 1)
        for v in itertools.combinations_with_replacement(range(1, largest + 1), n)
        if sum(k * k for k in v) <= square and (n == min(count, square) or sum(k * k for k in v) == square)
    ]
    promise = m.guarantee(moved)
    for eps in (0.0, 0.4, 1.1, 2.3):
        truth = max(summed_delta(m.sigma**2, v, eps) for v in vectors)
        assert truth * (1 - 1e-9) <= m.delta_at(eps, moved) <= truth * 1.02
        assert truth * (1 - 1e-9) <= promise.delta_at(eps) <= truth * 1.04
        twice = max(summed_delta(m.sigma**2, v + w, eps) for v in vectors[-4:] for w in vectors[-4:])
        assert twice * (1 - 1e-9) <= (promise * 2).delta_at(eps)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("square", "largest"), [(2, 1), (3, 1), (10, 1), (8, 2), pytest.param(100, 10, marks=pytest.mark.slow), (100, 1)]
)
@pytest.mark.parametrize("promise", [nz.Approx(1, "1e-6"), nz.Approx("1/10", "1e-9"), nz.Approx(3, "1e-6")])
def test_whole_vectors_need_no_more_noise_than_a_fine_grid(square, largest, promise):
    """Up to half a per cent; by zCDP alone it would be six."""
    moved = Sensitivity(square, square, largest, square, neighbours=nz.Neighbours.ADD_REMOVE)
    whole, fine = (nz.calibrate(nz.Gaussian, promise, sensitivity=moved, grid=grid) for grid in (1, None))
    assert abs(whole.sigma / fine.sigma - 1) < 0.005
    assert Fraction(whole.delta_at(promise.epsilon, moved)) <= promise.delta


@pytest.mark.parametrize("sigma", [100, 140, 400, 70_000, 10**7])
def test_wide_sums_are_integrals_nearly(sigma):
    """On both sides of where summing ends, and beyond what can be summed: above the analytic curve, and hardly."""
    moved = Sensitivity(
        3 * sigma // 10, (3 * sigma // 10) ** 2, 3 * sigma // 10, 1, neighbours=nz.Neighbours.ADD_REMOVE
    )
    m = nz.Gaussian(sigma, grid=1)
    for eps in (0, "1/2", 1, 2):
        analytic = gaussian_delta(moved.linf / sigma, Fraction(eps))
        if m._moved(moved, moved.l2_squared):
            assert analytic * (1 - 1e-3) <= m.delta_at(eps, moved) <= analytic * 1.02
        if sigma < 1000:
            assert m.delta_at(eps, moved) >= summed_delta(
                Fraction(sigma) ** 2, (int(moved.linf),), float(Fraction(eps))
            ) * (1 - 1e-9)


@pytest.mark.parametrize("sigma", ["1/10", "1e-30", "1/2", 1, 10**6])
@pytest.mark.parametrize("distance", ["1/2", 1, "3/2", 7, 500, 10**9])
def test_any_noise_and_any_distance_has_a_delta(sigma, distance):
    m = nz.Gaussian(sigma, grid=1)
    for eps in (0, 1, 800):
        assert 0 <= m.delta_at(eps, distance) <= 1
        if Fraction(distance) <= 500 * m.sigma:
            assert 0 <= (m.guarantee(distance) * 3).delta_at(eps) <= 1


def test_an_unlabelled_distance_is_not_taken_for_a_single_number():
    m = nz.Gaussian(2, grid=1)
    one = Sensitivity(2, 4, 2, 1, neighbours=nz.Neighbours.ADD_REMOVE)
    assert m.delta_at(1, 2) > m.delta_at(1, one)


def test_the_discrete_curve_lies_above_the_analytic_one():
    assert nz.Gaussian(4, grid=1).delta_at("1/2") == pytest.approx(0.002752923676329225, rel=1e-8)
    assert gaussian_delta(Fraction(1, 4), Fraction(1, 2)) == pytest.approx(0.002708880218318193, rel=1e-12)


def test_a_fine_grid_follows_the_analytic_curve_from_above():
    analytic = gaussian_delta(Fraction(1, 4), Fraction(1))
    assert analytic < nz.Gaussian(4).delta_at(1) < analytic * (1 + 1e-6)


def test_a_coarse_grid_falls_back_on_zcdp():
    m = nz.Gaussian(1, grid="1/2")
    assert m.delta_at(6) == zcdp_delta(m.guarantee(1).rho, Fraction(6))


@pytest.mark.parametrize(
    ("eps", "delta", "sigma"),
    [
        ("0.1", "1e-5", 30.74956613197745),
        (1, "1e-6", 4.224679),
        (8, "1e-6", 0.652935),
        ("0.01", "1e-10", 501.29213292600076),
    ],
)
def test_calibration_is_analytic_and_rounds_up(eps, delta, sigma):
    m = nz.calibrate(nz.Gaussian, nz.Approx(eps, delta), sensitivity=1)
    assert Fraction(m.delta_at(eps)) <= Fraction(delta)
    assert sigma * (1 - 1e-6) <= float(m.sigma) <= sigma * (1 + 2e-6)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.fractions("1/10", 5), st.integers(2, 12), st.fractions("1/100", 100))
def test_calibration_keeps_its_promise_and_wastes_little(eps, digits, size):
    promise = nz.Approx(eps, Fraction(1, 10**digits))
    for grid in (None, 1):
        m = nz.calibrate(nz.Gaussian, promise, sensitivity=size, grid=grid)
        assert Fraction(m.delta_at(eps, size)) <= promise.delta
        assert Fraction(nz.Gaussian(m.sigma * 999 / 1000, grid=m.grid).delta_at(eps, size)) > promise.delta


def test_zcdp_calibration_is_exact():
    m = nz.calibrate(nz.Gaussian, nz.ZCDP("1/8"), sensitivity=3, grid=1)
    assert m.sigma == 6
    assert m.guarantee(3).rho == Fraction(1, 8)


def test_epsilon_inverts_delta():
    m = nz.Gaussian(3)
    eps = m.epsilon_at("1e-6")
    assert Fraction(m.delta_at(eps)) <= Fraction("1e-6") < Fraction(m.delta_at(eps * (1 - 1e-9)))


def test_no_pure_promise():
    with pytest.raises(InputError, match="no pure guarantee"):
        nz.calibrate(nz.Gaussian, nz.Pure(1))
