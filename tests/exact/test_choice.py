"""The exact choice among weights e^-y: every coin falls where it must, and the theorem on losses is right and tight."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.goodness import ALPHA, p_value
from tests.tapes import Script

from noisette.exact import choice
from noisette.exact.samplers import exp_real

Y = [Fraction(0), Fraction(1, 3), Fraction(2), Fraction(25), Fraction(30), Fraction(80)]


def weight(i):
    return exp_real(Y[i])


def near(errors=0.0):
    return np.array([float(y) for y in Y]) + errors


def accepts(place, *words):
    return choice._attempt(np.cumsum(choice.proposed(near())), weight, Script(place, *words))


def test_proposals_lie_above_and_closely():
    with mpmath.workprec(200):
        for y, w in zip(Y, choice.proposed(near()).tolist(), strict=True):
            true = mpmath.ldexp(mpmath.exp(-mpmath.mpf(y.numerator) / y.denominator), 40)
            assert true < w <= true * (1 + mpmath.mpf(2) ** -19) + 1


@pytest.mark.parametrize("i", range(len(Y)))
def test_the_coin_turns_where_the_probability_says(i):
    """P(attempt = i) = W_i/T * p_i with p_i W_i = 2^40 e^-y_i: the law is proportional to e^-y_i."""
    w = choice.proposed(near()).tolist()
    place = sum(w[:i])
    with mpmath.workprec(400):
        p = mpmath.ldexp(mpmath.exp(-mpmath.mpf(Y[i].numerator) / Y[i].denominator), 40) / w[i]
        turn, later = divmod(int(mpmath.floor(mpmath.ldexp(p, 128))), 1 << 64)
    for at in (place, place + w[i] - 1):  # the first and the last place of its own
        assert accepts(at, turn, later - 1) == i
        assert accepts(at, turn, later + 1) is None
        assert accepts(at, turn + 1) is None
        if turn:
            assert accepts(at, turn - 1) == i


@pytest.mark.slow
def test_draws_follow_the_weights_whatever_the_floats_say():
    law = np.exp(-near())
    for errors in (0.0, np.array([0, -1e-7, 0, 1e-8, -1e-7, -3.0])):
        draws = [choice.choose(near(errors), weight) for _ in range(4000)]
        assert p_value(np.bincount(draws, minlength=len(Y)), law / law.sum()) > ALPHA


@pytest.mark.slow
def test_other_weights_are_rejected():
    law = np.exp(-near() * 1.5)
    draws = [choice.choose(near(), weight) for _ in range(4000)]
    assert p_value(np.bincount(draws, minlength=len(Y)), law / law.sum()) < ALPHA


def test_a_proposal_that_is_too_low_is_noticed():
    with pytest.raises(AssertionError, match="below the weight"):
        choice.choose(np.array([1.0]), lambda i: exp_real(Fraction(0)))


@pytest.mark.slow
def test_the_largest_number_of_choices_does_not_overflow():
    assert int(np.cumsum(choice.proposed(np.zeros(choice.LARGEST)))[-1]) < 2**63


def log_ratio(a, b):
    P, Q = np.exp(-a) / math.fsum(np.exp(-a)), np.exp(-b) / math.fsum(np.exp(-b))
    return np.abs(np.log(P) - np.log(Q)).max()


@pytest.mark.parametrize("k", [2, 3, 4, 7, 30])
@pytest.mark.parametrize("t", [0.1, 1.0, 5.0])
def test_no_two_choices_lose_more_and_some_lose_as_much(k, t):
    most = float(choice.loss(Fraction(t), k, up=True))
    a, b = np.zeros(k), np.full(k, t)
    b[-2] = 0
    a[-1], b[-1] = 40, 40 - t
    assert log_ratio(a, b) == pytest.approx(most, rel=1e-9)
    generator = np.random.default_rng(k)
    for _ in range(300):
        a = generator.exponential(t, k) * generator.integers(0, 2, k)
        a[generator.integers(k)] = 0
        b = np.maximum(a + generator.choice([-t, t, 0], k), 0)
        b[np.argmin(a - generator.random(k) * t * (a < t))] = 0
        assert log_ratio(a, b) <= most * (1 + 1e-9)


def test_loss_and_move_are_each_others_inverse_and_round_outwards():
    for k in (2, 3, 50, 2**20):
        for most in (Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(40)):
            lo, hi = choice.move(most, k, 96)
            assert lo <= hi
            assert hi - lo < Fraction(1, 2**80)
            assert choice.loss(lo, k, up=False) <= most <= choice.loss(hi, k, up=True)
            assert most / 2 <= lo
            assert hi <= most + Fraction(1, 2**90)
