"""High precision without touching anybody else's."""

from fractions import Fraction

import mpmath

from noisette.exact.precise import precision


def test_precision_is_what_was_asked_for_and_stays_private():
    before = mpmath.mp.prec
    context = precision(500)
    root = context.sqrt(2)
    assert mpmath.mp.prec == before
    assert abs(Fraction(*mpmath.libmp.to_rational(root._mpf_)) ** 2 - 2) < Fraction(1, 2**490)
    assert precision(53).prec == 53
