"""Odometers: they never go back and stay near the filter; `test_adversaries.py` tries to break them."""

import math

import pytest

import noisette as nz
from noisette.errors import InputError, PrivacyError
from noisette.privacy import Neighbours, Odometer


def test_an_odometer_never_goes_back():
    o, seen = Odometer("1e-6"), [0.0]
    costs = [
        nz.Pure("0.01"),
        nz.Approx("0.1", "1e-10"),
        nz.Pure("0.3") * 3,
        nz.ZCDP("0.01"),
        nz.Gaussian(3).guarantee(1),
    ]
    for i in range(60):
        o.charge(costs[min(i // 10, 4)])
        seen.append(o.epsilon)
    assert seen == sorted(seen)
    assert seen[1] == 0.01
    o.charge(nz.Approx("0.1", "1e-7"))
    assert o.epsilon == math.inf


def test_the_costs_own_deltas_end_with_their_reserve():
    o = Odometer("1e-6", reserve="1e-7")
    o.charge(nz.Approx("0.1", "1e-7"))
    assert o.epsilon < 1
    o.charge(nz.Approx("0.1", "1e-12"))
    assert o.epsilon == math.inf


def test_a_reserve_is_a_part_of_delta():
    with pytest.raises(InputError, match="reserve must lie between 0 and delta"):
        Odometer("1e-6", reserve="2e-6")


def test_an_odometer_is_hardly_above_the_filter():
    o = Odometer("1e-6")
    for _ in range(50):
        o.charge(nz.ZCDP("0.002"))
        assert o.epsilon >= nz.ZCDP(o._state.total.rho).epsilon_at("1e-6")
    assert o.epsilon <= 1.42 * nz.ZCDP("0.1").epsilon_at("1e-6")


def test_an_odometer_refuses_another_relation_and_stays():
    o = Odometer("1e-6")
    o.charge(nz.Pure("0.1", neighbours=Neighbours.REPLACE))
    with pytest.raises(PrivacyError):
        o.charge(nz.Pure("0.1", neighbours=Neighbours.ADD_REMOVE))
    assert o.epsilon == 0.1


@pytest.mark.parametrize("wrong", [lambda: Odometer(0), lambda: Odometer(1), lambda: Odometer("1e-6", first=0)])
def test_wrong_parameters(wrong):
    with pytest.raises(InputError):
        wrong()
