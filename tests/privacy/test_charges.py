"""What a cost takes by each rule."""

import math
from fractions import Fraction

import pytest

import noisette as nz
from noisette.privacy.charges import bounded, charge_of, square_of_pure
from noisette.privacy.convert import gaussian_delta
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import Response


@pytest.mark.parametrize("e", ["1/1000", "1/64", "0.016", "0.1", "1", "3", "20", "600", "701"])
def test_a_gaussian_dominates_what_is_pure(e):
    """The curves of delta, at every epsilon in question; and a slightly smaller one does not."""
    e0, square = Fraction(e), square_of_pure(Fraction(e))
    mu, least = Fraction(math.sqrt(square) * (1 + 1e-15)), Fraction(math.sqrt(square) * 0.999)
    response = [nz.Pure(e0).delta_at(e0 * i / 8) for i in range(8)]
    assert all(gaussian_delta(mu, e0 * i / 8) >= d * (1 - 1e-12) for i, d in enumerate(response))
    assert e0 > 20 or gaussian_delta(least, Fraction(0)) < response[0]


def test_a_mix_adds_its_pure_parts_plainly_and_one_pair_for_the_rest():
    pure, noisy = nz.Pure("0.15"), nz.Gaussian(40).guarantee(1)
    alone, mix = charge_of(noisy), charge_of(pure + noisy)
    assert mix.epsilon is None
    assert mix.plain == Fraction(15, 100) + alone.plain < Fraction("0.4")
    assert mix.aside == alone.aside == Fraction(1, 10**11)


def test_many_small_parts_are_cheaper_by_their_rho():
    many = charge_of(nz.Pure("0.01") * 1000 + nz.Gaussian(40).guarantee(1))
    assert many.plain < 10 / 3


def test_long_sums_are_rounded_up():
    a, b = Fraction(1, 3**400), Fraction(1, 5**300)
    total = bounded(a, a) + bounded(b, b)
    for amount in (total.epsilon, total.delta):
        assert a + b < amount < a + b + Fraction(1, 2**255)


@pytest.mark.parametrize("times", [2, 64, 65, 1000])
def test_many_releases_fail_about_as_often_as_all_together(times):
    d = Fraction(1, 10**9)
    charge = charge_of(nz.Approx("0.1", d, losses=once(Response(Fraction(1, 10), d))) * times)
    assert 1 - (1 - d) ** times <= charge.delta <= times * d
