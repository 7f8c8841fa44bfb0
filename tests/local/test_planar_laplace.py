"""Planar Laplace on a lattice: the metric guarantee by enumeration, exact coins, the law of draws, broken twins."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.goodness import ALPHA, p_value
from tests.tapes import exp

from noisette import local
from noisette.errors import InputError, PrivacyError
from noisette.local.planar_laplace import _acceptance
from noisette.privacy import Neighbours, Pure

AROUND = list(product(range(-40, 41), repeat=2))


def law(rate, x=(0, 0)):
    """The probabilities of all lattice points around x, by definition; what lies beyond has less than 1e-12."""
    weights = {y: math.exp(-rate * math.dist(y, x)) for y in AROUND}
    total = sum(math.exp(-rate * math.hypot(*y)) for y in product(range(-200, 201), repeat=2))
    return {y: w / total for y, w in weights.items()}


def metric_faults(protocol, claimed):
    """Pairs of places with a report whose probabilities are further apart than claimed."""
    step = float(protocol.step)
    faults = []
    for x, other in product(product(range(3), repeat=2), repeat=2):
        most = max(
            protocol.weight(y, np.multiply(x, step)) / protocol.weight(y, np.multiply(other, step))
            for y in product(range(-3, 6), repeat=2)
        )
        if most > math.exp(float(claimed.between(Fraction(math.dist(x, other) * step).limit_denominator(10**12)))) * (
            1 + 1e-9
        ):
            faults.append((x, other))
    return faults


@pytest.mark.slow
def test_the_ratio_is_e_to_the_epsilon_times_distance_and_tight():
    protocol = local.PlanarLaplace("0.05", step=10)
    assert metric_faults(protocol, protocol.guarantee()) == []
    bold = local.PlanarLaplace("0.049", step=10).guarantee()
    assert metric_faults(protocol, bold)
    ratio = protocol.weight((0, 0), (0, 0)) / protocol.weight((0, 0), (30, 40))
    assert ratio == pytest.approx(math.exp(0.05 * 50))


@pytest.mark.slow
def test_the_normaliser_is_the_same_for_all_places():
    protocol = local.PlanarLaplace("0.2", step=10)
    totals = [sum(protocol.weight(y, x) for y in AROUND) for x in ((0, 0), (30, -20))]
    assert totals[0] == pytest.approx(totals[1], rel=1e-9)


def test_the_acceptance_is_enclosed():
    for a, b in ((0, 0), (1, 0), (3, 4), (5, -7), (1000, 1)):
        low, high = _acceptance(Fraction(1, 3), a, b)(80)
        near = float(exp(Fraction(-math.hypot(a, b) / 3 + 0.7 * (abs(a) + abs(b)) / 3)))
        assert 0 <= low <= high <= low + (1 << 12)
        assert low / 2**80 == pytest.approx(near, rel=1e-9)


def fit(protocol, drawn, rate):
    chances = law(rate)
    counts = dict(
        zip(*(lambda f, n: (map(tuple, f.tolist()), n))(*np.unique(drawn, axis=0, return_counts=True)), strict=True)
    )
    order = sorted(chances, key=lambda y: math.hypot(*y))
    return p_value([counts.get(y, 0) for y in order], [chances[y] for y in order])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("step", [10, 25])
def test_many_clients_follow_the_law(step):
    protocol = local.PlanarLaplace("0.1", step=step)
    drawn = protocol.clients([(3 * step, -step)] * 20_000) - [3, -1]
    assert fit(protocol, drawn, 0.1 * step) > ALPHA
    loud = local.PlanarLaplace("0.125", step=step).clients([(0, 0)] * 20_000)
    assert fit(protocol, loud, 0.1 * step) < ALPHA


def test_one_client_follows_the_law():
    protocol = local.PlanarLaplace("0.1", step=10)
    one = np.array([protocol.client((0.0, 0.0)) for _ in range(400)])
    assert fit(protocol, one, 1.0) > ALPHA  # fails with p < 1e-12


def test_the_error_is_the_quantile_of_the_distance():
    protocol = local.PlanarLaplace("0.01", step=10)
    far = np.linalg.norm(protocol.places(protocol.clients([(0, 0)] * 20_000)), axis=1)
    assert np.mean(far <= protocol.error(0.95)) == pytest.approx(0.95, abs=0.02)  # the coins are fixed
    assert far.mean() == pytest.approx(200, rel=0.05)  # E r = 2/epsilon


def test_it_is_no_differential_privacy_and_compares_with_none():
    promise = local.PlanarLaplace("0.01", step=10).guarantee()
    for compare in (
        lambda: promise <= Pure(1), lambda: Pure(1) >= promise, lambda: Pure(1) <= promise,
        lambda: promise + Pure(1), lambda: Pure(1, neighbours=Neighbours.REPLACE) + promise, lambda: promise < promise,
    ):  # fmt: skip
        with pytest.raises(PrivacyError, match="no differential privacy"):
            compare()
    assert promise != Pure(1)
    assert (promise * 3).between(10) == Fraction(3, 10)
    assert promise.between(100, on_lattice=False) > promise.between(100)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: local.PlanarLaplace(0, step=1), "epsilon must be above 0"),
        (lambda: local.PlanarLaplace(1, step=100), "epsilon times step"),
        (lambda: local.PlanarLaplace("0.1", step=1).client((1, 2, 3)), "a pair of numbers"),
        (lambda: local.PlanarLaplace("0.1", step=1).client((math.nan, 2)), "a pair of numbers"),
        (lambda: local.PlanarLaplace("0.1", step=1).client("ab"), "a pair of numbers"),
        (lambda: local.PlanarLaplace("0.1", step=1).places([[0.5, 1]]), "These are not reports"),
        (lambda: local.PlanarLaplace("0.1", step=1).guarantee().between(-1), "metres must be at least 0"),
    ],
)
def test_bad_input_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
