import math

import pytest

from noisette.attacks import Answerer, averaging, averaging_forecast, exact
from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric, Laplace
from noisette.privacy import ZCDP, Pure

SDS = 8  # a mean of thousands of draws is further off with p < 1e-13 (Chernoff, Laplace noise)


def test_exact_answers_need_no_averaging():
    attack = averaging(130, exact, 1)
    assert (attack.estimate, attack.error, attack.sd, attack.spent, attack.refused) == (130, 0, 0, None, False)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("mechanism", [Geometric(10), Laplace(10), Gaussian(10)])
def test_noise_averages_out_where_nobody_counts(mechanism):
    attack = averaging(130, mechanism, 4000)
    assert attack.sd == pytest.approx(math.sqrt(mechanism.variance() / 4000))
    assert attack.error < SDS * attack.sd < 2
    assert attack.answers == 4000


@pytest.mark.parametrize(("budget", "answers"), [(5, 10), ("1/2", 1), ("0.49", 0)])
def test_a_budget_ends_it(budget, answers):
    attack = averaging(130, Answerer(Geometric(2), budget), 100)
    assert (attack.answers, attack.wanted, attack.refused) == (answers, 100, True)
    assert attack.spent == Pure("1/2") * answers
    assert "refused" in str(attack)
    assert (attack.estimate is None) == (answers == 0) == (attack.error is None)


def test_a_larger_budget_lets_it_finish():
    attack = averaging(130, Answerer(Geometric(2), 50), 100)
    assert not attack.refused
    assert attack.spent == Pure(50)
    assert attack.error < SDS * attack.sd  # fails with p < 1e-13: the law of a sum of a hundred draws
    assert str(attack).endswith("50-DP spent.")


def test_the_forecast_is_what_happens():
    forecast = averaging_forecast(Geometric(2), (1, 4, 10))
    for t, sd, epsilon, _ in forecast.rows:
        attack = averaging(0, Answerer(Geometric(2), 100), t)
        assert (attack.sd, attack.spent) == (sd, Pure(epsilon))


def test_both_curves():
    """sd = sqrt(2)/(epsilon sqrt(t)) for small epsilon, while t epsilon adds up; at a delta it grows as sqrt(t)."""
    rows = averaging_forecast(Geometric(1000), (1, 100, 10_000), delta="1e-6").rows
    for t, sd, basic, least in rows:
        assert sd == pytest.approx(math.sqrt(2) * 1000 / math.sqrt(t), rel=1e-6)
        assert basic == pytest.approx(t / 1000)
        assert least == pytest.approx((Pure("1/1000") * t).epsilon_at("1e-6"), rel=1e-6)
    assert rows[2][3] < rows[2][2] / 10


def test_gaussian_noise_has_no_pure_cost():
    forecast = averaging_forecast(Gaussian(10, grid=1), (20,))
    [(_, _, basic, least)] = forecast.rows
    assert basic == math.inf
    assert 1.9945 < least < ZCDP("1/10").epsilon_at("1e-6")
    assert "none" in str(forecast)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: averaging(130, exact, 0),
        lambda: averaging(130, exact, 1.5),
        lambda: averaging_forecast(Geometric(1), (0,)),
        lambda: averaging_forecast(Geometric(1), delta=0),
    ],
)
def test_refusals(bad):
    with pytest.raises(InputError):
        bad()
