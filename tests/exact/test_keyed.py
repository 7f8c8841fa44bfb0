"""Coins of a key: the same for the same key, of their own for every other, and uniform."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exact.test_random import share
from tests.goodness import ALPHA, p_value

from noisette.errors import InputError
from noisette.exact import random, vector
from noisette.exact.keyed import KeyedRandom, keyed_digest, new_key
from noisette.mechanisms import Geometric

KEY = bytes(range(32))


def flipped(key, at):
    return bytes(byte ^ (1 << at % 8 if i == at // 8 else 0) for i, byte in enumerate(key))


def drawn(key):
    coins = KeyedRandom(key)
    return coins.bits(77), coins.below(1000), coins.flip(1, 3), coins.words(64, np.uint64).tobytes(), coins.bits(8)


def test_equal_keys_give_equal_coins_in_every_way_of_drawing():
    assert drawn(KEY) == drawn(KEY)
    assert Geometric(50)([0] * 1000, KeyedRandom(KEY)).tolist() == Geometric(50)([0] * 1000, KeyedRandom(KEY)).tolist()


@pytest.mark.parametrize("at", [0, 100, 255])
def test_keys_that_differ_in_a_bit_share_no_block(at):
    mine, other = (KeyedRandom(key).words(4096, np.uint64).tobytes() for key in (KEY, flipped(KEY, at)))
    assert not share(mine, other)


def test_coins_do_not_repeat_when_a_key_has_served(monkeypatch):
    monkeypatch.setattr(random, "_KEY_LIFE", 8192)
    coins = KeyedRandom(KEY)
    parts = [coins.words(512, np.uint64).tobytes() for _ in range(6)]
    assert not any(share(a, b) for i, a in enumerate(parts) for b in parts[:i])
    again = KeyedRandom(KEY)
    assert parts == [again.words(512, np.uint64).tobytes() for _ in range(6)]


def test_coins_are_uniform():
    """A sound tree fails with a chance of at most ALPHA."""
    seen = np.bincount(KeyedRandom(new_key()).words(1 << 20, np.uint8), minlength=256)
    assert p_value(seen, np.full(256, 1 / 256)) > ALPHA


PARTS = st.lists(st.binary(max_size=6), max_size=4)


@given(PARTS, PARTS)
def test_two_lists_have_one_digest_only_if_they_are_equal(one, other):
    assert (keyed_digest(KEY, one) == keyed_digest(KEY, other)) == (one == other)


def test_lengths_stand_before_their_parts():
    length = (1).to_bytes(8, "little")
    digests = {
        keyed_digest(KEY, parts)
        for parts in ([], [b""], [b"", b""], [b"ab"], [b"a", b"b"], [b"a" + length + b"b"], [b"ab", b""])
    }
    assert len(digests) == 7


def test_a_key_and_a_purpose_matter():
    assert len({keyed_digest(k, [b"a"], p) for k in (KEY, flipped(KEY, 3)) for p in (b"", b"other")}) == 4


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_a_key_of_another_size_is_refused(key):
    with pytest.raises(InputError, match="32 bytes"):
        keyed_digest(key, [])
    with pytest.raises(InputError, match="32 bytes"):
        KeyedRandom(key)


def test_coins_are_not_copied():
    with pytest.raises(InputError, match="not copied"):
        pickle.dumps(KeyedRandom(KEY))


def test_a_new_key_comes_from_the_given_coins():
    assert new_key(KeyedRandom(KEY)) == new_key(KeyedRandom(KEY)) != new_key(KeyedRandom(flipped(KEY, 9)))
    assert KeyedRandom(KEY).secure


@pytest.mark.parametrize("law", ["_laplace", "_geometric", "_gaussian"])
def test_what_coins_of_a_key_give_does_not_depend_on_earlier_draws(law):
    draw = {"_laplace": vector.discrete_laplace, "_geometric": vector.geometric, "_gaussian": vector.discrete_gaussian}
    getattr(vector, law).cache_clear()
    vector._read.cache_clear()
    first = [draw[law](7, size, rng=KeyedRandom(KEY)) for size in (None, 1, 5, 40)]
    draw[law](7, 1000)  # the table is built now, whatever the coins are
    again = [draw[law](7, size, rng=KeyedRandom(KEY)) for size in (None, 1, 5, 40)]
    assert [np.asarray(one).tolist() for one in first] == [np.asarray(one).tolist() for one in again]
