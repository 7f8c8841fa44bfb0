"""One parameter per entry: every entry has its own law, and floats never decide what they do not know."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import goodness
from tests.goodness import ALPHA
from tests.tapes import Script

from noisette.exact import geometric_arrays
from noisette.exact.gaussian_arrays import gaussian_each
from noisette.exact.geometric_arrays import geometric_each, laplace_each, redrawn
from noisette.exact.random import SYSTEM

F = Fraction
SCALES = [F(1, 7), F(1), F(10), F(12345, 67), F(2**30), F(2**60)]
VARIANCES = [F(1, 7), F(1), F(100), F(10**6), F(2**40), F(2**100), F(2**120)]


def columns(draw, parameters, count):
    """Draw `count` entries for each parameter, interleaved so that neighbours differ."""
    drawn = draw(parameters * count, SYSTEM)
    return dict(zip(parameters, drawn.reshape(count, len(parameters)).T, strict=True))


CASES = [
    (geometric_each, goodness.geometric, SCALES, lambda scale: 8 * float(scale) + 8),
    (laplace_each, goodness.laplace, SCALES, lambda scale: 8 * float(scale) + 8),
    (gaussian_each, goodness.gaussian, VARIANCES, lambda s2: 5 * float(s2) ** 0.5 + 5),
]


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "law", "parameters", "width"), CASES)
def test_every_entry_has_its_own_law(draw, law, parameters, width):
    for parameter, drawn in columns(draw, parameters, 10_000).items():
        edges = np.unique(np.linspace(-1, 1, 801) * min(width(parameter), 2.0**62) // 1).astype(np.int64)
        drawn = np.clip(drawn, -(2**63) + 1, 2**63 - 1).astype(np.int64)
        assert goodness.fit(drawn, law(parameter), edges) > ALPHA, parameter
        if parameter > 1:
            assert goodness.fit(drawn, law(parameter * F(25, 16)), edges) < ALPHA, parameter


@pytest.mark.slow
def test_low_bits_of_wide_entries_are_uniform():
    for draw, parameter in ((geometric_each, F(2**60)), (gaussian_each, F(2**118))):
        low = np.array([int(z) & 0xFFFF for z in draw([parameter] * 20_000, SYSTEM)])
        for octet in (low & 255, low >> 8):
            assert goodness.p_value(np.bincount(octet, minlength=256), np.full(256, 1 / 256)) > ALPHA


class Keeping(Script):
    """Every proposal is kept."""

    def flip(self, numerator, denominator):
        return False


@given(st.integers(0, 2**63), st.integers(1, 2**60), st.integers(1, 10**6))
def test_more_places_are_drawn_only_where_they_matter(x, numerator, denominator):
    scale = F(numerator, denominator)
    lowest, highest = math.floor(x * scale / 2**56), math.ceil((x + 1) * scale / 2**56) - 1
    if lowest == highest:
        assert geometric_arrays._floor_of_product(x, scale, Script()) == lowest
    else:
        assert geometric_arrays._floor_of_product(x, scale, Keeping(0, 0, 0)) == lowest
        assert geometric_arrays._floor_of_product(x, scale, Keeping(*[2**64 - 1] * 3)) == highest


class Fixed:
    """In place of the shared exponential variable: the same x for every entry."""

    def __init__(self, x):
        self.x = x

    def fill(self, out, rng):
        out[:] = self.x
        return {}


@given(
    st.integers(0, 2**62), st.lists(st.builds(F, st.integers(1, 2**60), st.integers(1, 10**6)), min_size=1, max_size=20)
)
def test_floats_agree_with_fractions(x, scales):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(geometric_arrays, "_exponential", lambda: Fixed(x))
        drawn = geometric_each(scales, SYSTEM)
    for z, scale in zip(drawn.tolist(), scales, strict=True):
        assert math.floor(x * scale / 2**56) <= z <= math.ceil((x + 1) * scale / 2**56) - 1


@pytest.mark.parametrize("draw", [geometric_each, laplace_each, gaussian_each])
def test_no_entries_and_tiny_entries(draw):
    assert draw([], SYSTEM).shape == (0,)
    assert draw([F(1, 10**300)] * 100, SYSTEM).tolist() == [0] * 100


def test_redrawn_replaces_the_given_entries_alone():
    z = redrawn(np.arange(5), np.array([1, 3]), [F(i) for i in range(5)], lambda p, rng: np.array(p) * 100, SYSTEM)
    assert z.tolist() == [0, 100, 2, 300, 4]
