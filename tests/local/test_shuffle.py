"""Amplification by shuffling: published values, the theorem's pair summed exactly, and real heaps of reports."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import pytest

from noisette import local
from noisette.errors import InputError
from noisette.local.contract import odds
from noisette.local.shuffle import _Pair
from noisette.privacy import Neighbours


@pytest.mark.parametrize(
    ("epsilon", "people", "published"),
    [(4, 10**5, 0.1183), (2, 10**5, 0.0332), pytest.param(1, 10**4, 0.0432, marks=pytest.mark.slow)],
)
def test_published_values(epsilon, people, published):
    found = local.shuffled(local.Duchi(epsilon), people=people, delta="1e-6")
    assert float(found.epsilon) == pytest.approx(published, abs=2e-4)
    assert found.neighbours is Neighbours.REPLACE
    assert found.delta == Fraction(1, 10**6)


def pair(e, a, c, m):
    """The laws of the pair, exactly."""
    p, q = Counter(), Counter()
    for n in range(m + 1):
        for first in range(n + 1):
            mass = math.comb(m, n) * c**n * (1 - c) ** (m - n) * Fraction(math.comb(n, first), 2**n)
            for (d1, d2), chance in {(1, 0): e * a, (0, 1): a, (0, 0): 1 - a - e * a}.items():
                p[first + d1, n - first + d2] += mass * chance
                q[first + d2, n - first + d1] += mass * chance
    return p, q


def hockey_stick(p, q, epsilon):
    return float(sum(max(Fraction(0), mass - Fraction(math.exp(epsilon)) * q.get(y, 0)) for y, mass in p.items()))


@pytest.mark.parametrize("k", [3, 9])
def test_delta_is_the_divergence_of_the_pair(k):
    e = odds(Fraction(1))
    a, c = 1 / (e + k - 1), Fraction(2, k)
    for m in (1, 6, 15):
        for epsilon in (0.0, 0.1, 0.5, 0.9):
            exact = hockey_stick(*pair(e, a, c, m), epsilon)
            found = _Pair(float(e), float(a), float(c), 1.0).given(epsilon, m)
            assert exact <= found <= exact * (1 + 1e-6) + 1e-12


def heap(protocol, values):
    """The exact law of the sorted reports of these people."""
    heaps = {(): Fraction(1)}
    for value in values:
        larger = Counter()
        for reports, mass in heaps.items():
            for y in protocol.reports():
                larger[tuple(sorted((*reports, y)))] += mass * protocol.likelihood(y, value)
        heaps = larger
    return heaps


def worst_delta(protocol, n, epsilon):
    pairs = list(permutations(protocol.values(), 2))
    others = list(combinations_with_replacement(protocol.values(), n - 1))
    return max(
        hockey_stick(heap(protocol, (x, *rest)), heap(protocol, (y, *rest)), epsilon)
        for x, y in pairs for rest in others
    )  # fmt: skip


HEAPS = [local.GRR(1, domain=2), local.GRR(1, domain=3),
         local.SubsetSelection(1, domain=3, size=2), local.Piecewise(2, steps=2)]  # fmt: skip


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("protocol", HEAPS, ids=repr)
def test_real_heaps_are_at_least_that_private_and_a_claim_for_more_people_is_convicted(protocol):
    for epsilon in (0.05, 0.3, 0.6):
        real = worst_delta(protocol, 4, epsilon)
        assert 0 < real <= local.shuffled_delta(protocol, people=4, epsilon=epsilon)
        assert real > local.shuffled_delta(protocol, people=100, epsilon=epsilon)


@pytest.mark.slow
def test_a_bound_that_hides_how_many_others_hide_a_person_is_too_small():
    """With C ~ Bin(n - 1, 2a) for GRR, and m not revealed, a real heap of four reports exceeds the bound."""
    protocol, e = local.GRR(1, domain=3), odds(Fraction(1))
    a = 1 / (e + 2)
    claimed = hockey_stick(*pair(e, a, 2 * a, 3), 0.6)
    assert worst_delta(protocol, 4, 0.6) > 1.1 * claimed


@pytest.mark.slow
def test_larger_domains_hide_better_and_few_people_hide_nothing():
    found = [local.shuffled(local.GRR(2, domain=k), people=10**4, delta="1e-6").epsilon for k in (2, 16, 128)]
    assert found == sorted(found, reverse=True)
    assert local.shuffled(local.GRR(2, domain=2), people=2, delta="1e-9").epsilon == 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: local.shuffled(local.Duchi(1), people=1, delta="1e-6"), "people must be a whole number, at least 2"),
        (lambda: local.shuffled(local.Duchi(1), people=100, delta=0), "delta must lie strictly between 0 and 1"),
        (lambda: local.shuffled_delta(local.Duchi(1), people=100, epsilon=-1), "epsilon must be at least 0"),
    ],
)
def test_bad_input_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
