"""Errata about adding guarantees up: E8, E19 and E24 of docs/errata.md."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.errata.optimal import log_delta, root

import noisette as nz
from noisette.audit.divergence import largest_loss, laws_of

K, LOG_DELTA = 10**4, -32


def advanced(epsilon, k=K, log_delta=LOG_DELTA):
    """The theorem's total epsilon, both terms."""
    return math.sqrt(-2 * k * log_delta) * epsilon + k * epsilon * math.expm1(epsilon)


def test_e8_parallel_composition_is_for_add_remove():
    m = nz.Geometric(1)
    one = laws_of(m, 1, 0)
    moved = [np.outer(a, b).ravel() for a, b in ((one[0], one[1]), (one[1], one[0]))]  # (1, 0) against (0, 1)
    assert largest_loss(*moved) == pytest.approx(2)
    added = [np.outer(a, one[1]).ravel() for a in one]  # (1, 0) against (0, 0)
    assert largest_loss(*added) == pytest.approx(1)
    histogram = {n: m.guarantee(nz.sensitivity.histogram(neighbours=n)).epsilon for n in nz.Neighbours}
    assert histogram == {nz.Neighbours.ADD_REMOVE: 1, nz.Neighbours.REPLACE: 2}


def test_e8_the_parts_must_not_depend_on_the_data():
    def counts(answers):  # "parts" of odd and even rank
        return np.array([sum(answers[0::2]), sum(answers[1::2])])

    people = [1, 0, 1, 0, 1, 0]
    distance = np.abs(counts(people) - counts([0, *people])).sum()  # one person more, first in order
    assert distance == 6  # six times the loss of one


def test_e19_the_short_formula_falls_short():
    assert math.sqrt(-2 * K * LOG_DELTA) / 800 == 1
    assert advanced(1 / 800) == pytest.approx(1.0156, abs=5e-5)
    assert advanced(1 / 801) == pytest.approx(1.0143, abs=5e-5)
    assert root(lambda r: advanced(1 / r) - 1, 700, 900) == pytest.approx(812.32, abs=5e-3)


def test_e19_the_conclusion_is_true_all_the_same():
    assert log_delta(K, 1 / 800, 1) == pytest.approx(-38.74, abs=5e-3)
    assert root(lambda r: log_delta(K, 1 / r, 1) - LOG_DELTA, 600, 900) == pytest.approx(715.51, abs=5e-3)
    by_zcdp = nz.ZCDP(Fraction(K, 2 * 800**2))
    assert by_zcdp.epsilon_at(Fraction(math.exp(LOG_DELTA))) == pytest.approx(0.925, abs=5e-4)


@pytest.mark.parametrize(("delta", "first_failure"), [(1e-2, 6.5), (1e-6, 8.5), (1e-9, 9.5)])
def test_e19_it_is_false_for_large_epsilon(delta, first_failure):
    def holds(total, k, half=1):
        epsilon = total / (half * math.sqrt(2 * k * math.log(1 / delta)))
        return log_delta(k, epsilon, total) <= math.log(delta)

    for k in (1000, K):
        assert all(holds(0.5 * step, k) for step in range(1, round(2 * first_failure)))
        assert not holds(first_failure, k)
        assert holds(first_failure, k, half=2)  # as published, with a factor 2


def transcript(x, first, second):
    """P(a, b): a is the answer to x, then b is asked more carefully if a is 1."""
    law = {(a, b): first.pmf(a, x) * second[a].pmf(b, x) for a, b in itertools.product((0, 1), repeat=2)}
    return np.array(list(law.values()))


def test_e24_the_whole_transcript_is_the_output():
    first, second = nz.RandomizedResponse(1), [nz.RandomizedResponse(1), nz.RandomizedResponse("1/2")]
    P, Q = (transcript(x, first, second) for x in (0, 1))
    assert largest_loss(P, Q) == pytest.approx(2)  # epsilon_1 + epsilon_2, attained
    last = [law.reshape(2, 2).sum(axis=0) for law in (P, Q)]
    assert largest_loss(*last) < 1  # the last answer alone says nothing of the others
    assert (nz.Pure(1) + nz.Pure(1)).epsilon == 2


def test_e24_many_counts_are_paid_for_once():
    m, counts = 5, nz.sensitivity.counts(5)
    assert nz.calibrate(nz.Geometric, nz.Pure(1), sensitivity=counts).scale == m
    assert nz.calibrate(nz.Geometric, nz.Pure(Fraction(1, m)), sensitivity=counts).scale == m**2  # as printed
    assert nz.calibrate(nz.Geometric, nz.Pure(Fraction(1, m)), sensitivity=1).scale == m  # each by itself
