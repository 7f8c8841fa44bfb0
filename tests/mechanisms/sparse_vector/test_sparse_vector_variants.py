"""The six published variants as negative controls: four must be convicted, two must not, by numbers and by samples.

Vocabulary: D, D' neighbours, every query moves by at most 1 · `m` silent queries first · epsilon is 1 throughout.
"""

import math

import pytest
from mpmath import mp
from tests.errata.quadrature import below_then_above
from tests.mechanisms.sparse_vector.svt_variants import ABOVE, BELOW, VARIANTS

from noisette.audit.sampled import epsilon_lower_bound

CONFIDENCE = 1 - 1e-7


def loss(number, silent, above, c):
    """ln P(D)/P(D') of m silent answers, then so many above; on D' the former rise and the latter fall."""
    v = VARIANTS[number]
    scales = v.threshold(1, c), v.query(1, c)
    P, Q = (below_then_above([up] * silent, [-up] * above, *scales) for up in (0, 1))
    return math.log(P / Q)


# By numbers


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("c", [1, 2, 5])
def test_the_first_costs_epsilon(c):
    assert loss(1, 400, c, c) == pytest.approx(1, abs=1e-6)
    assert max(loss(1, m, c, c) for m in (0, 1, 10, 100)) <= 1 + 1e-9


@pytest.mark.parametrize("c", [1, 2, 5])
def test_the_second_costs_epsilon_over_c_in_each_run(c):
    assert c * loss(2, 400, 1, c) == pytest.approx(1, abs=1e-2)
    assert max(c * loss(2, m, 1, c) for m in (0, 1, 10, 100)) <= 1 + 1e-9


@pytest.mark.parametrize(("m", "leak"), [(2, 0.5), (10, 4.5), (50, 24.5)])
def test_the_third_has_no_epsilon(m, leak):
    """A20: m silent, then the value 0 that was compared, which puts the threshold below 0."""

    def likelihood(silent, last):
        def given(z):
            return mp.exp(z / 2) / 4 * (mp.exp((z - silent) / 2) / 2) ** m

        return mp.quad(given, [-mp.inf, -10, 0]) * mp.exp(-mp.mpf(last) / 2) / 4

    assert float(mp.log(likelihood(0, 1) / likelihood(1, 0))) == pytest.approx(leak)


@pytest.mark.parametrize("c", [1, 2, 4])
def test_the_fourth_costs_one_plus_six_c_over_four(c):
    assert loss(4, 400, c, c) == pytest.approx((1 + 6 * c) / 4, abs=1e-6)


def test_the_fifth_tells_neighbours_apart_for_sure():
    """(0, 1) can be told (below, above), (1, 0) cannot: nobody but the threshold has noise."""
    v = VARIANTS[5]
    told = {x: {tuple(y) for y in v(list(x), 1, 1, 4000)[0].tolist()} for x in ((0, 1), (1, 0))}
    assert (BELOW, ABOVE) in told[0, 1]
    assert (BELOW, ABOVE) not in told[1, 0]


def test_the_sixth_has_no_epsilon():
    assert [loss(6, m, m, 1) >= m / 2 for m in (3, 10, 40)] == [True] * 3


# By samples: the auditor knows nothing of the variants but what they tell


def lead(told, values):
    """How many more are above in the second half than in the first."""
    half = told.shape[1] // 2
    return ((told[:, half:] == ABOVE).sum(1) - (told[:, :half] == ABOVE).sum(1)).astype(float)


def low_value(told, values):
    """Whether the last query alone was above, and the value that was compared was at most 2."""
    silent = (told[:, :-1] == BELOW).all(1) & (told[:, -1] == ABOVE)
    return (silent & (values[:, -1] <= 2)).astype(float)


CASES = {
    1: (([0] * 6, [1] * 3 + [-1] * 3), lead, 3, 40_000),
    2: (([0] * 6, [1] * 3 + [-1] * 3), lead, 3, 40_000),
    3: (([0] * 6 + [1], [1] * 6 + [0]), low_value, 1, 400_000),
    4: (([0] * 40, [1] * 20 + [-1] * 20), lead, 20, 40_000),
    5: (([0, 1], [1, 0]), lead, 1, 20_000),
    6: (([0] * 40, [1] * 20 + [-1] * 20), lead, 1, 40_000),
}


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("number", CASES)
def test_the_auditor_convicts_the_broken_ones_and_no_others(number):
    (x, x_prime), statistic, c, runs = CASES[number]

    def batch(queries, count):
        return statistic(*VARIANTS[number](queries, 1, c, count))

    bound = epsilon_lower_bound(None, x, x_prime, runs=runs, confidence=CONFIDENCE, batch=batch)
    assert (bound > 1) == (number in (3, 4, 5, 6)), bound
