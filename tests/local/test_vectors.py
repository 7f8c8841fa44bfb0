"""PrivUnitG over ranked candidates: published variances, unbiased estimates, error bars, broken twins."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.contracts.test_local import Twin, drawn_fit, law_faults, privacy_faults
from tests.goodness import ALPHA

from noisette import local
from noisette.errors import InputError
from noisette.local.contract import Aggregate
from noisette.local.vectors import UNIT, _normal, _scale, candidate, examples
from noisette.privacy import Pure


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("epsilon", "published"),
    [(4, 0.4353), (0.5, 25.18), (1, 6.330), (2, 1.617), (8, 0.1329)],
)
def test_published_variances(epsilon, published):
    assert local.PrivUnitG(epsilon, dimension=1000).variance(length=1) / 1000 == pytest.approx(published, rel=0.01)


@pytest.mark.slow
def test_the_best_top_is_found():
    e = math.exp(2)
    assert local.PrivUnitG(2, dimension=2, candidates=40).top == max(range(1, 40), key=lambda t: _scale(e, 40, t)[0])


def test_order_statistics_of_two_and_three():
    """E[max of 2] = 1/sqrt(pi), E[max of 3] = 3/(2 sqrt(pi)); with e = infinity only the first is chosen."""
    for n, most in ((2, 1 / math.sqrt(math.pi)), (3, 1.5 / math.sqrt(math.pi))):
        assert _scale(1e18, n, 1)[0] == pytest.approx(most, rel=1e-6)
        assert _scale(1.0, n, 1) == pytest.approx((0.0, 1.0), abs=1e-9)


def test_candidates_are_standard_normal():
    table = _normal() / UNIT
    assert table.mean() == pytest.approx(0, abs=1e-9)
    assert (table**2).mean() == pytest.approx(1, rel=1e-4)
    assert (table**4).mean() == pytest.approx(3, rel=0.01)
    drawn = np.concatenate([candidate(5, i, 1000) for i in range(50)]) / UNIT
    assert abs(drawn.mean()) < 0.03
    assert abs((drawn**2).mean() - 1) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("vector", [(1.0, 0, 0, 0), (0.5, -0.5, 0.5, 0.5), (0.0, 0.3, 0, 0)])
def test_the_mean_of_many_is_found_with_the_stated_variance(vector):
    protocol, people = local.PrivUnitG(3, dimension=4, candidates=32), 3000
    rows = protocol.clients([vector] * people)
    found = protocol.estimate(rows)
    each = np.array([protocol.estimate(row[None]).mean for row in rows])
    stated = protocol.variance(length=float(np.linalg.norm(vector)))
    assert each.var(axis=0).sum() == pytest.approx(stated, rel=0.15)  # the coins are fixed
    assert np.abs(found.mean - vector).max() < 5 * (stated / 4 / people) ** 0.5
    low, high = found.interval(0.99)
    assert ((low <= vector) & (vector <= high)).all()


@pytest.mark.parametrize("epsilon", ["1/2", 1, 3, 8])  # scales below and above 1
@pytest.mark.parametrize("people", [10**5, 10**9])
def test_an_interval_is_as_wide_as_the_noise(epsilon, people):
    """Of one coordinate: the variance along a vector, or across it, is that of a candidate over the scale's square."""
    protocol, norm = local.PrivUnitG(epsilon, dimension=2, norm=2, candidates=64, top=8), 2
    low, high = protocol.estimate(Aggregate(protocol, np.zeros(2, np.int64), people)).interval(0.95)
    across = norm / protocol.scale / math.sqrt(people)  # the deviation of the mean, for one candidate's unit variance
    along = across * math.sqrt(max(1.0, _scale(math.exp(protocol.epsilon), 64, 8)[1]))
    half = (high - low) / 2
    assert (half > 1.96 * along).all()
    assert (half < (3.5 if people == 10**9 else 6) * along).all()


@pytest.mark.parametrize("protocol", examples, ids=repr)
def test_broken_twins_are_convicted(protocol):
    modest = Twin(protocol, guarantee=lambda: Pure(protocol.epsilon * Fraction(999, 1000)))
    assert privacy_faults(modest) == ["not private"]
    assert law_faults(Twin(protocol, likelihood=lambda y, v: protocol.likelihood(y, v) * Fraction(11, 10)))


@pytest.mark.slow
def test_louder_clients_are_convicted():
    protocol = examples[0]
    loud = local.PrivUnitG(2, dimension=3, candidates=6, top=2, seed_bits=2)
    assert drawn_fit(Twin(protocol, clients=loud.clients), (1.0, 0, 0), 10_000) < ALPHA


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: local.PrivUnitG(1, dimension=2).client([1, 1]), "longer than the norm bound"),
        (lambda: local.PrivUnitG(1, dimension=2).client([1]), "a list of 2 numbers"),
        (lambda: local.PrivUnitG(1, dimension=2).client(["a", "b"]), "a list of 2 numbers"),
        (lambda: local.PrivUnitG(1, dimension=2, candidates=4, top=4), "top must be below candidates"),
        (lambda: local.PrivUnitG(1, dimension=2, seed_bits=64), "seed_bits must be at most 62"),
        (lambda: local.PrivUnitG(1, dimension=2).client([float("nan"), 0]), "longer than the norm bound"),
    ],
)
def test_bad_input_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
