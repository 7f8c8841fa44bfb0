"""Huge domains: the law is that of the plain exponential mechanism, whatever is listed; sampler, speed, refusals."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.tapes import Script
from tests.timing import times_as_long

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms import Exponential, calibrate
from noisette.mechanisms.selection.sparse_exponential import SparseExponential, read_sparse_scores

HUGE = 2**64


def by_definition(m, scores):
    """P of each listed candidate and of one that is not, to 60 digits."""
    with mpmath.workdps(60):
        rate = mpmath.mpf(m.scale.denominator) / m.scale.numerator
        weights = {i: mpmath.exp(rate * q) for i, q in scores.items()}
        total = sum(weights.values()) + (m.candidates - len(scores))
        return {i: float(w / total) for i, w in weights.items()}, float(1 / total)


def worst_loss(m, one, other):
    P, Q = m.outcomes(one), m.outcomes(other)
    return max(abs(math.log(P[i] / Q[i])) for i in P)


# The law


@pytest.mark.parametrize("scores", [{}, {2: 3}, {0: 1, 1: 1, 2: 1, 3: 1}, {3: -7, 1: 4}, {0: 0, 1: 5}], ids=repr)
@pytest.mark.parametrize("scale", ["1/3", 1, "7/2", 30])
def test_the_law_is_that_of_the_exponential_mechanism(scale, scores):
    m, plain = SparseExponential(scale, candidates=4), Exponential(scale, candidates=4)
    dense = [scores.get(i, 0) for i in range(4)]
    assert list(m.outcomes(scores).values()) == pytest.approx(plain.pmf(range(4), dense), rel=1e-12)


def test_what_is_listed_with_score_zero_is_as_if_it_were_not():
    m = SparseExponential(2, candidates=HUGE)
    bare, full = {5: 91, HUGE - 1: -3}, {5: 91, HUGE - 1: -3, 0: 0, 2**63: 0, 17: 0}
    for candidate in (0, 5, 6, 17, 2**63, HUGE - 1):
        assert m.chance(candidate, bare) == pytest.approx(m.chance(candidate, full), rel=1e-12)
    small = SparseExponential(2, candidates=6)
    assert small.outcomes({1: 4}) == pytest.approx(small.outcomes({1: 4, 0: 0, 5: 0}), rel=1e-14)


@pytest.mark.parametrize("size", [HUGE, 2**200, 2**960, 3])
def test_chances_in_huge_domains_are_right(size):
    lead = math.ceil(2 * math.log(size))
    m, scores = SparseExponential(2, candidates=size), {1: lead, 0: lead - 3, size - 1: -1}
    known, other = by_definition(m, scores)
    for candidate, chance in known.items():
        assert m.chance(candidate, scores) == pytest.approx(chance, rel=1e-11)
    if size > 3:
        assert m.chance(size - 2, scores) == pytest.approx(other, rel=1e-11)


# The theorem


@pytest.mark.parametrize("monotone", [False, True])
def test_every_move_of_small_scores_keeps_epsilon_and_some_come_near(monotone):
    m, worst = SparseExponential(1, candidates=3, monotone=monotone), 0.0
    for q in itertools.product(range(-7, 8, 7), repeat=3):
        one = {i: s for i, s in enumerate(q) if s}
        for move in itertools.product(range(0 if monotone else -1, 2), repeat=3):
            other = {i: s + d for i, (s, d) in enumerate(zip(q, move, strict=True)) if s + d}
            worst = max(worst, worst_loss(m, one, other))
    stated = float(m.guarantee(1).epsilon)
    assert 0.995 * stated < worst <= stated * (1 + 1e-12)


def test_half_the_sensitivity_is_convicted():
    m = calibrate(SparseExponential, 1, candidates=5, monotone=True)
    one, other, _ = SparseExponential(1, candidates=5).pairs()[0]  # which moves in both directions
    assert worst_loss(m, one, other) > 1.99


def test_the_guarantee_is_that_of_the_exponential_mechanism():
    sparse, plain = SparseExponential("3/2", candidates=HUGE), Exponential("3/2", candidates=2)
    for distance in (1, "1/3", nz.sensitivity.histogram(), nz.sensitivity.histogram(neighbours=nz.Neighbours.REPLACE)):
        assert sparse.guarantee(distance) == plain.guarantee(distance)
        assert (sparse.guarantee(distance) * 50).epsilon_at("1e-6") == (plain.guarantee(distance) * 50).epsilon_at(
            "1e-6"
        )


def zeros_forgotten(m, scores):
    """A broken twin that chooses among the listed candidates alone."""
    weights = {i: math.exp(q / float(m.scale)) for i, q in scores.items()}
    return {i: w / sum(weights.values()) for i, w in weights.items()}


def test_choosing_among_the_listed_alone_is_convicted():
    m = SparseExponential(2, candidates=HUGE)
    one, other = {7: 1}, {7: 1, 8: 1}
    assert zeros_forgotten(m, one).get(8, 0) == 0 < zeros_forgotten(m, other)[8]  # a loss without bound
    assert abs(math.log(m.chance(8, other) / m.chance(8, one))) <= 1


# The sampler


@pytest.mark.slow
@pytest.mark.parametrize("size", [HUGE, 10**40, 5])
def test_draws_follow_the_law(size):
    lead = math.ceil(3 * math.log(size))
    m, scores = SparseExponential(3, candidates=size), {1: lead + 1, 3: lead - 2, 0: lead}
    draws = [m(scores) for _ in range(3000)]
    listed = [m.chance(i, scores) for i in scores]
    counts = [draws.count(i) for i in scores]
    assert all(type(y) is int and 0 <= y < size for y in draws)
    assert p_value([*counts, len(draws) - sum(counts)], [*listed, 1 - sum(listed)]) > ALPHA


@pytest.mark.slow
def test_the_others_are_drawn_evenly():
    m = SparseExponential(1, candidates=HUGE)
    places = np.array([m({HUGE - 1: 1, 0: 2}) >> 60 for _ in range(4000)])
    assert p_value(np.bincount(places, minlength=16), [1 / 16] * 16) > ALPHA
    few = SparseExponential(10, candidates=9)
    draws = [few({0: 1, 4: -1, 5: 2, 8: 1}) for _ in range(4000)]
    assert p_value(np.bincount(draws, minlength=9), list(few.outcomes({0: 1, 4: -1, 5: 2, 8: 1}).values())) > ALPHA


@given(st.sets(st.integers(0, 19), max_size=19))
def test_ranks_of_others_are_counted_right(listed):
    read = read_sparse_scores(dict.fromkeys(listed, 1), 20)
    others = [i for i in range(20) if i not in listed]
    assert [read.unlisted(rank) for rank in range(len(others))] == others


def test_every_candidate_may_be_listed():
    m = SparseExponential(2, candidates=3)
    assert {m({0: 1, 1: 1, 2: 1}) for _ in range(100)} == {0, 1, 2}
    assert {m({}) for _ in range(100)} == {0, 1, 2}


@pytest.mark.parametrize("kind", [np.int64, np.uint64, object, np.uint8])
def test_mappings_and_pairs_of_arrays_are_the_same(kind):
    m, scores = SparseExponential(1, candidates=250), {3: 2, 249: 4, 17: -1}
    arrays = np.array(list(scores), kind), np.array(list(scores.values()))
    assert m.outcomes(scores) == m.outcomes(arrays) == m.outcomes((list(scores), tuple(scores.values())))


def test_candidates_beyond_floats_are_kept_apart():
    m, top = SparseExponential("1/10", candidates=HUGE), 2**63 + 1
    assert {m({top: 500, 17: -1, top + 1: 3}) for _ in range(50)} == {top}  # numpy would make them 2^63


@pytest.mark.slow
def test_a_million_listed_candidates_take_about_as_long_as_a_gumbel_race():
    generator = np.random.default_rng()
    candidates = generator.permutation(np.unique(generator.integers(0, HUGE - 1, 10**6, np.uint64)))
    scores = generator.integers(0, 100, len(candidates))
    m = SparseExponential(2, candidates=HUGE)

    def race():
        return np.argmax(scores / 2 + generator.gumbel(size=len(scores)))

    assert times_as_long(lambda: m((candidates, scores)), race, rounds=5) < 6  # about 1.3


# What to expect, and refusals


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("m", [SparseExponential(1, candidates=2), SparseExponential("5/2", candidates=4)])
def test_losses_are_as_stated(m):
    t, worst = m.interval(0.9), 1.0
    for losses in itertools.product(range(16), repeat=m.candidates - 1):
        x = {i + 1: -loss for i, loss in enumerate(losses)}
        worst = min(worst, sum(p for y, p in m.outcomes(x).items() if m.error(y, x) <= t))
    assert worst >= 0.9 - 1e-12
    tight = {i: -int(t) for i in range(1, m.candidates)}
    assert m.chance(0, tight) < 0.9  # a smaller t would not do


BAD = [
    None, [], [1, 2, 3], 3, "{}", {0: 1.0}, {0: True}, {True: 1}, {0.0: 1}, {"0": 1}, {-1: 1}, {7: 1}, {0: 2**62},
    {0: None}, {0: math.nan}, ([0, 0], [1, 2]), ([0, 1], [1]), ([0], [[1]]), ([0, 1], 3), ({0}, {1}), {2**70: 1},
    (np.array([0.5]), [1]), (np.ma.masked_array([1], [True]), [1]), ([[0], [1, 2]], [1, 2]), {0: 10**400},
]  # fmt: skip


@pytest.mark.parametrize("size", [7, HUGE])
@pytest.mark.parametrize("scores", BAD, ids=str)
def test_bad_scores_are_refused_before_any_coin_is_drawn(scores, size):
    if scores == {7: 1} and size == HUGE:
        return
    with pytest.raises(InputError) as error:
        SparseExponential(1, candidates=size)(scores, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize("options", [{"scale": 0}, {"candidates": 1}, {"candidates": 2**961}, {"monotone": None}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        SparseExponential(**{"scale": 1, "candidates": 3, **options})


def test_laws_of_huge_domains_are_refused():
    with pytest.raises(InputError, match="4,096"):
        SparseExponential(1, candidates=HUGE).outcomes({})


@given(st.fractions("1/100", 20, max_denominator=1000), st.fractions("1/7", 50, max_denominator=7), st.booleans())
def test_what_is_asked_for_is_kept_exactly(epsilon, size, monotone):
    m = calibrate(SparseExponential, epsilon, sensitivity=size, candidates=HUGE, monotone=monotone)
    assert m.guarantee(size) == nz.Pure(epsilon)
    assert m.scale == (1 if monotone else 2) * Fraction(size) / Fraction(epsilon)
