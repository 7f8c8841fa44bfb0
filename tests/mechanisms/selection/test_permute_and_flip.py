"""Permute and flip: its law by all orders, its theorem by enumeration, its sampler, its refusals, its broken twins."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.mechanisms.selection.test_exponential import BAD, moves
from tests.tapes import Forced, Script

import noisette as nz
from noisette.audit.divergence import largest_loss, laws_of
from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.samplers import exp_real
from noisette.mechanisms import calibrate
from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.selection.permute_and_flip import PermuteAndFlip

REPLACE = nz.Neighbours.REPLACE


def by_orders(m, scores):
    """The definition, summed over all orders to 40 digits."""
    with mpmath.workdps(40):
        rate = mpmath.mpf(m.scale.denominator) / m.scale.numerator
        accept = [mpmath.exp(rate * (q - max(scores))) for q in scores]
        law, orders = [mpmath.mpf(0)] * len(scores), list(itertools.permutations(range(len(scores))))
        for order in orders:
            left = mpmath.mpf(1)
            for i in order:
                law[i] += left * accept[i] / len(orders)
                left *= 1 - accept[i]
        return np.array([float(p) for p in law])


# The law


def test_the_slides_scores_have_the_known_law():
    m = calibrate(PermuteAndFlip, 1, sensitivity=10, candidates=4)  # tenths
    assert m.pmf(range(4), [0, 10, 25, 22]) == pytest.approx([0.0893, 0.1556, 0.4239, 0.3312], abs=5e-5)


@pytest.mark.parametrize("scale", [1, "7/3", "1/10", 50])
@pytest.mark.parametrize("scores", [[0, 1], [4, 4, 4], [-9, 0, 5, 3], [1, 2, 3, 4, 5], [7, 0, 7, -30, 2, 6]], ids=repr)
def test_the_law_is_that_of_all_orders(scale, scores):
    m = PermuteAndFlip(scale, candidates=len(scores))
    assert m.pmf(range(len(scores)), scores) == pytest.approx(by_orders(m, scores), rel=1e-12)


@pytest.mark.parametrize("k", [7, 12, 200])
def test_the_law_of_many_is_that_of_an_even_choice_among_binomially_many(k):
    """One is best and all others lose v: P(best) = E 1/(1 + Bin(k-1, p)) = (1 - (1-p)^k)/(k p)."""
    m = PermuteAndFlip(3, candidates=k)
    for v in (0, 1, 5, 40):
        with mpmath.workdps(40):
            p = mpmath.exp(-mpmath.mpf(v) / 3)
            best = float((1 - (1 - p) ** k) / (k * p))
        law = m.pmf(range(k), [0] + [-v] * (k - 1))
        assert law[0] == pytest.approx(best, rel=1e-12)
        assert math.fsum(law) == pytest.approx(1, abs=1e-12)


# The theorem


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("monotone", [False, True])
def test_every_move_of_small_scores_keeps_epsilon_and_some_reach_it(monotone):
    m = PermuteAndFlip(1, candidates=3, monotone=monotone)
    stated, worst = float(m.guarantee(1).epsilon), 0.0
    for q in itertools.product(range(-4, 1), repeat=3):
        law = m.pmf(range(3), q)
        for move in moves(3, 1, monotone):
            worst = max(worst, largest_loss(law, m.pmf(range(3), np.add(q, move))))
    assert worst == pytest.approx(stated, rel=1e-12)
    assert stated == (1 if monotone else 2)


def test_half_the_sensitivity_is_convicted():
    m = calibrate(PermuteAndFlip, 1, candidates=5, monotone=True)
    x, y, _ = PermuteAndFlip(1, candidates=5).pairs()[0]  # which move in both directions
    assert largest_loss(*laws_of(m, x, y)) == pytest.approx(2)
    assert m.guarantee(nz.sensitivity.histogram(neighbours=REPLACE)).epsilon == 2


def noisy_maximum(scores, scale, cells):
    """A broken twin that releases the largest score with its noise: P(cell z holds max q_i + Exp(scale))."""
    below = [math.prod(-math.expm1(-max(0, z - q) / scale) for q in scores) for z in range(cells + 1)]
    return np.diff(below)


def test_the_noisy_maximum_itself_must_not_be_released():
    P, Q = noisy_maximum([3, 1], 2, 40), noisy_maximum([2, 1], 2, 40)
    assert P.sum() == pytest.approx(1, abs=1e-7)
    assert largest_loss(P, Q) == math.inf  # a value between 2 and 3 rules out one of two neighbours
    m = PermuteAndFlip(2, candidates=2)
    assert largest_loss(*laws_of(m, [3, 1], [2, 1])) <= 1  # while which of them it is tells little


def test_it_is_never_worse_than_the_exponential_mechanism():
    flip, exponential = PermuteAndFlip(2, candidates=4), Exponential(2, candidates=4)
    for losses in itertools.product(range(0, 12, 2), repeat=3):
        loss = np.array([0, *losses])
        ours, theirs = (m.pmf(range(4), -loss) for m in (flip, exponential))
        assert (ours * loss).sum() <= (theirs * loss).sum() + 1e-12
        assert all(ours[loss > t].sum() <= theirs[loss > t].sum() + 1e-12 for t in range(11))
    assert flip.variance() < exponential.variance()
    assert flip.interval(0.95) <= exponential.interval(0.95)


# The sampler

AWKWARD = [
    (PermuteAndFlip("7/3", candidates=4), [0, 3, 5, 5]),
    (PermuteAndFlip("1/5", candidates=3), [10**6, 10**6 + 1, 10**6]),
    (PermuteAndFlip(10**12, candidates=3), [-(10**18), 0, 10**12]),
    (PermuteAndFlip(9, candidates=12), list(range(12))),
    (PermuteAndFlip("1e305", candidates=2), [-(2**61), 2**61]),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("m", "scores"), AWKWARD, ids=["ties", "narrow", "wide", "many", "even"])
def test_draws_follow_the_law(m, scores):
    draws = [m(scores) for _ in range(4000)]
    assert all(type(y) is int for y in draws)
    assert p_value(np.bincount(draws, minlength=m.candidates), m.pmf(range(m.candidates), scores)) > ALPHA


@pytest.mark.slow
def test_other_mechanisms_are_told_apart():
    m, scores = PermuteAndFlip(2, candidates=4), [0, 0, 0, 4]
    counts = np.bincount([m(scores) for _ in range(4000)], minlength=4)
    for other in (Exponential(2, candidates=4), PermuteAndFlip(1, candidates=4)):
        assert p_value(counts, other.pmf(range(4), scores)) < ALPHA


def float_flip(m, scores):
    """A broken twin: coins e^(q/scale)/e^(max/scale) of floats, which overflow to NaN and never fall right."""
    weights = np.exp(np.asarray(scores, float) / float(m.scale))
    taken = np.flatnonzero(np.random.default_rng().random(len(scores)) < weights / weights.max())
    return int(np.random.default_rng().choice(taken)) if len(taken) else 0


def test_coins_of_floats_are_convicted():
    m, large = PermuteAndFlip(2, candidates=3), [10**6 - 1, 10**6, 10**6]
    with np.errstate(over="ignore", invalid="ignore"):
        counts = np.bincount([float_flip(m, large) for _ in range(500)], minlength=3)
    assert p_value(counts, m.pmf(range(3), large)) < ALPHA


def test_flips_turn_where_the_law_says():
    """Words just below and above 2^32 e^-y decide, with 64 bits more where they are next to it."""
    y = Fraction(2, 3)
    with mpmath.workprec(300):
        p = mpmath.exp(-mpmath.mpf(2) / 3)
        word, more = (int(mpmath.floor(mpmath.ldexp(p, bits))) for bits in (32, 96))
    rest = more - (word << 64)
    for script, heads in [
        ((word - 1,), True), ((word + 1,), False), ((word, rest - 1), True), ((word, rest + 1), False), ((0,), True),
        ((2**32 - 1,), False),
    ]:  # fmt: skip
        assert choice.flips(np.array([float(y)]), lambda _: exp_real(y), Script(*script)).tolist() == [heads]


@pytest.mark.parametrize("bit", [0, 1])
def test_the_best_is_always_taken_if_it_is_alone(bit):
    assert PermuteAndFlip("1/100", candidates=3)([0, 50, 20], Forced(bit)) == 1


@pytest.mark.slow
def test_a_million_candidates():
    m, scores = PermuteAndFlip(2, candidates=10**6), np.arange(10**6)
    assert scores[m(scores)] > 10**6 - 200
    even = [m(np.zeros(10**6, int)) // 10**5 for _ in range(60)]
    assert p_value(np.bincount(even, minlength=10), [0.1] * 10) > ALPHA
    with pytest.raises(InputError, match="1,024"):
        m.pmf(0, scores)


# What to expect


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("m", [PermuteAndFlip(1, candidates=2), PermuteAndFlip("5/2", candidates=4)])
def test_losses_are_as_stated(m):
    k, t, worst, squares = m.candidates, m.interval(0.9), 1.0, 0.0
    for losses in itertools.product(range(0, 16), repeat=k - 1):
        loss = np.array([0, *losses])
        law = m.pmf(range(k), -loss)
        worst = min(worst, law[loss <= t].sum())
        squares = max(squares, (law * loss**2).sum())
    assert worst >= 0.9 - 1e-12
    assert squares == pytest.approx(m.variance(), rel=1e-12)  # no scores are worse than equal losses
    assert m.pmf(0, [0] + [-int(t)] * (k - 1)) < 0.9  # a smaller t would not do


def test_chances_to_stray_are_smooth_where_the_formula_changes():
    m = PermuteAndFlip(1000, candidates=50)
    for v in range(13_000, 13_300, 10):
        with mpmath.workdps(40):
            p = mpmath.exp(-mpmath.mpf(v) / 1000)
            true = float(1 - (1 - (1 - p) ** 50) / (50 * p))
        assert m._strays(v) == pytest.approx(true, rel=1e-10)


# Calibration and refusals


@given(st.fractions("1/100", 20, max_denominator=1000), st.fractions("1/7", 50, max_denominator=7), st.booleans())
def test_what_is_asked_for_is_kept_exactly(epsilon, size, monotone):
    m = calibrate(PermuteAndFlip, epsilon, sensitivity=size, candidates=7, monotone=monotone)
    assert m.guarantee(size) == nz.Pure(epsilon)
    rho = calibrate(PermuteAndFlip, nz.ZCDP(epsilon), sensitivity=size, candidates=7, monotone=monotone)
    assert rho.guarantee(size) <= nz.ZCDP(epsilon)


@pytest.mark.parametrize("scores", BAD, ids=str)
def test_bad_scores_are_refused_before_any_coin_is_drawn(scores):
    with pytest.raises(InputError) as error:
        PermuteAndFlip(1, candidates=3)(scores, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize("options", [{"scale": 0}, {"candidates": 1}, {"candidates": "3"}, {"monotone": None}])
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        PermuteAndFlip(**{"scale": 1, "candidates": 3, **options})


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1e400", None])
def test_bad_sensitivities_are_refused(bad):
    with pytest.raises(InputError):
        calibrate(PermuteAndFlip, 1, sensitivity=bad, candidates=8)
