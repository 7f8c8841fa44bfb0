import math
from fractions import Fraction

import numpy as np
import pytest

from noisette.audit.divergence import hockey_stick, largest_loss, laws_of, renyi
from noisette.mechanisms import Gaussian, Geometric, RandomizedResponse
from noisette.privacy.convert import approx_delta


@pytest.mark.parametrize("e0", ["1/10", 1, 4])
@pytest.mark.parametrize("part", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(2)])
def test_randomized_response_is_the_worst_pure_mechanism(e0, part):
    P, Q = laws_of(RandomizedResponse(e0), 0, 1)
    stated = approx_delta(Fraction(e0), Fraction(0), part * Fraction(e0))
    assert hockey_stick(P, Q, float(part * Fraction(e0))) == pytest.approx(float(stated), abs=1e-14)


def test_both_directions_count():
    P, Q = np.array([0.9, 0.1]), np.array([0.5, 0.5])
    assert hockey_stick(P, Q, 1.0) == hockey_stick(Q, P, 1.0) == pytest.approx(0.5 - 0.1 * math.e)
    assert renyi(P, Q, 2) == renyi(Q, P, 2)


def test_what_is_not_enumerated_is_never_understated():
    whole = hockey_stick(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5]), 0.5)
    part = hockey_stick(np.array([0.5, 0.3]), np.array([0.2, 0.3]), 0.5)
    assert part >= whole


def test_disjoint_laws_have_infinite_loss():
    P, Q = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert largest_loss(P, Q) == math.inf == renyi(P, Q, 2)
    assert hockey_stick(P, Q, 100.0) == 1


def test_outputs_that_neither_law_has_do_not_count():
    assert largest_loss(np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.5, 0.0])) == 0


@pytest.mark.parametrize("scale", ["1/3", 1, 40])
def test_geometric_loss_is_distance_over_scale(scale):
    m = Geometric(scale)
    assert largest_loss(*laws_of(m, 0, 3)) == pytest.approx(float(3 / m.scale), rel=1e-9)


@pytest.mark.parametrize("order", [1.25, 1.5, 2, 3])
def test_discrete_gaussians_reach_rho_at_whole_orders_and_stay_below_between(order):
    P, Q = laws_of(Gaussian("1/2", grid=1), 0, 1, also=(-1, -2, 2))
    measured = renyi(P, Q, order) / order
    assert (measured == pytest.approx(2, rel=1e-9)) == (order in (2, 3))
    assert measured < 2 * (1 + 1e-9)
