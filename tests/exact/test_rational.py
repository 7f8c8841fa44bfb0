"""Enclosures hold and are tight, against mpmath at far higher precision."""

import decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.tapes import exact

from noisette.exact import rational
from noisette.exact.rational import precision

F = Fraction
BITS = st.integers(0, 300)


def fractions(lo, hi):
    return st.builds(F, st.integers(), st.integers(1, 10**30)).map(lambda x: lo + x % (F(hi) - lo))


def truth(function, x, bits):
    """2^bits function(x), to far more places than the enclosure has."""
    with mpmath.workprec(bits + 600 + 3 * x.denominator.bit_length() + max(0, min(2 * int(x), 4000))):
        return exact(function(mpmath.mpf(x.numerator) / x.denominator)) * 2**bits


@given(fractions(-200, 50), BITS)
@example(F(1, 10**30), 60)
@example(F(-1, 10**30), 200)
@example(F(-1000), 1500)
@example(F(1000), 64)
@example(F(-60), 60)
def test_exp_is_enclosed(x, bits):
    lo, hi = rational.exp_bounds(x, bits)
    assert lo <= truth(mpmath.exp, x, bits) <= hi <= lo + 2


@given(fractions(0, 10**3), BITS)
@example(1 + F(1, 10**30), 60)
@example(1 - F(1, 10**30), 400)
@example(1 + F(1, 2**200), 64)
@example(F(1, 10**300), 64)
@example(F(2**200), 64)
def test_ln_is_enclosed(x, bits):
    assume(x > 0)
    lo, hi = rational.ln_bounds(x, bits)
    assert lo <= truth(mpmath.log, x, bits) <= hi <= lo + 2


@given(fractions(0, 10**20), BITS)
@example(F(1, 4), 4)
@example(F(1, 4), 0)
@example(F(1, 10**60), 64)
def test_sqrt_is_enclosed(x, bits):
    lo, hi = rational.sqrt_bounds(x, bits)
    assert lo**2 <= x * 4**bits <= hi**2
    assert hi <= lo + 1
    assert (lo == hi) == (lo**2 == x * 4**bits)


def test_exp_of_what_is_far_below_a_unit_costs_nothing():
    assert rational.exp_bounds(F(-(10**6)), 64) == rational.exp_bounds(F(-(10**400)), 64) == (0, 1)


@pytest.mark.parametrize("bits", [0, 20, 60, 61, 200])
def test_known_points_are_exact(bits):
    assert rational.exp_bounds(F(0), bits) == (1 << bits, 1 << bits)
    assert rational.ln_bounds(F(1), bits) == (0, 0)
    assert rational.sqrt_bounds(F(0), bits) == (0, 0)


@given(fractions(-300, 100))
@example(F(-3000))
@example(F(0))
def test_directed_exp(x):
    down, up = rational.exp_down(x), rational.exp_up(x)
    true = truth(mpmath.exp, x, 0)
    assert down <= true <= up
    assert (up - down) * 2**90 < true


def test_directed_exp_of_very_negative_numbers():
    assert rational.exp_down(F(-3001)) == 0
    assert truth(mpmath.exp, F(-3001), 0) < rational.exp_up(F(-3001)) < F(1, 2**3999)


@given(fractions(0, 10**20) | fractions(0, 10**-20))
@example(F(0))
@example(F(1, 10**60))
def test_directed_sqrt(x):
    down, up = rational.sqrt_down(x), rational.sqrt_up(x)
    assert down**2 <= x <= up**2
    assert (up - down) * 2**60 <= down


@given(st.fractions(0, 1000))
def test_rational_roots_are_found(root):
    assert rational.sqrt_up(root**2) == rational.sqrt_down(root**2) == root


@pytest.mark.parametrize("context", [decimal.Context(prec=3), decimal.Context(traps=[decimal.Inexact])])
@pytest.mark.parametrize("bits", [40, 100])
def test_the_callers_decimal_context_does_not_matter(context, bits):
    with decimal.localcontext(context):
        lo, hi = rational.exp_bounds(F(-1), bits)
        low, high = rational.ln_bounds(F(2), bits)
    assert lo <= truth(mpmath.exp, F(-1), bits) <= hi
    assert low <= truth(mpmath.log, F(2), bits) <= high


@pytest.mark.parametrize("x", [Fraction(65), Fraction(1000, 7), Fraction(10**6), Fraction(999_999_999_999, 10**6 + 3)])
def test_exponentials_of_large_numbers_have_no_more_digits_than_are_stated(x):
    """e^x grows by a factor of e^(1/7) over a seventh, and its bounds are 2^-90 of it apart."""
    low, high = rational.exp_down(x), rational.exp_up(x)
    assert low < high < low * (1 + Fraction(1, 2**90))
    step = rational.exp_bounds(Fraction(1, 7), 200)
    assert rational.exp_down(x + Fraction(1, 7)) < high * Fraction(step[1], 1 << 200)
    assert rational.exp_up(x + Fraction(1, 7)) > low * Fraction(step[0], 1 << 200)
    assert low.numerator.bit_length() - (low.numerator & -low.numerator).bit_length() < 128


def test_large_exponentials_continue_small_ones():
    x = Fraction(129, 2)
    assert rational.exp_down(x) <= Fraction(rational.exp_bounds(x, 64)[1], 1 << 64)
    assert rational.exp_up(x) >= Fraction(rational.exp_bounds(x, 64)[0], 1 << 64)


def test_precision_is_what_was_asked_for_and_stays_private():
    before = mpmath.mp.prec
    context = precision(500)
    root = context.sqrt(2)
    assert mpmath.mp.prec == before
    assert abs(Fraction(*mpmath.libmp.to_rational(root._mpf_)) ** 2 - 2) < Fraction(1, 2**490)
    assert precision(53).prec == 53


class Counted(Fraction):
    """A fraction that counts the digits of the sums it takes part in."""

    digits = 0

    def __add__(self, other):
        found = Counted(Fraction(self) + Fraction(other))
        Counted.digits += found.denominator.bit_length()
        return found

    __radd__ = __add__


def test_a_sum_of_many_is_exact_and_takes_few_digits():
    parts = [Counted(1, 10**6 + n) for n in range(256)]
    Counted.digits = 0
    one_by_one = sum(parts, Counted(0))
    slow, Counted.digits = Counted.digits, 0
    assert rational.exact_sum(parts) == one_by_one
    assert Counted.digits < slow / 5


@given(st.lists(fractions(-10, 10)))
def test_a_sum_is_the_sum(parts):
    assert rational.exact_sum(parts) == sum(parts, Fraction(0))
