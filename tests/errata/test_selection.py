"""Errata about choosing one of several answers: E6, E9, E10 and E20 of docs/errata.md."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.errata.quadrature import Z, integral, winner

import noisette as nz
from noisette.audit.divergence import largest_loss, laws_of

REPLACE = nz.Neighbours.REPLACE


def exponential_mechanism(scores, rate):
    weights = np.exp(rate * np.asarray(scores, dtype=float))
    return weights / weights.sum()


def permute_and_flip(scores, rate):
    """The law of noisy max with exponential noise: try all in random order, accept with e^(-rate deficit)."""
    accept = np.exp(rate * (np.asarray(scores, dtype=float) - max(scores)))
    law = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for i in order:
            law[i] += left * accept[i] / len(orders)
            left *= 1 - accept[i]
    return law


def test_e6_three_noises_are_three_mechanisms():
    scores, n = [0, 1, 2.5, 2.2], range(4)
    exponential = exponential_mechanism(scores, 1 / 2)
    assert exponential == pytest.approx([0.1094, 0.1803, 0.3817, 0.3286], abs=5e-5)
    assert permute_and_flip(scores, 1 / 2) == pytest.approx([0.0893, 0.1556, 0.4239, 0.3312], abs=5e-5)

    def gumbel_cdf(z):
        return np.exp(-np.exp(-np.clip(z / 2, -50, None)))

    def gumbel_pdf(z):
        return np.exp(-np.clip(z / 2, -50, None)) * gumbel_cdf(z) / 2

    def gumbel_winner(i):
        others = [gumbel_cdf(Z - scores[j]) for j in n if j != i]
        return integral(gumbel_pdf(Z - scores[i]) * np.prod(others, axis=0))

    assert [gumbel_winner(i) for i in n] == pytest.approx(exponential, abs=1e-8)
    tenths = [round(10 * s) for s in scores]  # so that kinks are whole numbers
    laplace = [winner(tenths, i, 20) for i in n]
    assert laplace == pytest.approx([0.0972, 0.1700, 0.3966, 0.3362], abs=5e-5)
    assert sum(laplace) == pytest.approx(1)


def test_e6_the_whole_noisy_histogram_costs_no_more():
    m = nz.Geometric(1)
    assert m.guarantee(nz.sensitivity.histogram()).epsilon == 1
    assert m.guarantee(nz.sensitivity.histogram(neighbours=REPLACE)).epsilon == 2


def test_e9_the_factor_two_is_needed_in_general_and_not_for_a_count():
    others = 10**6
    P = math.e / (math.e + others)  # scores (1, 0, …, 0) against (0, 1, …, 1): S(q) = 1
    Q = 1 / (1 + others * math.e)
    assert math.log(P / Q) == pytest.approx(2, abs=1e-5)
    assert largest_loss(*laws_of(nz.Geometric(1), 0, 1)) == pytest.approx(1)


def test_e9_any_mechanism_is_an_exponential_one_only_at_twice_its_price():
    P, Q = laws_of(nz.RandomizedResponse(1), 0, 1)
    scores = np.log([P, Q])  # the score is the log of the law, which depends on the data
    assert exponential_mechanism(scores[0], 1) == pytest.approx(P)
    sensitivity = np.abs(scores[0] - scores[1]).max()
    assert 2 * sensitivity == pytest.approx(2)  # what the theorem says of a mechanism that is 1-DP
    assert largest_loss(P, Q) == pytest.approx(1)


DOMAIN = range(5)


def median_scores(x):
    return [-abs(sum(v < o for v in x) - Fraction(len(x), 2)) for o in DOMAIN]


def pairs(neighbours):
    for n in range(1, 6):
        for x in itertools.combinations_with_replacement(DOMAIN, n):
            for rest in {x[:i] + x[i + 1 :] for i in range(n)}:
                if neighbours is REPLACE:
                    yield from ((x, (*rest, v)) for v in DOMAIN)
                else:
                    yield x, rest


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("neighbours", "sensitivity", "largest", "most"),
    [(nz.Neighbours.ADD_REMOVE, Fraction(1, 2), 0.945, 1), (REPLACE, 1, 1.711, 2)],
)
def test_e10_sensitivity_of_the_medians_score(neighbours, sensitivity, largest, most):
    scores = [(median_scores(x), median_scores(y)) for x, y in pairs(neighbours)]
    assert max(abs(a - b) for x, y in scores for a, b in zip(x, y, strict=True)) == sensitivity
    loss = max(largest_loss(exponential_mechanism(x, 1), exponential_mechanism(y, 1)) for x, y in scores)
    assert loss == pytest.approx(largest, abs=5e-4)  # e^(epsilon q), epsilon 1: 1-DP under add/remove only
    assert loss <= most == 2 * sensitivity


def test_e10_ranges_are_half_open_on_a_grid():
    edges = [0, 3, 7, 10]  # x = (3, 7) in 0 .. 10
    closed = [range(a, b + 1) for a, b in itertools.pairwise(edges)]
    assert sum(map(len, closed)) == 13  # 3 and 7 are counted twice
    half_open = [range(edges[0], edges[1] + 1), *(range(a + 1, b + 1) for a, b in itertools.pairwise(edges[1:]))]
    assert sorted(itertools.chain(*half_open)) == list(range(11))
    ranks = [{sum(v < o for v in (3, 7)) for o in part} for part in half_open]
    assert ranks == [{0}, {1}, {2}]


def loss(before, after, b):
    return max(abs(math.log(winner(before, i, b) / winner(after, i, b))) for i in range(len(before)))


def test_e20_noisy_max_costs_epsilon_for_monotone_queries_only():
    behind = 40
    assert loss([-behind, 0, 0], [1 - behind, 0, 0], 1) == pytest.approx(1.0, abs=1e-9)
    assert loss([-behind, 0, 0], [1 - behind, -1, -1], 1) == pytest.approx(2.0, abs=1e-9)
    assert loss([-behind, 0, 0], [1 - behind, -1, -1], 2) == pytest.approx(1.0, abs=1e-9)  # Lap(2/epsilon)


@pytest.mark.slow
def test_e20_no_shift_does_worse():
    starts = [(0, 0, 0), (-3, 0, 0), (-6, -2, 0)]
    monotone = [s for s in itertools.product((0, 1), repeat=3) if any(s)]
    general = itertools.product((-1, 0, 1), repeat=3)
    for q in starts:
        assert max(loss(q, np.add(q, s), 1) for s in monotone) <= 1 + 1e-9
    for q, s in itertools.product(starts, general):
        assert loss(q, np.add(q, s), 2) <= 1 + 1e-9
        a, b = permute_and_flip(q, 1 / 2), permute_and_flip(np.add(q, s), 1 / 2)
        assert largest_loss(a, b) <= 1 + 1e-9  # exponential noise of mean 2/epsilon
