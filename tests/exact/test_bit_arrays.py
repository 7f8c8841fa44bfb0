from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA, p_value
from tests.tapes import Forced, exp

from noisette.exact.bit_arrays import Places, coin_words, column_sums, lie_places, row_sums
from noisette.exact.samplers import rational_bounds


def spelt(places, count):
    return sum(Fraction(places(place), 1 << place) for place in range(1, count + 1))


@pytest.mark.parametrize("g", [Fraction(1, 10**6), Fraction(1), Fraction(7, 3), Fraction(40)])
def test_places_spell_the_chance_to_lie(g):
    chance = 1 / (1 + exp(g))
    assert 0 <= chance - spelt(lie_places(g), 160) < Fraction(1, 1 << 160)


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(3, 8), Fraction(1, 3)])
def test_places_spell_rationals(p):
    assert 0 <= p - spelt(Places(rational_bounds(p)), 80) < Fraction(1, 1 << 80)


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(3, 8), Fraction(1, 1000), Fraction(999, 1000)])
def test_each_coin_of_a_word_has_its_chance(p):
    words = coin_words(Places(rational_bounds(p)), 20_000)
    ones = column_sums(words.view(np.uint8).reshape(-1, 8), 64)
    for n in ones:
        assert p_value([n, 20_000 - n], [float(p), float(1 - p)]) > ALPHA  # fails with p < 1e-12


def test_coins_of_another_chance_are_convicted():
    ones = int(row_sums(coin_words(Places(rational_bounds(Fraction(3, 8))), 20_000).view(np.uint8)[None]).sum())
    assert p_value([ones, 64 * 20_000 - ones], [0.36, 0.64]) < ALPHA  # 35 standard deviations


def test_neighbouring_coins_are_independent():
    words = coin_words(lie_places(Fraction(1)), 50_000)
    both = np.unpackbits(words.view(np.uint8)).reshape(-1, 2) @ [2, 1]
    q = 1 / (1 + np.e)
    pairs = [(1 - q) ** 2, q * (1 - q), q * (1 - q), q * q]
    assert p_value(np.bincount(both, minlength=4), pairs) > ALPHA  # fails with p < 1e-12


def test_uniforms_of_all_ones_are_above_and_all_zeros_below():
    places = lie_places(Fraction(1))
    assert coin_words(places, 2, Forced(1)).tolist() == [0, 0]
    assert coin_words(places, 2, Forced(0)).tolist() == [2**64 - 1] * 2


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (1, 1), (255, 8), (256, 9), (1000, 70)])
def test_column_sums_are_sums(rows, columns):
    bits = np.random.default_rng(3).integers(0, 2, (rows, columns)).astype(np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert column_sums(packed, columns).tolist() == bits.sum(axis=0).tolist()
    full = np.full((rows, packed.shape[1]), 255, np.uint8)
    assert set(column_sums(full, columns).tolist()) <= {rows}
