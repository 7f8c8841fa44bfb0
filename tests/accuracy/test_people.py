import math

import numpy as np
import pytest
from scipy.stats import binom
from tests.goodness import ALPHA

from noisette.accuracy import people_bound, people_for, people_table
from noisette.accuracy.people import METHODS, _target, closed_form
from noisette.errors import InputError
from noisette.mechanisms import Geometric, RandomizedResponse
from noisette.privacy import Neighbours, sensitivity

ASK = {"queries": 20, "epsilon": 1, "error": "0.05"}
FULL = {**ASK, "delta": "1e-6"}
DISJOINT = sensitivity.histogram(neighbours=Neighbours.REPLACE)


def test_the_closed_forms():
    """k = 20, epsilon = 1, alpha = beta = 0.05."""
    assert people_bound("laplace", **ASK) == 2_397
    assert people_bound("response, people split", **ASK) == 125_208
    target = _target(20, 1, "0.05", "0.95", None, None)
    assert closed_form("response, budget split", target) == pytest.approx(2_139_967.09, abs=0.01)
    assert people_bound("response, budget split", **ASK) == 2_139_968  # rounded up, as 2,139,967 would fall short


def test_exact_numbers():
    assert people_for("laplace", **ASK) == math.ceil(-400 * math.log(-math.expm1(math.log(0.95) / 20))) == 2_387
    assert people_for("laplace", **ASK, workload=DISJOINT) == 239
    assert people_for("linf", **ASK) == 558  # 20 times the 95 % quantile 27.8792 of Gamma(20)
    assert people_bound("laplace", **ASK, workload=DISJOINT) == math.ceil(40 * math.log(400))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("queries", [1, 3, 100])
@pytest.mark.parametrize("error", ["0.3", "0.01"])
def test_n_is_enough_and_one_less_is_not(method, queries, error):
    target = _target(queries, "1/2", error, "0.9", "1e-5", None)
    failure = METHODS[method][0](target)
    n = people_for(method, queries=queries, epsilon="1/2", error=error, level="0.9", delta="1e-5")
    assert failure(n) <= target.beta < failure(n - 1)
    bound = people_bound(method, queries=queries, epsilon="1/2", error=error, level="0.9", delta="1e-5")
    slack = math.ceil(1 / float(target.alpha)) if method == "geometric" else 1  # whole noise: alpha n is rounded down
    assert n <= bound + slack


@pytest.mark.parametrize("method", METHODS)
def test_more_is_asked_more_people_are_needed(method):
    n = people_for(method, **FULL)
    assert people_for(method, **{**FULL, "error": "0.02"}) > n
    assert people_for(method, **{**FULL, "epsilon": "1/2"}) > n
    assert people_for(method, **{**FULL, "queries": 40}) > n
    assert people_for(method, **FULL, level="0.99") > n


@pytest.mark.slow
def test_geometric_is_the_mechanism():
    """n = 2,380 people: the released counts over n miss by more than 0.05 hardly more often than 5 %."""
    n, runs = people_for("geometric", **ASK), 3000
    m = Geometric(20)
    misses = sum(bool(np.abs(m(np.zeros(20, dtype=int))).max() > 0.05 * n) for _ in range(runs))
    assert binom.sf(misses - 1, runs, 0.05) > ALPHA
    assert binom.cdf(misses, runs, 0.05) > ALPHA


@pytest.mark.slow
def test_response_keeps_its_promise():
    """Three queries, people drawn at random for each; Hoeffding's bound leaves room, so fewer misses than promised."""
    n = people_for("response, people split", queries=3, epsilon=2, error="0.1", level="0.8")
    answers, m, generator = np.arange(n) % 10 < 3, RandomizedResponse(2), np.random.default_rng(1)
    runs, misses = 300, 0
    for _ in range(runs):
        groups = np.array_split(generator.permutation(answers.astype(int)), 3)
        misses += any(abs(m.estimate(m(group))[1] - answers.mean()) > 0.1 for group in groups)
    assert binom.sf(misses - 1, runs, 0.2) > ALPHA


def test_table():
    table = people_table(**FULL)
    numbers = [row[1] for row in table.rows]
    assert numbers == sorted(numbers)
    assert {row[0] for row in table.rows} == set(METHODS)
    assert not table.refused
    assert "125,208" in str(table)
    assert "<td>125,208</td>" in table._repr_html_()


def test_table_lists_what_does_not_apply():
    table = people_table(**ASK)
    assert [name for name, _ in table.refused] == ["gaussian"]
    assert "delta" in str(table).splitlines()[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"queries": 0}, "queries"),
        ({"error": 1}, "below 1"),
        ({"error": 0}, "above 0"),
        ({"level": 1}, "level"),
        ({"epsilon": 0}, "epsilon"),
        ({"method": "gaussian"}, "delta"),
        ({"workload": sensitivity.histogram()}, "replace"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(InputError, match=message):
        people_for(**{"method": "laplace", **ASK, **change})
