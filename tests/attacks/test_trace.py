import math

import numpy as np
import pytest
from scipy.stats import norm
from tests.goodness import ALPHA

from noisette.attacks import Answerer, BudgetError, exact, population, trace, tracing_ceiling, tracing_mu
from noisette.errors import InputError
from noisette.mechanisms import Gaussian, calibrate
from noisette.privacy import ZCDP, Neighbours, sensitivity

N, D = 100, 20_000


@pytest.fixture(scope="module")
def fake():
    return population(N, D, 1000, np.random.default_rng(1))


def traced(fake, ask, **options):
    return trace(fake.inside, fake.outside, fake.frequencies, ask, **options)


@pytest.mark.slow
def test_exact_means_give_every_member_away(fake):
    """Members score 11 sd above others, and the threshold is at 2.3."""
    attack = traced(fake, exact)
    assert attack.tpr == 1
    assert attack.false_alarms < 0.05  # binomial(1000, 0.01)
    assert (attack.people, attack.others, attack.attributes, attack.spent) == (N, 1000, D, None)
    assert str(attack).startswith("100% of 100 members found from 20,000 means")


@pytest.mark.parametrize(("sigma", "least", "most"), [("0.05", 0.9, 1), ("0.3", 0.01, 0.6), (3, 0, 0.25)])
def test_noise_hides_them_by_degrees(fake, sigma, least, most):
    """About 1.00, 0.25 and 0.015 are expected of a hundred people: each limit fails with p < 1e-12."""
    attack = traced(fake, Gaussian(sigma))
    assert least <= attack.tpr <= most
    assert attack.false_alarms < 0.05
    assert attack.tpr <= tracing_ceiling(tracing_mu(N, D, sigma), 0.01) + 0.25


def test_the_expected_share(fake):
    """Members' scores lie sum p(1-p)/n above 0; one release after the other for the same people."""
    spread = fake.frequencies * (1 - fake.frequencies)
    shift, sd = spread.sum() / N, math.sqrt((spread**2).sum() / N + spread.sum() * 0.3**2)
    runs = [trace(fake.inside, fake.outside[:1], fake.frequencies, Gaussian("0.3")).tpr for _ in range(5)]
    assert np.mean(runs) == pytest.approx(norm.cdf(norm.ppf(0.01) + shift / sd), abs=0.3)


def test_a_budget_holds(fake):
    rho = ZCDP("1/50", neighbours=Neighbours.REPLACE)
    moves = sensitivity.normalised(D, N, neighbours=Neighbours.REPLACE)
    ask = Answerer(calibrate(Gaussian, rho, sensitivity=moves), rho, sensitivity=moves)
    attack = traced(fake, ask)
    assert attack.tpr < 0.25  # 1 % expected, at most 1.7 % allowed
    assert attack.spent <= rho
    with pytest.raises(BudgetError):
        traced(fake, ask)


def mean_rates(sigma, runs=1500, n=4, d=16, fpr=0.1):
    """TPR and FPR over independent tables, and how far each may be off (Hoeffding, ALPHA)."""
    generator, p = np.random.default_rng(), np.full(d, 0.5)
    rows = generator.integers(0, 2, (runs, 2, n, d))
    attacks = [trace(inside, outside, p, Gaussian(sigma), fpr=fpr) for inside, outside in rows]
    rates = np.mean([(attack.tpr, attack.false_alarms) for attack in attacks], axis=0)
    return *rates, math.sqrt(math.log(1 / ALPHA) / (2 * runs))


@pytest.mark.slow
def test_the_ceiling_holds_and_a_cheat_breaks_it():
    """Four people, sixteen means, mu = 1/2; noise of a hundredth of what is claimed breaks the ceiling."""
    claimed, mu = 2, tracing_mu(4, 16, 2)
    tpr, false_alarms, slack = mean_rates(claimed)
    assert tpr - slack <= tracing_ceiling(mu, false_alarms + slack)
    tpr, false_alarms, slack = mean_rates(claimed / 100)
    assert tpr - slack > tracing_ceiling(mu, false_alarms + slack)


def test_fake_people_follow_their_frequencies():
    fake = population(3000, 3, 3000, np.random.default_rng())
    for rows in (fake.inside, fake.outside):
        assert rows.mean(axis=0) == pytest.approx(
            fake.frequencies,
            abs=8 * 0.5 / math.sqrt(3000),  # fails with p < 1e-12, all six (Hoeffding)
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inside": [1, 0]}, "tables of numbers"),
        ({"inside": [["a", "b"]]}, "tables of numbers"),
        ({"outside": np.zeros((0, 2))}, "tables of numbers"),
        ({"inside": [[2, 0]]}, "between 0 and 1"),
        ({"inside": [[math.nan, 0]]}, "between 0 and 1"),
        ({"outside": [[1, 0, 1]]}, "same attributes"),
        ({"frequencies": [0.5]}, "same attributes"),
        ({"frequencies": [0.5, math.nan]}, "frequencies must lie"),
        ({"fpr": 0}, "fpr"),
        ({"ask": lambda m: 0.5}, "one finite number"),
    ],
)
def test_refusals(change, message):
    given = {"inside": [[1, 0]], "outside": [[0, 1]], "frequencies": [0.5, 0.5], "ask": exact}
    with pytest.raises(InputError, match=message):
        trace(**{**given, **change})
