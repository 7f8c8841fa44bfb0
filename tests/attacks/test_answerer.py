import math

import numpy as np
import pytest
from scipy.stats import norm

from noisette.attacks import Answerer, BudgetError, exact, guessing_ceiling, tracing_ceiling, tracing_mu
from noisette.attacks.answerer import given, spent_by
from noisette.errors import InputError, PrivacyError
from noisette.mechanisms import Gaussian, Geometric, RandomizedResponse
from noisette.privacy import ZCDP, Approx, Neighbours, Pure, sensitivity


def answers(ask, most=1000):
    count = 0
    while count < most:
        try:
            ask(7)
        except BudgetError:
            break
        count += 1
    return count


@pytest.mark.parametrize(
    ("mechanism", "budget", "count"),
    [
        (Geometric(2), 5, 10),
        (Geometric(2), Pure("0.49"), 0),
        (Geometric(10), Pure("0.3"), 3),  # exact tenths: 3 x 0.1 is 0.3
        (Geometric(2), Approx(1, "1e-6"), 2),
        (Geometric(10), ZCDP(1), 200),  # rho = 0.1^2 / 2 each
        (Gaussian(10, grid=1), ZCDP("1/10"), 20),
        (Gaussian(10, grid=1), Pure(5), 0),  # keeps no pure guarantee
    ],
)
def test_it_answers_as_often_as_the_budget_holds(mechanism, budget, count):
    ask = Answerer(mechanism, budget)
    assert answers(ask) == count
    assert ask.spent <= ask.budget
    assert ask.spent == ask.price * count or isinstance(budget, ZCDP)
    assert answers(ask) == 0


def test_gaussian_answers_within_an_approximate_budget():
    ask = Answerer(Gaussian(10, grid=1), Approx(1, "1e-6"))
    count = answers(ask)
    assert ask.spent == ZCDP("1/200") * count
    assert (ask.price * count).epsilon_at("1e-6") <= 1 < (ask.price * (count + 1)).epsilon_at("1e-6")
    assert (ZCDP("1/200") * count).epsilon_at("1e-6") > 1, (
        "the discrete Gaussian's own curve holds more than zCDP tells"
    )


def test_charges_before_it_draws():
    ask = Answerer(Geometric(2), 5)
    with pytest.raises(InputError):
        ask("many")
    assert ask.spent == Pure("1/2")


def test_sensitivity_sets_the_price():
    assert Answerer(Geometric(2), 5, sensitivity=3).price == Pure("3/2")
    counts = sensitivity.counts(4, neighbours=Neighbours.REPLACE)
    assert Answerer(Geometric(2), 5, sensitivity=counts).price == Pure(2, neighbours=Neighbours.REPLACE)


def test_relations_do_not_mix():
    budget = Pure(5, neighbours=Neighbours.ADD_REMOVE)
    ask = Answerer(Geometric(2), budget, sensitivity=sensitivity.count(neighbours=Neighbours.REPLACE))
    with pytest.raises(PrivacyError) as refused:
        ask(1)
    assert not isinstance(refused.value, BudgetError)


def test_a_bad_budget_is_refused():
    with pytest.raises(InputError, match="epsilon"):
        Answerer(Geometric(2), -1)


def test_only_an_answerer_counts():
    assert spent_by(exact) is None
    assert spent_by(Geometric(2)) is None
    assert spent_by(Answerer(Geometric(2), 1)) == Pure(0)


@pytest.mark.parametrize("ask", [lambda x: 1.0, lambda x: x[:-1], lambda x: x * np.nan])
def test_there_is_one_answer_for_each_number(ask):
    with pytest.raises(InputError, match="one finite number"):
        given(ask, np.arange(3.0))


# Ceilings


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
