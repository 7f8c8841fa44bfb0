"""The one-shot top k: its law by rounds and by noise, its theorem for all small scores, its race, broken twins."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.mechanisms.selection.test_exponential import BAD, moves
from tests.tapes import Forced, Script
from tests.timing import times_as_long

import noisette as nz
from noisette.audit.divergence import hockey_stick, renyi
from noisette.errors import InputError, PrivacyError
from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.selection.gumbel_top import GumbelTop, _around, _keys, draw_top
from noisette.privacy.pld.ranges import BoundedRange
from noisette.privacy.theorems import optimal

ADD_REMOVE, REPLACE = nz.Neighbours


def by_rounds(m, scores):
    """k rounds of the exponential mechanism without replacement, to 40 digits."""
    with mpmath.workdps(40):
        rate = mpmath.mpf(m.scale.denominator) / m.scale.numerator
        weights = [mpmath.exp(rate * q) for q in scores]
        law = {}
        for order in itertools.permutations(range(m.candidates), m.k):
            left, chance = list(weights), mpmath.mpf(1)
            for i in order:
                chance *= left[i] / mpmath.fsum(left)
                left[i] = mpmath.mpf(0)
            law[order] = float(chance)
        return law


def worst(before, after):
    return max(abs(math.log(p / after[y])) for y, p in before.items())


def arrays(before, after):
    return np.array(list(before.values())), np.array([after[y] for y in before])


# The law


@pytest.mark.parametrize(("k", "scores"), [(1, [0, 3, 1]), (2, [5, 5, 0, -90]), (3, [0, 0, 0]), (3, [2, 1, 0, 9, 9])])
@pytest.mark.parametrize("scale", [1, "7/3", 50])
def test_the_law_is_that_of_rounds_without_replacement(k, scores, scale):
    m = GumbelTop(scale, candidates=len(scores), k=k)
    law = m.outcomes(scores)
    assert law == pytest.approx(by_rounds(m, scores), rel=1e-12)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)


def test_one_round_is_the_exponential_mechanism():
    scores, m = [0, 1, 3, 2], GumbelTop(2, candidates=4, k=1)
    assert list(m.outcomes(scores).values()) == pytest.approx(Exponential(2, candidates=4).pmf(range(4), scores))
    assert m.guarantee(1) == nz.Pure(1)


def test_gumbel_noise_once_has_the_law_of_rounds():
    """By quadrature over the noisy scores of the first two, of which the second is the smaller."""
    scores, scale = [0, 1, 3], 2
    x, w = np.polynomial.legendre.leggauss(400)
    z, w = 40 * x + 20, 40 * w

    def cdf(t):
        return np.exp(-np.exp(-np.clip(t / scale, -30, None)))

    def pdf(t):
        return np.exp(-np.clip(t / scale, -30, None)) * cdf(t) / scale

    def chance(first, second, third):
        """The first is above what the second is, the third below; P(first > z) = 1 - cdf."""
        return float(w @ (pdf(z - scores[second]) * (1 - cdf(z - scores[first])) * cdf(z - scores[third])))

    law = GumbelTop(scale, candidates=3, k=2).outcomes(scores)
    for order in itertools.permutations(range(3)):
        assert law[order[:2]] == pytest.approx(chance(*order), abs=1e-9)


# The theorem


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("k", "n"), [(1, 3), (2, 4), (3, 4), (3, 3)])
def test_every_move_of_small_scores_keeps_epsilon(monotone, k, n):
    m = GumbelTop(1, candidates=n, k=k, monotone=monotone)
    stated, reached = float(m.guarantee(1).epsilon), 0.0
    for q in itertools.combinations_with_replacement(range(3), n):
        law = m.outcomes(q)
        reached = max(reached, *(worst(law, m.outcomes(np.add(q, s))) for s in moves(n, 1, monotone)))
    assert 0.5 * stated < reached <= stated * (1 + 1e-12)
    assert stated == min(k, n - 1) * (1 if monotone else 2)  # the last of all is no choice


@pytest.mark.parametrize("m", [GumbelTop(2, candidates=4, k=2), GumbelTop(1, candidates=4, k=4, monotone=True)])
def test_candidates_far_behind_reach_epsilon(m):
    far, others = 40 * int(m.scale), m.candidates - m.rounds
    x = [-far] * m.rounds + [0] * others
    y = [1 - far] * m.rounds + [0 if m.monotone else -1] * others
    assert worst(m.outcomes(x), m.outcomes(y)) == pytest.approx(float(m.guarantee(1).epsilon), rel=1e-9)
    parts = [worst(m.outcomes(x), m.outcomes(y)) / float(m.guarantee(d).epsilon) for x, y, d in m.pairs()]
    assert m.tightness <= max(parts) <= 1 + 1e-9


def test_one_count_that_moves_costs_every_round():
    """The best candidate of all is never released: each round tells that."""
    m = GumbelTop(1, candidates=4, k=3, monotone=True)
    assert m.guarantee(nz.sensitivity.histogram()) == nz.Pure(3, neighbours=ADD_REMOVE)
    assert worst(m.outcomes([60, 0, 0, 0]), m.outcomes([61, 0, 0, 0])) == pytest.approx(3, rel=1e-9)
    assert m.guarantee(nz.sensitivity.histogram(neighbours=REPLACE)) == nz.Pure(6, neighbours=REPLACE)


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_the_rho_and_the_deltas_of_rounds_hold(monotone):
    m = GumbelTop(1, candidates=3, k=2, monotone=monotone)
    promise = m.guarantee(1)
    rho = 2 * float(promise.epsilon / 2) ** 2 / 8
    assert promise <= nz.ZCDP(Fraction(rho))
    for q in itertools.product(range(3), (0, 5), range(3)):
        for s in moves(3, 1, monotone):
            P, Q = arrays(m.outcomes(q), m.outcomes(np.add(q, s)))
            assert max(renyi(P, Q, order) / order for order in (1.1, 2, 8)) <= rho * (1 + 1e-9)
            for part in (0.2, 0.5, 0.8):
                e = part * float(promise.epsilon)
                assert hockey_stick(P, Q, e) <= promise.delta_at(e) + 1e-12


def test_no_pair_of_a_range_has_a_larger_delta():
    """Two losses epsilon apart, t and t - epsilon, are the extremes of a range; none has more than the loss says."""
    e = 1.5
    for at in np.linspace(-e, e, 13):
        t = np.linspace(0, e, 20_001)
        p = (math.exp(e) - np.exp(t)) / math.expm1(e)  # the mass for which both laws sum to one
        largest = (p * np.maximum(0, 1 - np.exp(at - t)) + (1 - p) * np.maximum(0, 1 - np.exp(at - t + e))).max()
        P, Q = BoundedRange(Fraction(3, 2)).above(np.array([at]))
        assert float((P - math.exp(at) * Q)[0]) == pytest.approx(largest, abs=1e-8)


def test_both_ends_of_the_loss_add_up_to_one():
    t = np.linspace(-3, 3, 25)
    for e in ("1/100", 2, 2000):
        loss = BoundedRange(Fraction(e))
        for above, below in zip(loss.above(t), loss.below(t), strict=True):
            assert above + below == pytest.approx(np.ones(25))


def test_rounds_compose_below_plain_and_optimal_composition_of_epsilons():
    promise = GumbelTop(10, candidates=100, k=30, monotone=True).guarantee(1)
    known = promise.epsilon_at("1e-6")
    assert promise.epsilon == 3
    assert known < 1.4 < 2 < optimal("0.1", 0, 30, "1e-6")
    assert known > 0.9 * nz.ZCDP(Fraction(30, 800)).epsilon_at("1e-6")


def test_half_the_sensitivity_is_convicted():
    as_if_monotone = GumbelTop.calibrated(nz.Pure(1), candidates=4, k=2, monotone=True)
    x, y, _ = GumbelTop(as_if_monotone.scale, candidates=4, k=2).pairs()[0]  # which move in both directions
    assert worst(as_if_monotone.outcomes(x), as_if_monotone.outcomes(y)) > 1.9
    one_round = Exponential.calibrated(nz.Pure(1), candidates=4)  # noise for one, used for two
    assert (
        worst(
            GumbelTop(one_round.scale, candidates=4, k=2).outcomes(x),
            GumbelTop(one_round.scale, candidates=4, k=2).outcomes(y),
        )
        > 1.5
    )


# The race

AWKWARD = [
    (GumbelTop("7/3", candidates=4, k=2), [0, 3, 5, 5]),
    (GumbelTop("1/5", candidates=3, k=2), [10**6, 10**6 + 1, 10**6]),
    (GumbelTop(10**12, candidates=3, k=3), [-(10**12), 0, 10**12]),
    (GumbelTop("1e305", candidates=3, k=2), [-(2**61), 2**61, 0]),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("m", "scores"), AWKWARD, ids=["ties", "narrow", "wide", "even"])
def test_draws_follow_the_law(m, scores):
    drawn, law = Counter(m(scores) for _ in range(4000)), by_rounds(m, scores)
    assert all(type(i) is int for y in drawn for i in y)
    assert p_value([drawn[y] for y in law], list(law.values())) > ALPHA


@pytest.mark.slow
def test_other_scales_are_told_apart():
    m, scores = GumbelTop(2, candidates=4, k=2), [0, 1, 3, 2]
    drawn = Counter(m(scores) for _ in range(20_000))  # a twin passes with p < 1e-12: its p-values are near 1e-75
    for scale in (Fraction(8, 5), Fraction(5, 2)):
        law = GumbelTop(scale, candidates=4, k=2).outcomes(scores)
        assert p_value([drawn[y] for y in law], list(law.values())) < ALPHA


class Tied(Forced):
    """Coins of which the first word is the same for all candidates."""

    def __init__(self, word):
        self.word = word

    def words(self, count, dtype):
        return np.full(count, self.word, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("word", [0, 1, 2**20, 2**63, 2**64 - 2, 2**64 - 1])
def test_noise_that_agrees_in_64_bits_is_refined(word):
    """Equal scores with equal first bits are put in an even order by the bits that follow."""
    drawn = Counter(GumbelTop(1, candidates=3, k=2)([5, 5, 5], Tied(word)) for _ in range(100))
    assert p_value([drawn[y] for y in itertools.permutations(range(3), 2)], [1 / 6] * 6) > ALPHA


@pytest.mark.parametrize("word", [1, 2**20, 2**63, 2**64 - 2])
def test_scores_decide_where_the_noise_agrees(word):
    assert GumbelTop("1/9", candidates=4, k=3)([5, 7, 4, 6], Tied(word)) == (1, 3, 0)


def test_floats_are_off_by_less_than_is_said():
    """Both ends of the noise that a word leaves open lie within what is said, to 60 digits."""
    words = np.array([1, 2, 77, 2**11, 2**13, 2**16, 2**30, 2**52, 2**60, 2**63, 2**64 - 2**30, 2**64 - 3], np.uint64)
    losses, scale = np.array([0, 3, 10**6, 10**15] * 3), Fraction(7, 3)
    near = losses * float(1 / scale)
    low, high = _around(_keys(near, words), near, words)
    with mpmath.workdps(60):
        for i, word in enumerate(words.tolist()):
            for place in (2**64 - 1 - word, 2**64 - word):
                true = -mpmath.log(-mpmath.log(mpmath.mpf(place) / 2**64)) - mpmath.mpf(3 * int(losses[i])) / 7
                assert mpmath.mpf(float(low[i])) <= true <= mpmath.mpf(float(high[i]))
    assert high[8] - low[8] < 1e-5
    ends = np.array([0, 2**64 - 1], np.uint64)
    assert np.isinf(_around(_keys(np.zeros(2), ends), np.zeros(2), ends)).all()


@pytest.mark.slow
def test_the_race_of_scores_far_away_is_decided_exactly():
    """Losses of 10^15 scales, where floats cannot tell neighbours apart."""
    losses = np.array([0, 10**17, 10**17 + 500, 10**17 + 1000])
    assert {draw_top(losses, Fraction(1, 9), 4, nz.exact.random.SYSTEM) for _ in range(5)} == {(0, 1, 2, 3)}
    m, scores = GumbelTop(1, candidates=4, k=2), [2**61, 0, 0, 1]
    drawn, law = Counter(m(scores) for _ in range(100)), by_rounds(m, scores)
    assert p_value([drawn[y] for y in law], list(law.values())) > ALPHA


@pytest.mark.slow
def test_a_thousand_of_a_million():
    m, scores = GumbelTop(2, candidates=10**6, k=1000), np.arange(10**6)
    released = m(scores)
    assert len(set(released)) == 1000
    assert m.error(released, scores) <= m.interval(1 - 1e-9)


@pytest.mark.slow
def test_ten_of_a_million_take_a_few_times_as_long_as_an_argmax_of_gumbel_noise():
    scores, rng = np.random.default_rng().integers(0, 1000, 10**6), np.random.default_rng()
    m = GumbelTop(50, candidates=10**6, k=10)

    def race():
        return np.argmax(scores / 50 + rng.gumbel(size=10**6))

    assert times_as_long(lambda: m(scores), race) <= 6  # about 3; a loop over the candidates takes hundreds


# What to expect, calibration, refusals


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("m", [GumbelTop(1, candidates=4, k=2), GumbelTop("5/2", candidates=3, k=3)])
def test_scores_are_as_near_to_the_best_as_stated(m, level):
    t, least = m.interval(level), 1.0
    for scores in itertools.combinations_with_replacement([*range(0, 20, 3), int(t), int(t) + 1], m.candidates):
        best = sorted(scores, reverse=True)
        near = [y for y in m.outcomes(scores) if all(b - scores[i] <= t for b, i in zip(best, y, strict=False))]
        law = m.outcomes(scores)
        least = min(least, math.fsum(law[y] for y in near))
    assert level <= least < level + 0.3


def test_the_error_is_the_largest_loss_of_a_place():
    m = GumbelTop(1, candidates=4, k=3)
    assert m.error((0, 1, 2), [9, 7, 4, 1]) == 0
    assert m.error((0, 2, 3), [9, 7, 4, 1]) == 3
    assert m.error((3, 1, 0), [9, 7, 4, 1]) == 8
    assert m.error((1, 0, 3), [9, 7, 4, 1]) == 3


@pytest.mark.slow
@given(st.fractions("1/100", 20, max_denominator=1000), st.fractions("1/7", 50, max_denominator=7), st.booleans())
def test_what_is_asked_for_is_kept_exactly(epsilon, size, monotone):
    m = GumbelTop.calibrated(nz.Pure(epsilon), size, candidates=7, k=3, monotone=monotone)
    assert m.guarantee(size) == nz.Pure(epsilon)
    rho = GumbelTop.calibrated(nz.ZCDP(epsilon), size, candidates=7, k=3, monotone=monotone)
    assert rho.guarantee(size) <= nz.ZCDP(epsilon)
    assert not GumbelTop(rho.scale * Fraction(999, 1000), candidates=7, k=3, monotone=monotone).guarantee(
        size
    ) <= nz.ZCDP(epsilon)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("k", "part"), [(1, 1), (3, 0.96), (20, 0.53), (100, 0.26)])
def test_a_delta_saves_noise(k, part):
    """With a delta, k rounds need that part of the noise of a pure epsilon at most."""
    promise, pure = nz.Approx(1, "1e-6"), GumbelTop.calibrated(nz.Pure(1), candidates=200, k=k)
    m = GumbelTop.calibrated(promise, candidates=200, k=k)
    assert m.guarantee(1) <= promise
    assert m.scale <= part * pure.scale
    assert not GumbelTop(m.scale * Fraction(99, 100), candidates=200, k=k).guarantee(1) <= promise


@pytest.mark.parametrize("scores", BAD, ids=str)
def test_bad_scores_are_refused_before_any_coin_is_drawn(scores):
    with pytest.raises(InputError) as error:
        GumbelTop(1, candidates=3, k=2)(scores, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize(
    "options", [{"scale": 0}, {"candidates": 1}, {"monotone": None}, {"k": 0}, {"k": 4}, {"k": True}, {"k": 1.5}]
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        GumbelTop(**{"scale": 1, "candidates": 3, "k": 2, **options})
    if "scale" not in options:
        with pytest.raises(InputError):
            GumbelTop.calibrated(nz.Pure(1), **{"candidates": 3, "k": 2, **options})


def test_levels_and_sizes_out_of_range_are_refused():
    with pytest.raises(InputError, match="level"):
        GumbelTop(1, candidates=3, k=2).interval(1)
    with pytest.raises(InputError, match="orders"):
        GumbelTop(1, candidates=100, k=5).outcomes([0] * 100)


def test_relations_do_not_mix():
    with pytest.raises(PrivacyError):
        GumbelTop.calibrated(
            nz.Pure(1, neighbours=ADD_REMOVE), nz.sensitivity.histogram(neighbours=REPLACE), candidates=3, k=2
        )
