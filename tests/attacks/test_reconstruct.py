import math

import numpy as np
import pytest
from scipy.stats import binom
from tests.goodness import ALPHA

from noisette.attacks import Answerer, BudgetError, bits, exact, expected_recovery, guessing_ceiling, reconstruct
from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric, Laplace, calibrate
from noisette.privacy import ZCDP, Neighbours, Pure, sensitivity

N = 200
COUNTS = sensitivity.counts(4 * N, neighbours=Neighbours.REPLACE)


@pytest.mark.parametrize("method", ["least squares", "lp"])
def test_exact_counts_are_the_table(method):
    secret = bits(40)
    attack = reconstruct(secret, exact, method=method)
    assert attack.recovered == 1
    assert (attack.estimate == secret).all()
    assert (attack.people, attack.queries, attack.method, attack.spent) == (40, 160, method, None)


def test_noise_well_below_the_root_of_n_does_not_help():
    assert reconstruct(bits(N), Laplace(0.03 * math.sqrt(N))).recovered == 1  # each bit by 10 sd
    assert reconstruct(bits(N), Laplace(0.1 * math.sqrt(N))).recovered > 0.94  # 0.2 wrong bits expected, not 12


def test_noise_well_above_leaves_little_but_guessing():
    attack = reconstruct(bits(N), Laplace(10 * math.sqrt(N)))
    assert abs(attack.recovered - expected_recovery(N, 10 * math.sqrt(2 * N))) < 0.28  # fails with p < 1e-13


def test_the_linear_program_stands_answers_that_are_far_off():
    secret = bits(40)

    def mostly_exact(counts):
        return counts + 1000 * (np.arange(len(counts)) % 10 == 0)

    assert reconstruct(secret, mostly_exact, method="lp").recovered == 1
    assert reconstruct(secret, mostly_exact).recovered < 1


@pytest.mark.parametrize("ratio", [0.2, 0.5])
def test_the_expected_share(ratio):
    scale, runs = ratio * math.sqrt(N), 5
    share = np.mean([reconstruct(bits(N), Laplace(scale)).recovered for _ in range(runs)])
    assert share == pytest.approx(expected_recovery(N, scale * math.sqrt(2)), abs=8 * 0.5 / math.sqrt(runs * N))


def test_within_a_budget_it_is_near_guessing():
    ask = Answerer(calibrate(Geometric, 1, sensitivity=COUNTS), 1, sensitivity=COUNTS)
    attack = reconstruct(bits(N), ask)
    assert attack.spent == Pure(1, neighbours=Neighbours.REPLACE)
    assert abs(attack.recovered - 0.5) < 0.28  # fails with p < 1e-12
    with pytest.raises(BudgetError):
        reconstruct(bits(N), ask)


def p_value(mechanism, epsilon):
    """Independent bits: the number of right ones is at most binomial if the counts are epsilon-DP."""
    right = round(reconstruct(bits(N), mechanism).recovered * N)
    return binom.sf(right - 1, N, guessing_ceiling(epsilon))


@pytest.mark.parametrize("epsilon", ["1/10", 1, 20])
def test_the_ceiling_holds(epsilon):
    assert p_value(calibrate(Geometric, epsilon, sensitivity=COUNTS), epsilon) > ALPHA


def test_a_thousandth_of_the_noise_breaks_the_ceiling():
    assert p_value(Geometric("800/1000"), 1) < ALPHA


def test_gaussian_answers():
    rho = ZCDP("1/2", neighbours=Neighbours.REPLACE)
    ask = Answerer(calibrate(Gaussian, rho, sensitivity=COUNTS, grid=1), rho, sensitivity=COUNTS)
    attack = reconstruct(bits(N), ask)
    assert attack.spent <= rho
    assert attack.recovered < 0.9  # 59 % expected
    assert "spent" in str(attack)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"secret": [0, 1, 2]}, "bits"),
        ({"secret": []}, "bits"),
        ({"secret": [[0, 1]]}, "bits"),
        ({"queries": 0}, "queries"),
        ({"method": "magic"}, "method must be one of"),
        ({"ask": lambda y: y[:-1]}, "one finite number"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(InputError, match=message):
        reconstruct(**{"secret": [0, 1, 1], "ask": exact, **change})


def test_refused_expectations():
    with pytest.raises(InputError, match="queries"):
        expected_recovery(10, 1, queries=10)
    with pytest.raises(InputError, match="sd"):
        expected_recovery(10, 0)
    with pytest.raises(InputError, match="n must be"):
        bits(0)
