"""Max-information: numbers to hit, a noisy count computed exactly, and what must not be composed."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from noisette.errors import InputError
from noisette.holdout.bounds import chosen_query, hoeffding
from noisette.holdout.max_information import (
    MaxInformation,
    best_beta,
    composed,
    iid_max_information,
    max_information,
    post_processed,
    take_one,
    take_one_epsilon,
    take_two,
    take_two_epsilon,
)
from noisette.laws import DiscreteLaplace

C = Fraction(1, 10_000)


def test_the_numbers_to_hit():
    assert float(max_information("0.1", 1000).bits) == pytest.approx(144.26950408889635, rel=1e-12)
    assert float(iid_max_information("0.1", 1000, "0.05").bits) == pytest.approx(13.409409060798371, rel=1e-12)
    known = iid_max_information("0.01", 10_000, "0.001")
    assert known.bad_event(hoeffding(10_000, "0.05")) == pytest.approx(0.001, rel=1e-9)
    assert known.bad_event(hoeffding(10_000, "0.05")) > 0.001


def test_both_takes():
    assert take_one_epsilon(10_000, "0.05", C) == Fraction(1, 400)
    assert take_two_epsilon(10_000, "0.05", C) == Fraction(1, 20)
    assert take_one(10_000, "0.05", C, max_information("0.0024", 10_000)) == pytest.approx(2 * math.exp(-25))
    assert take_one(10_000, "0.05", C, MaxInformation(30, "0.01")) == pytest.approx(0.01)
    assert take_two(10_000, "0.05", C) == pytest.approx(4.95e-9, rel=2e-3)
    with pytest.raises(InputError, match=r"at most 36\.07 bits here"):
        take_one(10_000, "0.05", C, max_information("0.01", 10_000))


@pytest.mark.parametrize("tau", ["0.02", "0.05", "0.1"])
def test_the_best_beta_is_never_above_take_two_nor_below_ours(tau):
    epsilon = take_two_epsilon(10_000, tau, C)
    least, beta = best_beta(10_000, tau, C, epsilon)
    assert least <= take_two(10_000, tau, C)
    for other in np.geomspace(1e-3, 1e3, 31) * beta:
        if other < 1:
            value = iid_max_information(epsilon, 10_000, float(other)).bad_event(hoeffding(10_000, tau))
            assert least <= value * (1 + 1e-3)
    assert chosen_query(10_000, tau, epsilon) <= least


def largest(prior, rows, beta):
    """The max-information of a prior and a program, in bits: the best events are those of large ratios."""
    joint, product = prior[:, None] * rows, prior[:, None] * (prior @ rows)
    order = np.argsort(-np.broadcast_to(rows / (prior @ rows), rows.shape).ravel())
    P, Q = (np.cumsum(part.ravel()[order]) for part in (joint, product))
    return float(np.log2((P[beta < P] - beta) / Q[beta < P]).max())


@pytest.mark.parametrize(("n", "epsilon", "beta"), [(100, 0.1, 1e-4), (200, 0.1, 1e-6), (200, 0.02, 1e-3)])
def test_a_noisy_count_has_no_more(n, epsilon, beta):
    k, y = np.arange(n + 1), np.arange(-150, n + 151)
    rows = DiscreteLaplace(1 / epsilon).pmf(y - k[:, None])
    alike = np.zeros(n + 1)
    alike[0], alike[n] = 1 - 4 * beta, 4 * beta
    iid, general = iid_max_information(epsilon, n, beta), max_information(epsilon, n)
    assert largest(binom.pmf(k, n, 0.5), rows, beta) <= float(iid.bits)
    assert largest(alike, rows, beta) <= float(general.bits)
    if n * epsilon > 5:  # rows that depend on each other break the bound for independent ones
        assert largest(alike, rows, beta) > float(iid.bits)


def test_what_composes():
    first, general = iid_max_information("0.1", 1000, "0.01"), max_information("0.1", 1000)
    both = composed(first, general, MaxInformation(2, "0.02"))
    assert (both.bits, both.beta, both.iid) == (first.bits + general.bits + 2, Fraction(3, 100), True)
    assert not composed(general, general).iid
    assert post_processed(first) is first
    with pytest.raises(InputError, match="add up the epsilons and convert once"):
        composed(first, first)
    with pytest.raises(InputError, match="add up to 1 or more"):
        composed(MaxInformation(1, "0.5"), MaxInformation(1, "0.5"))


def test_adding_epsilons_first_is_what_to_do_instead():
    once = iid_max_information("0.2", 1000, "0.05")
    assert once.bits < composed(iid_max_information("0.1", 1000, "0.05"), max_information("0.1", 1000)).bits
    assert not iid_max_information("0.5", 2, "0.05").iid  # the general bound is smaller, and composes


def test_a_composition_of_two_programs_computed_exactly():
    """A count, then a second program chosen by the first answer's sign, on rows that are not independent."""
    n, epsilon = 6, 0.4
    k, y = np.arange(n + 1), np.arange(-60, n + 61)
    prior = np.array([0.4, 0, 0, 0.1, 0, 0, 0.5])
    first = DiscreteLaplace(1 / epsilon).pmf(y - k[:, None])
    second = [DiscreteLaplace(1 / epsilon).pmf(y - x[:, None]) for x in (k, n - k)]  # which one depends on the answer
    rows = np.concatenate([first[:, [i]] * second[int(answer > n / 2)] for i, answer in enumerate(y)], axis=1)
    kept = rows.sum(0) > 1e-12
    both = composed(*[max_information(epsilon, n)] * 2)
    one = largest(prior, first, 0.0)
    assert one < largest(prior, rows[:, kept], 0.0) <= float(both.bits)
