"""Protocols for means: published variances, bias and variance by enumeration, error bars, and broken twins."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.contracts.test_local import Twin, drawn_fit, law_faults, privacy_faults
from tests.goodness import ALPHA, fewest

from noisette import local
from noisette.errors import InputError
from noisette.local.means import examples
from noisette.privacy import Pure


def closed_form(kind, epsilon, t):
    e, s = math.exp(epsilon), math.exp(epsilon / 2)
    duchi, piecewise = ((e + 1) / (e - 1)) ** 2 - t * t, t * t / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
    share = 1 - math.exp(-epsilon / 2) if epsilon > 0.61 else 0
    return {"Duchi": duchi, "Piecewise": piecewise, "Hybrid": share * piecewise + (1 - share) * duchi}[kind.__name__]


KINDS = (local.Duchi, local.Piecewise, local.Hybrid)


@pytest.mark.parametrize(("epsilon", "worst"), [(1, (4.683, 5.224, 4.289)), (4, (1.076, 0.241, 0.219))])
def test_published_variances(epsilon, worst):
    assert tuple(round(kind(epsilon).variance(), 3) for kind in KINDS) == worst


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.2, 0.7, 1, 2, 4, 7])
def test_the_lattice_keeps_the_variance_within_one_percent(kind, epsilon):
    for t in (-1, -0.77, -0.5, 0, 0.123, 0.5, 1):
        assert kind(epsilon).variance(value=t) == pytest.approx(closed_form(kind, epsilon, t), rel=0.01)


def moments(protocol, value):
    """Expectation and variance of one report's estimate, by enumeration."""
    chances = np.array([float(protocol.likelihood(y, value)) for y in protocol.reports()])
    scores = np.array([protocol.estimate([y]).mean for y in protocol.reports()])
    return chances @ scores, chances @ scores**2 - (chances @ scores) ** 2


def between(protocol):
    low, high = float(protocol.low), float(protocol.high)
    return [low + (high - low) * part for part in (0, 0.1, 0.34, 0.5, 0.81, 1)]


def mean_faults(protocol):
    faults = set()
    for value in between(protocol):
        mean, variance = moments(protocol, value)
        faults |= {"biased"} if abs(mean - value) > 1e-7 else set()
        faults |= {"variance"} if not np.isclose(variance, protocol.variance(value=value), rtol=1e-6) else set()
        faults |= {"worst"} if variance > protocol.variance() * (1 + 1e-9) else set()
    return faults


@pytest.mark.parametrize("protocol", examples, ids=repr)
def test_estimates_are_unbiased_with_the_stated_variance_between_lattice_points_too(protocol):
    assert mean_faults(protocol) == set()
    assert max(protocol.variance(value=v) for v in np.linspace(*map(float, (protocol.low, protocol.high)), 101)) >= (
        0.99 * protocol.variance()
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("protocol", examples, ids=repr)
def test_broken_twins_are_convicted(protocol):
    def stretched(reports):
        found = protocol.estimate(reports)
        return replace(found, mean=found.mean * 1.01 + 0.01)

    assert "biased" in mean_faults(Twin(protocol, estimate=stretched))
    assert "variance" in mean_faults(Twin(protocol, variance=lambda value=None: 0.99 * protocol.variance(value=value)))
    modest = Twin(protocol, guarantee=lambda: Pure(protocol.epsilon * Fraction(999, 1000)))
    assert privacy_faults(modest) == ["not private"]
    likely = Twin(protocol, likelihood=lambda y, v: protocol.likelihood(y, v) * Fraction(11, 10))
    assert law_faults(likely)
    loud = replace(protocol, epsilon=protocol.epsilon + Fraction(1, 4))
    if loud.cells == protocol.cells:
        assert drawn_fit(Twin(protocol, clients=loud.clients), protocol.low, 40_000) < ALPHA


def test_an_epsilon_that_is_too_small_is_convicted():
    loud = local.Piecewise("6/5", steps=8)
    assert privacy_faults(loud) == []
    assert privacy_faults(Twin(loud, guarantee=local.Piecewise(1, steps=8).guarantee)) == ["not private"]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("protocol", [kind(1, low=0, high=10) for kind in KINDS], ids=repr)
def test_error_bars_hold(protocol):
    values, held, rounds = np.linspace(0, 10, 301) ** 2 / 10, 0, 300
    for _ in range(rounds):
        low, high = protocol.estimate(protocol.clients(values)).interval(0.8)
        held += low <= values.mean() <= high
    assert held >= fewest(rounds, 0.8)  # fails with p < 1e-12


def test_many_people_give_their_mean():
    protocol = local.Hybrid(2, low=18, high=90)
    values = np.linspace(20, 60, 200_001)
    found = protocol.estimate(protocol.clients(values))
    assert abs(found.mean - values.mean()) < 7 * found.variance() ** 0.5  # the coins are fixed
    assert found.interval(0.95)[0] < found.mean < found.interval(0.95)[1]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: local.Duchi(1, low=1, high=1), "low must be below high"),
        (lambda: local.Piecewise(1, steps=1 << 21), "steps must be at most"),
        (lambda: local.Hybrid(1).clients([[1.0]]), "a list of numbers"),
        (lambda: local.Hybrid(1).client(1.5), "outside the declared bounds"),
        (lambda: local.Hybrid(0), "epsilon must be above 0"),
    ],
)
def test_bad_input_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("epsilon", ["1e-9", 100])
@pytest.mark.parametrize(
    ("kind", "more", "value"),
    [(local.Duchi, {}, 0.5), (local.Hybrid, {}, 0.5), (local.Piecewise, {}, 0.5), (local.SquareWave, {}, 0.5),
     (local.PrefixTree, {"length": 8}, 7), (local.PrivUnitG, {"dimension": 2, "candidates": 16}, (0.6, 0.8))],
)  # fmt: skip
def test_extremes_of_epsilon_keep_finite_estimates(kind, more, value, epsilon):
    protocol = kind(epsilon, **more)
    found = protocol.estimate(protocol.clients([value] * 50))
    numbers = getattr(found, "mean", getattr(found, "shares", None))
    assert np.isfinite(numbers).all()
    assert np.isfinite(found.variance()).all()
    assert all(np.isfinite(end).all() for end in found.interval(0.9))
