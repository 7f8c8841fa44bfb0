import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.privacy import meaning
from noisette.privacy.meaning import posterior_bounds, tradeoff_curve

ALPHAS = np.concatenate([[0], np.geomspace(1e-9, 0.01, 50), np.linspace(0.01, 1, 200)])
NORMAL = NormalDist()


def response(epsilon, alphas=ALPHAS, delta=0.0):
    """The two segments of randomized response."""
    steep, flat = 1 - delta - math.exp(epsilon) * alphas, math.exp(-epsilon) * (1 - delta - alphas)
    return np.maximum(0, np.maximum(steep, flat))


def normal(mu, alphas=ALPHAS):
    inner = [NORMAL.cdf(NORMAL.inv_cdf(1 - a) - mu) if 0 < a < 1 else 1 - a for a in alphas]
    return np.array(inner)


def best_tests(p, q, alphas):
    """The exact trade-off between two laws: likelihood ratios in order, linear between (Neyman-Pearson)."""
    order = np.argsort(-np.asarray(p) / np.asarray(q), kind="stable")
    levels = np.concatenate([[0], np.cumsum(np.asarray(q)[order])])
    return np.interp(alphas, levels, 1 - np.concatenate([[0], np.cumsum(np.asarray(p)[order])]))


def assert_just_below(found, truth, gap=1e-3):
    assert np.all(found <= truth + 1e-15)
    assert np.max(truth - found) <= gap


@pytest.mark.parametrize("epsilon", ["0", "0.01", "0.5", "1", "3", "10", "300"])
def test_pure_is_two_segments(epsilon):
    assert_just_below(tradeoff_curve(nz.Pure(epsilon), ALPHAS), response(float(epsilon)), 1e-11)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), (1, "0.01"), (0, "0.2"), (2, "0.999")])
def test_delta_lowers_the_segments(epsilon, delta):
    assert_just_below(tradeoff_curve(nz.Approx(epsilon, delta), ALPHAS), response(epsilon, delta=float(delta)), 1e-11)


@pytest.mark.parametrize("mu", ["0.01", "0.2", "1", "2", "5", "10"])
def test_gaussian_noise_has_the_closed_form(mu):
    guarantee = nz.Gaussian(1 / Fraction(mu), grid=Fraction(1, 2**60)).guarantee(1)
    assert_just_below(tradeoff_curve(guarantee, ALPHAS), normal(float(mu)))


def test_composed_randomized_response_is_its_exact_test():
    p = np.array([1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))])
    many, few = np.ones(1), np.ones(1)
    for _ in range(5):
        many, few = np.outer(many, p).ravel(), np.outer(few, p[::-1]).ravel()
    assert_just_below(tradeoff_curve(nz.Pure(1) * 5, ALPHAS), best_tests(many, few, ALPHAS))


def test_geometric_noise_is_its_exact_test():
    m, support = nz.Geometric(2), np.arange(-80, 84)
    p, q = ([float(m.law.pmf(int(y) - x)) for y in support] for x in (3, 0))
    assert_just_below(tradeoff_curve(m.guarantee(3), ALPHAS), best_tests(p, q, ALPHAS))


@pytest.mark.parametrize(
    "guarantee",
    [
        nz.ZCDP("0.1"),
        pytest.param(nz.Approx(1, "1e-9") + nz.ZCDP("0.1"), marks=pytest.mark.slow),
        nz.Pure("0.1") * 100,
        nz.Approx(1, "0.01") * 3,
    ],
    ids=str,
)
def test_curves_are_convex_and_never_above_guessing(guarantee):
    alphas = np.linspace(0, 1, 201)
    betas = tradeoff_curve(guarantee, alphas)
    assert np.all(np.diff(betas, 2) >= -1e-12)
    assert np.all(np.diff(betas) <= 0)
    assert np.all(betas <= 1 - alphas)
    for epsilon in (0.0, 0.3, 1.7, 4.0):  # no epsilon would raise it by more than the tolerance
        assert np.max(1 - guarantee.delta_at(epsilon) - math.exp(epsilon) * alphas - betas) <= 1e-3


def test_curves_use_few_epsilons(monkeypatch):
    asked = []
    monkeypatch.setattr(nz.ZCDP, "delta", lambda self, e: asked.append(e) or max(0.0, 0.5 - e / 8))
    tradeoff_curve(nz.ZCDP(1), [0.1])
    assert len(asked) <= 100


@pytest.mark.parametrize("alphas", [[-0.1], [1.1], [math.nan]])
def test_false_alarm_rates_are_probabilities(alphas):
    with pytest.raises(InputError, match="between 0 and 1"):
        tradeoff_curve(1, alphas)


@pytest.mark.parametrize("prior", [0.001, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("epsilon", [0, 0.1, 1, 5])
def test_beliefs_move_by_their_odds(prior, epsilon):
    low, high = posterior_bounds(prior, epsilon)
    e = math.exp(epsilon)
    assert low == pytest.approx(prior / (prior + (1 - prior) * e), rel=1e-11)
    assert high == pytest.approx(prior * e / (prior * e + 1 - prior), rel=1e-11)
    assert low <= prior <= high
    assert posterior_bounds(prior, nz.Pure(epsilon)) == (low, high)


def test_the_worked_example():
    assert round(posterior_bounds("0.1", 1)[1], 4) == 0.2320


@pytest.mark.parametrize("prior", [0, 1])
def test_certainty_does_not_move(prior):
    assert posterior_bounds(prior, nz.ZCDP(1)) == (prior, prior)


def test_with_a_delta_beliefs_are_bounded_up_to_a_chance():
    assert posterior_bounds(0.1, nz.Approx(1, "1e-6")) == (0.0, 1.0)
    assert posterior_bounds(0.1, nz.Approx(1, "1e-6"), chance="1e-7") == (0.0, 1.0)
    low, high = posterior_bounds(0.1, nz.Approx(1, "1e-6"), chance="1e-3")
    assert posterior_bounds(0.1, 1)[1] < high < posterior_bounds(0.1, 1.1)[1]
    assert low > posterior_bounds(0.1, 1.1)[0]
    assert posterior_bounds(0.1, 1, chance="0.1")[1] <= posterior_bounds(0.1, 1)[1]


@pytest.mark.parametrize("mu", [0.25, 1, 3])
@pytest.mark.parametrize("chance", [1e-9, 1e-3, 0.2])
def test_the_chance_is_kept_by_gaussian_noise(mu, chance):
    """The loss is N(±mu^2/2, mu^2): its tails beyond the stated bounds are within the chance, and not by far."""
    low, high = posterior_bounds(0.5, nz.Gaussian(1 / mu).guarantee(1), chance=chance)
    loss = -math.log(low / (1 - low))
    assert math.log(high / (1 - high)) == pytest.approx(loss, rel=1e-4)
    law = NormalDist(mu * mu / 2, mu)
    assert law.cdf(-loss) + law.cdf(mu * mu - loss) <= chance  # below -loss; above loss, mirrored
    assert law.cdf(-(loss / 2)) + law.cdf(mu * mu - loss / 2) > chance


@pytest.mark.parametrize("wrong", [{"prior": 1.1}, {"prior": -1}, {"prior": 0.5, "chance": 2}])
def test_beliefs_and_chances_are_probabilities(wrong):
    with pytest.raises(InputError, match="probability"):
        posterior_bounds(**{"guarantee": 1, **wrong})


def test_a_curve_that_ignored_epsilons_would_be_seen(monkeypatch):
    """The checks above can fail: with the first epsilons alone the Gaussian curve is too low."""
    monkeypatch.setattr(meaning, "_PROBES", 0)
    found = tradeoff_curve(nz.Gaussian(1).guarantee(1), ALPHAS)
    assert np.max(normal(1) - found) > 1e-3
