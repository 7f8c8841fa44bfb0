import math

import numpy as np
import pytest
from scipy.stats import norm

from noisette.attacks import guessing_ceiling, tracing_ceiling, tracing_mu
from noisette.errors import InputError
from noisette.mechanisms import Geometric, RandomizedResponse


def best_guess(m, choices):
    """The chance of the best guesser, who sees y and knows that every choice is as likely."""
    y = m.support(0)
    y = np.arange(y[0] - len(choices), y[-1] + len(choices))
    return float(np.max([m.pmf(y, x) for x in choices], axis=0).sum()) / len(choices)


@pytest.mark.parametrize("epsilon", ["1/10", 1, 3])
def test_two_choices_attain_the_ceiling(epsilon):
    m = Geometric.calibrated(RandomizedResponse(epsilon).guarantee(1))
    assert best_guess(m, [0, 1]) == pytest.approx(guessing_ceiling(epsilon))


@pytest.mark.parametrize("k", [3, 6, 20])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_more_choices_stay_below(k, epsilon):
    assert 1 / k < best_guess(Geometric((k - 1) / epsilon), range(k)) < guessing_ceiling(epsilon, k)


def test_guessing_limits():
    assert guessing_ceiling(0, 7) == pytest.approx(1 / 7)
    assert guessing_ceiling(1000) == 1.0


@pytest.mark.parametrize("mu", [0, 0.3, 1, 4.71])
@pytest.mark.parametrize("fpr", [1e-6, 0.01, 0.5, 0.99])
def test_tracing_ceiling_is_the_gaussian_trade_off(mu, fpr):
    assert tracing_ceiling(mu, fpr) == pytest.approx(norm.cdf(norm.ppf(fpr) + mu))


def test_tracing_limits():
    assert tracing_ceiling(math.inf, 0.01) == 1.0
    assert tracing_mu(100, 20_000, "0.3") == pytest.approx(4.714, abs=1e-3)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: guessing_ceiling(-1),
        lambda: guessing_ceiling(1, 1),
        lambda: tracing_mu(0, 5, 1),
        lambda: tracing_mu(5, 5, 0),
        lambda: tracing_ceiling(-1, 0.1),
        lambda: tracing_ceiling(math.nan, 0.1),
        lambda: tracing_ceiling(1, 0),
        lambda: tracing_ceiling(1, 1),
        lambda: tracing_ceiling(1, math.nan),
    ],
)
def test_refusals(bad):
    with pytest.raises(InputError):
        bad()
